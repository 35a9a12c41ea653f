import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { readSettings, withModule } from "./CommandEnvironment.ts"

const force = Flag.Boolean("force").pipe(
  Flag.withDefault(false),
  Flag.withDescription(
    "Rotate even while processes without the key are connected; they can then no longer read the secrets"
  )
)

export const secrets = Command.make("secrets").pipe(
  Command.withDescription("Manage stored secrets"),
  Command.withSubcommands([
    Command.make("rotate", { force }, (flags) =>
      Effect.flatMap(readSettings, (settings) =>
        withModule(
          () => import("./DatabaseCommands.ts"),
          ({ rotateSecrets }) => rotateSecrets(settings, flags.force)
        )
      )
    ).pipe(
      Command.withDescription(
        "Re-encrypt every stored secret with GATEWAY_ENCRYPTION_KEY; GATEWAY_PREVIOUS_ENCRYPTION_KEY decrypts the old ones"
      )
    )
  ])
)
