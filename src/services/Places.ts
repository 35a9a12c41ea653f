import { type Duration, Effect, RcMap, Schema, type Scope, Semaphore } from "effect"

/** No place became free in time: of all, or of those that the caller itself may have. */
export class NoPlace extends Schema.TaggedError<NoPlace>()("NoPlace", {
  whose: Schema.Literals(["process", "caller"])
}) {}

export interface Options {
  readonly most: number
  /** The number of these that one caller may have. */
  readonly each: number
  /** A caller waits for a place for so long. */
  readonly waits: Duration.Input
}

/** Places for work that takes much of what all share. Each caller may have some of them. */
export interface Places {
  /** A place until the scope closes. A caller that has all of its own waits for those, and takes nobody's turn. */
  readonly take: (caller: string) => Effect.Effect<void, NoPlace, Scope.Scope>
}

export const make = Effect.fnUntraced(function* ({
  each,
  most,
  waits
}: Options): Effect.fn.Return<Places, never, Scope.Scope> {
  const all = yield* Semaphore.make(most)
  const callers = yield* RcMap.make({ lookup: (_caller: string) => Semaphore.make(each) })
  const placeIn = (places: Semaphore.Semaphore) =>
    Effect.acquireRelease(places.take(1), () => places.release(1), { interruptible: true })
  return {
    take: (caller) =>
      Effect.suspend(() => {
        let whose: NoPlace["whose"] = "caller"
        return Effect.gen(function* () {
          yield* placeIn(yield* RcMap.get(callers, caller))
          whose = "process"
          yield* placeIn(all)
        }).pipe(
          Effect.timeoutOrElse({
            duration: waits,
            orElse: () => Effect.suspend(() => Effect.fail(new NoPlace({ whose })))
          })
        )
      })
  }
})
