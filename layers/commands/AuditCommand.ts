import { Effect, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { readSettings, withModule } from "./CommandEnvironment.ts"

/** The number and hash of an event, `<sequence>:<hash>`, as `audit verify` prints them. */
const Anchor = Schema.String.check(
  Schema.isPattern(/^\d{1,15}:[0-9a-f]{64}$/, { expected: "<sequence>:<hash>, as an earlier run printed it" })
)

/** A date, meaning the start of the day in UTC. */
const Day = Schema.String.check(
  Schema.isPattern(/^\d{4}-\d{2}-\d{2}$/, { expected: "a date, such as 2026-01-31" })
).pipe(Schema.decodeTo(Schema.DateTimeUtcFromString))

const expect = Flag.String("expect").pipe(
  Flag.withSchema(Anchor),
  Flag.optional,
  Flag.withDescription(
    "An event that an earlier run printed, <sequence>:<hash>; the command fails if the log does not contain it"
  )
)

const archiveFile = Argument.String("file").pipe(
  Argument.withDescription("A file with one JSON event per line; archiving creates it and never overwrites a file")
)

const before = Flag.String("before").pipe(
  Flag.withSchema(Day),
  Flag.withDescription("A date such as 2026-01-31; events before this day (UTC) are archived")
)

export const audit = Command.make("audit").pipe(
  Command.withDescription("Verify and archive the audit log"),
  Command.withSubcommands([
    Command.make("verify", { expect }, (flags) =>
      Effect.flatMap(readSettings, (settings) =>
        withModule(
          () => import("./DatabaseCommands.ts"),
          ({ verifyAudit }) => verifyAudit(settings, flags.expect)
        )
      )
    ).pipe(Command.withDescription("Verify the audit log in DATABASE_URL and print its last event")),
    Command.make("archive", { file: archiveFile, before }, (args) =>
      Effect.flatMap(readSettings, (settings) =>
        withModule(
          () => import("./ArchiveAudit.ts"),
          ({ archive }) => archive(settings, args.file, args.before)
        )
      )
    ).pipe(
      Command.withDescription(
        "Move the oldest events of the log in DATABASE_URL into a file, and record that in the log"
      )
    ),
    Command.make("verify-archive", { file: archiveFile }, ({ file }) =>
      withModule(
        () => import("./ArchiveAudit.ts"),
        ({ verifyArchive }) => verifyArchive(file)
      )
    ).pipe(Command.withDescription("Verify an archive file"))
  ])
)
