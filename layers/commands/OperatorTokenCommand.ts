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
          Flag.withDescription("The name in the list of tokens")
        )
      },
      ({ name }) =>
        Effect.flatMap(readSettings, (settings) =>
          withModule(
            () => import("./DatabaseCommands.ts"),
            ({ createOperatorToken }) => createOperatorToken(settings, name)
          )
        )
    ).pipe(Command.withDescription("Create a token with all scopes in DATABASE_URL and print it once"))
  ])
)
