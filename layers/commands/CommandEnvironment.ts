import { Effect } from "effect"
import * as Environment from "../Environment.ts"
import { StartRefused } from "../Startup.ts"

export const startRefused = (message: ReadonlyArray<string>) => new StartRefused({ message: message.join("\n") })

/** The settings; fails with every mistake in the environment at once. */
export const readSettings = Effect.suspend(() =>
  Effect.mapError(Effect.fromResult(Environment.read(process.env)), (mistakes) =>
    startRefused([Environment.describeMistakes(mistakes)])
  )
)

/** Loads the work of a command when it runs, so that no command waits for what others need. */
export const withModule = <Module, A, E, R>(
  load: () => Promise<Module>,
  run: (module: Module) => Effect.Effect<A, E, R>
) => Effect.flatMap(Effect.promise(load), run)
