import { Effect } from "effect"
import * as Environment from "../Environment.ts"
import { StartRefused } from "../Startup.ts"

export const startRefused = (message: ReadonlyArray<string>) => new StartRefused({ message: message.join("\n") })

/** Reads the settings from the environment. Fails with all mistakes at once. */
export const readSettings = Effect.suspend(() =>
  Effect.mapError(Effect.fromResult(Environment.read(process.env)), (mistakes) =>
    startRefused([Environment.describeMistakes(mistakes)])
  )
)

/** Imports a command's module only when the command runs, which keeps the start of other commands short. */
export const withModule = <Module, A, E, R>(
  load: () => Promise<Module>,
  run: (module: Module) => Effect.Effect<A, E, R>
) => Effect.flatMap(Effect.promise(load), run)
