import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { readSettings, withModule } from "./CommandEnvironment.ts"

const force = Flag.Boolean("force").pipe(
  Flag.withDefault(false),
  Flag.withDescription("Also while processes are connected that do not have the key, and could not read what it sealed")
)

export const secrets = Command.make("secrets").pipe(
  Command.withDescription("Stored credentials"),
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
        "Seals every stored credential under GATEWAY_ENCRYPTION_KEY; GATEWAY_PREVIOUS_ENCRYPTION_KEY opens them until then"
      )
    )
  ])
)
