import { Context, Effect, Layer } from "effect"

/**
 * How far the gateway of this process has followed what operators change. Only a process that runs both has it: there
 * an operator who was answered finds the change in force with the next request. Other processes hear of it milliseconds
 * later.
 */
export class AppliedEpoch extends Context.Service<
  AppliedEpoch,
  {
    /** The gateway knows every change up to `epoch`. */
    readonly report: (epoch: number) => void
    /** Waits for that, but not for long: a gateway that hears no notices looks by itself, within two seconds. */
    readonly waitFor: (epoch: number) => Effect.Effect<void>
  }
>()("svc/process/AppliedEpoch") {
  static readonly layer = Layer.sync(AppliedEpoch, () => {
    // before it starts, a gateway has nothing in memory that could be old
    let applied = Number.POSITIVE_INFINITY
    const waiters = new Map<(done: Effect.Effect<void>) => void, number>()
    return AppliedEpoch.of({
      report: (epoch) => {
        applied = epoch
        for (const [resume, wanted] of waiters) {
          if (wanted > applied) continue
          waiters.delete(resume)
          resume(Effect.void)
        }
      },
      waitFor: (epoch) =>
        Effect.callback<void>((resume) => {
          if (epoch <= applied) return resume(Effect.void)
          waiters.set(resume, epoch)
          return Effect.sync(() => waiters.delete(resume))
        }).pipe(Effect.timeoutOption("3 seconds"), Effect.asVoid)
    })
  })
}
