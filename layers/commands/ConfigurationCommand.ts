import { Effect } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { readSettings, withModule } from "./CommandEnvironment.ts"

const file = Argument.String("file").pipe(
  Argument.withDescription("A configuration document as `configuration export` prints it")
)

const base = Flag.String("base").pipe(
  Flag.optional,
  Flag.withDescription(
    "The base that `configuration plan` printed; the command fails if the configuration has changed since"
  )
)

const omit = Flag.String("omit").pipe(
  Flag.atLeast(0),
  Flag.withDescription("A section to leave out, such as keys; may be repeated")
)

export const configuration = Command.make("configuration").pipe(
  Command.withDescription("Export, plan and apply the configuration as one document without secrets"),
  Command.withSubcommands([
    Command.make("export", { omit }, (args) =>
      Effect.flatMap(readSettings, (settings) =>
        withModule(
          () => import("./ChangeConfiguration.ts"),
          ({ print }) => print(settings, args.omit)
        )
      )
    ).pipe(Command.withDescription("Print the configuration in DATABASE_URL")),
    Command.make("plan", { file }, (args) =>
      Effect.flatMap(readSettings, (settings) =>
        withModule(
          () => import("./ChangeConfiguration.ts"),
          ({ plan }) => plan(settings, args.file)
        )
      )
    ).pipe(Command.withDescription("Print what a document would change, and what each key would gain or lose")),
    Command.make("apply", { file, base }, (args) =>
      Effect.flatMap(readSettings, (settings) =>
        withModule(
          () => import("./ChangeConfiguration.ts"),
          ({ apply }) => apply(settings, args.file, args.base)
        )
      )
    ).pipe(Command.withDescription("Apply a document in one transaction"))
  ])
)
