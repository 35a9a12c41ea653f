import { type Duration, Effect, RcMap, Schema, type Scope, Semaphore } from "effect"

/** No slot became free in time. `whose` names the limit that is reached: that of the process or that of one caller. */
export class ConcurrencyLimitReached extends Schema.TaggedError<ConcurrencyLimitReached>()("NoPlace", {
  whose: Schema.Literals(["process", "caller"])
}) {}

export interface Options {
  readonly maxTotal: number
  /** The number of slots that one caller may hold. */
  readonly maxPerCaller: number
  /** The time that a caller waits for a slot. */
  readonly maxWait: Duration.Input
}

/** Limits the number of expensive operations that run concurrently, in total and per caller. */
export interface ConcurrencyLimit {
  /**
   * Acquires a slot until the scope closes. Fails with `ConcurrencyLimitReached` after `maxWait`. A caller at its own
   * limit does not delay other callers, because it waits separately for one of its own slots.
   */
  readonly acquire: (caller: string) => Effect.Effect<void, ConcurrencyLimitReached, Scope.Scope>
}

export const make = Effect.fnUntraced(function* ({
  maxPerCaller,
  maxTotal,
  maxWait
}: Options): Effect.fn.Return<ConcurrencyLimit, never, Scope.Scope> {
  const processSlots = yield* Semaphore.make(maxTotal)
  const callerSlots = yield* RcMap.make({ lookup: (_caller: string) => Semaphore.make(maxPerCaller) })
  const acquireSlot = (semaphore: Semaphore.Semaphore) =>
    Effect.acquireRelease(semaphore.take(1), () => semaphore.release(1), { interruptible: true })
  return {
    acquire: (caller) =>
      Effect.suspend(() => {
        let whose: ConcurrencyLimitReached["whose"] = "caller"
        return Effect.gen(function* () {
          yield* acquireSlot(yield* RcMap.get(callerSlots, caller))
          whose = "process"
          yield* acquireSlot(processSlots)
        }).pipe(
          Effect.timeoutOrElse({
            duration: maxWait,
            orElse: () => Effect.suspend(() => Effect.fail(new ConcurrencyLimitReached({ whose })))
          })
        )
      })
  }
})
