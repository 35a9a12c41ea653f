import { Effect } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { readSettings, withModule } from "./CommandEnvironment.ts"

const models = Argument.String("model").pipe(
  Argument.variadic(),
  Argument.withDescription(
    "The models to import. Without one, all that have no price are imported. A stored price changes only if it is named"
  )
)

const base = Flag.String("base").pipe(
  Flag.optional,
  Flag.withDescription("The base that `prices plan` printed; the command fails if the prices have changed since")
)

export const prices = Command.make("prices").pipe(
  Command.withDescription("Compare the price book of this version with the stored prices, and import from it"),
  Command.withSubcommands([
    Command.make("plan", {}, () =>
      Effect.flatMap(readSettings, (settings) =>
        withModule(
          () => import("./ImportPrices.ts"),
          ({ plan }) => plan(settings)
        )
      )
    ).pipe(Command.withDescription("Print what an import would change, the sources of the prices, and the base")),
    Command.make("import", { models, base }, (args) =>
      Effect.flatMap(readSettings, (settings) =>
        withModule(
          () => import("./ImportPrices.ts"),
          ({ importBook }) => importBook(settings, args.models, args.base)
        )
      )
    ).pipe(Command.withDescription("Import prices in one transaction"))
  ])
)
