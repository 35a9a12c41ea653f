import { Effect, Exit } from "effect"

/** Runs the work of one task one after the other, and that of different tasks concurrently. */
export class TaskOrder {
  readonly #waiting = new Map<string, Array<() => void>>()

  runInOrder<A, E, R>(taskId: string, work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    // Waiting cannot be interrupted, but the work that it waits for can be, so an interruption is not delayed.
    return Effect.acquireUseRelease(
      this.#waitForTurn(taskId),
      () => work,
      // Interrupted pieces of work end one by one. The next piece must not start before its own interruption arrives.
      (_, exit) =>
        Exit.hasInterrupts(exit) ? Effect.andThen(Effect.yieldNow, this.#startNext(taskId)) : this.#startNext(taskId)
    )
  }

  #waitForTurn(taskId: string): Effect.Effect<void> {
    return Effect.suspend(() => {
      const waiting = this.#waiting.get(taskId)
      if (waiting === undefined) {
        this.#waiting.set(taskId, [])
        return Effect.void
      }
      return Effect.callback<void>((resume) => void waiting.push(() => resume(Effect.void)))
    })
  }

  #startNext(taskId: string): Effect.Effect<void> {
    return Effect.sync(() => {
      const next = this.#waiting.get(taskId)?.shift()
      if (next === undefined) this.#waiting.delete(taskId)
      else next()
    })
  }
}
