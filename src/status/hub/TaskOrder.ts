import { Effect, Exit } from "effect"

/** Runs the work of one task sequentially and that of different tasks concurrently. */
export class TaskOrder {
  readonly #waiting = new Map<string, Array<() => void>>()

  runInOrder<A, E, R>(taskId: string, work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    // Waiting is uninterruptible, which is safe: the work ahead of it is interruptible, and makes way.
    return Effect.acquireUseRelease(
      this.#waitForTurn(taskId),
      () => work,
      // An interruption reaches the work of a task one by one; nothing may start in between and overtake it.
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
