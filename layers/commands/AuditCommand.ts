import { Effect, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { readSettings, withModule } from "./CommandEnvironment.ts"

/** An event that was noted earlier, as `audit verify` printed it: `<sequence>:<hash>`. */
const Anchor = Schema.String.check(
  Schema.isPattern(/^\d{1,15}:[0-9a-f]{64}$/, { expected: "<sequence>:<hash>, as an earlier run printed it" })
)

/** The beginning of a day in UTC. */
const Day = Schema.String.check(
  Schema.isPattern(/^\d{4}-\d{2}-\d{2}$/, { expected: "a date, such as 2026-01-31" })
).pipe(Schema.decodeTo(Schema.DateTimeUtcFromString))

const expect = Flag.String("expect").pipe(
  Flag.withSchema(Anchor),
  Flag.optional,
  Flag.withDescription("An event that an earlier run printed, <sequence>:<hash>: fails where the log no longer has it")
)

const archiveFile = Argument.String("file").pipe(
  Argument.withDescription("One event a line, as JSON; archiving makes the file, and overwrites none")
)

const before = Flag.String("before").pipe(
  Flag.withSchema(Day),
  Flag.withDescription("A date: what is older than its beginning in UTC is archived")
)

export const audit = Command.make("audit").pipe(
  Command.withDescription("The log of what operators changed"),
  Command.withSubcommands([
    Command.make("verify", { expect }, (flags) =>
      Effect.flatMap(readSettings, (settings) =>
        withModule(
          () => import("./DatabaseCommands.ts"),
          ({ verifyAudit }) => verifyAudit(settings, flags.expect)
        )
      )
    ).pipe(Command.withDescription("Whether the log in DATABASE_URL is what was written; prints its head")),
    Command.make("archive", { file: archiveFile, before }, (given) =>
      Effect.flatMap(readSettings, (settings) =>
        withModule(
          () => import("./ArchiveAudit.ts"),
          ({ archive }) => archive(settings, given.file, given.before)
        )
      )
    ).pipe(Command.withDescription("Moves the beginning of the log in DATABASE_URL into a file; an event says so")),
    Command.make("verify-archive", { file: archiveFile }, ({ file }) =>
      withModule(
        () => import("./ArchiveAudit.ts"),
        ({ verifyArchive }) => verifyArchive(file)
      )
    ).pipe(Command.withDescription("Whether an archive holds what was written"))
  ])
)
