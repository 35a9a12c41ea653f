import { Context, Effect, Layer } from "effect"

/** Lets the control API delay its response until the gateway in the same process has applied the change. */
export class AppliedEpoch extends Context.Service<
  AppliedEpoch,
  {
    readonly report: (epoch: number) => void
    /** Waits until configuration change `epoch` has taken effect, but at most 3 seconds. */
    readonly waitFor: (epoch: number) => Effect.Effect<void>
  }
>()("svc/process/AppliedEpoch") {
  static readonly layer = Layer.sync(AppliedEpoch, () => {
    // A gateway that has not started will load the latest configuration, so no request waits for it.
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
