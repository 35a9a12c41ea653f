import { type Duration, Effect, RcMap, Schema, type Scope, Semaphore } from "effect"

/** No place became free in time: of all, or of those that the caller itself may have. */
export class ConcurrencyLimitReached extends Schema.TaggedError<ConcurrencyLimitReached>()("NoPlace", {
  whose: Schema.Literals(["process", "caller"])
}) {}

export interface Options {
  readonly maxTotal: number
  /** The number of these that one caller may have. */
  readonly maxPerCaller: number
  /** A caller waits for a place for so long. */
  readonly maxWait: Duration.Input
}

/** Places for work that takes much of what all share. Each caller may have some of them. */
export interface ConcurrencyLimit {
  /** A place until the scope closes. A caller that has all of its own waits for those, and takes nobody's turn. */
  readonly acquire: (caller: string) => Effect.Effect<void, ConcurrencyLimitReached, Scope.Scope>
}

export const make = Effect.fnUntraced(function* ({
  maxPerCaller,
  maxTotal,
  maxWait
}: Options): Effect.fn.Return<ConcurrencyLimit, never, Scope.Scope> {
  const processSlots = yield* Semaphore.make(maxTotal)
  const callerSlots = yield* RcMap.make({ lookup: (_caller: string) => Semaphore.make(maxPerCaller) })
  const acquireSlot = (places: Semaphore.Semaphore) =>
    Effect.acquireRelease(places.take(1), () => places.release(1), { interruptible: true })
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
