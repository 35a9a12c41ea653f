import { Context, Effect, Layer } from "effect"

/**
 * How far the gateway of this process has followed what operators change. Only a process that runs both has it: there
 * an operator who was answered finds the change in force with the next request. Other processes hear of it milliseconds
 * later.
 */
export class Followed extends Context.Service<
  Followed,
  {
    /** The gateway knows every change up to `epoch`. */
    readonly report: (epoch: number) => void
    /** Waits for that, but not for long: a gateway that hears no notices looks by itself, within two seconds. */
    readonly reached: (epoch: number) => Effect.Effect<void>
  }
>()("svc/gateway/Followed") {
  static readonly layer = Layer.sync(Followed, () => {
    // before it starts, a gateway has nothing in memory that could be old
    let known = Number.POSITIVE_INFINITY
    const waiting = new Map<(done: Effect.Effect<void>) => void, number>()
    return Followed.of({
      report: (epoch) => {
        known = epoch
        for (const [resume, wanted] of waiting) {
          if (wanted > known) continue
          waiting.delete(resume)
          resume(Effect.void)
        }
      },
      reached: (epoch) =>
        Effect.callback<void>((resume) => {
          if (epoch <= known) return resume(Effect.void)
          waiting.set(resume, epoch)
          return Effect.sync(() => waiting.delete(resume))
        }).pipe(Effect.timeoutOption("3 seconds"), Effect.asVoid)
    })
  })
}
