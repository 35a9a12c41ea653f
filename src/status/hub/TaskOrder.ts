import { Effect, Exit } from "effect"

/** Work of the same task goes one after the other, in the order in which it was begun; of different tasks at once. */
export class TaskOrder {
  readonly #waiting = new Map<string, Array<() => void>>()

  runInOrder<A, E, R>(taskId: string, work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    // Waiting is not interruptible, and does not have to be: what is in front is, and gives way.
    return Effect.acquireUseRelease(
      this.#turn(taskId),
      () => work,
      // Who is interrupted is so together with those behind it, one by one: none of them may begin in between, as what
      // is in front of it comes again.
      (_, exit) => (Exit.hasInterrupts(exit) ? Effect.andThen(Effect.yieldNow, this.#next(taskId)) : this.#next(taskId))
    )
  }

  #turn(taskId: string): Effect.Effect<void> {
    return Effect.suspend(() => {
      const waiting = this.#waiting.get(taskId)
      if (waiting === undefined) {
        this.#waiting.set(taskId, [])
        return Effect.void
      }
      return Effect.callback<void>((resume) => void waiting.push(() => resume(Effect.void)))
    })
  }

  #next(taskId: string): Effect.Effect<void> {
    return Effect.sync(() => {
      const next = this.#waiting.get(taskId)?.shift()
      if (next === undefined) this.#waiting.delete(taskId)
      else next()
    })
  }
}
