import { Effect, Exit } from "effect"

/** Runs effects of the same task one at a time and in order. Effects of different tasks run concurrently. */
export class TaskOrder {
  readonly #waiting = new Map<string, Array<() => void>>()

  runInOrder<A, E, R>(taskId: string, work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    // This wait cannot be interrupted. It still ends soon, because an interruption also stops the effect in progress.
    return Effect.acquireUseRelease(
      this.#waitForTurn(taskId),
      () => work,
      // An interruption reaches the effects of a task one by one. The yield lets it reach the next effect in time.
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
