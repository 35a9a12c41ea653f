import { Effect } from "effect"
import * as Environment from "../Environment.ts"
import { StartRefused } from "../Startup.ts"

export const startRefused = (message: ReadonlyArray<string>) => new StartRefused({ message: message.join("\n") })

/** Fails with all problems of the environment at once. */
export const readSettings = Effect.suspend(() =>
  Effect.mapError(Effect.fromResult(Environment.read(process.env)), (mistakes) =>
    startRefused([Environment.describeMistakes(mistakes)])
  )
)

/** Imports the module of a command when it runs, so that other commands start faster. */
export const withModule = <Module, A, E, R>(
  load: () => Promise<Module>,
  run: (module: Module) => Effect.Effect<A, E, R>
) => Effect.flatMap(Effect.promise(load), run)
