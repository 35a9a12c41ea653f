import { Context, Effect, Layer } from "effect"

/** In a process with gateway and control, a change is in force before its operator receives the response. */
export class AppliedEpoch extends Context.Service<
  AppliedEpoch,
  {
    readonly report: (epoch: number) => void
    /** Waits until `epoch` is applied, for at most 3 seconds. A gateway that misses notices polls every 2 seconds. */
    readonly waitFor: (epoch: number) => Effect.Effect<void>
  }
>()("svc/process/AppliedEpoch") {
  static readonly layer = Layer.sync(AppliedEpoch, () => {
    // a gateway that has not started has no stale state
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
