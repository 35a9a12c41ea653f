import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { Name } from "../../src/control/api/OperatorTokenApi.ts"
import { readSettings, withModule } from "./CommandEnvironment.ts"

export const operatorToken = Command.make("operator-token").pipe(
  Command.withDescription("Tokens for the control API"),
  Command.withSubcommands([
    Command.make(
      "create",
      {
        name: Flag.String("name").pipe(
          Flag.withSchema(Name),
          Flag.withDefault("command line"),
          Flag.withDescription("What the list of tokens calls it")
        )
      },
      ({ name }) =>
        Effect.flatMap(readSettings, (settings) =>
          withModule(
            () => import("./DatabaseCommands.ts"),
            ({ createOperatorToken }) => createOperatorToken(settings, name)
          )
        )
    ).pipe(Command.withDescription("Makes a token in DATABASE_URL that may do everything, and prints it, once"))
  ])
)
