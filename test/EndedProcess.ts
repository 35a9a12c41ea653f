import type { ChildProcess } from "node:child_process"
import { once } from "node:events"
import { Effect } from "effect"

/** Sends `signal` to `child`, if it still runs, and waits for its end. */
export const end = (child: ChildProcess | undefined, signal: NodeJS.Signals): Effect.Effect<void> =>
  Effect.promise(async () => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, "exit")
    child.kill(signal)
    await exited
  })
