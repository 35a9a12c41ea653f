import { Context, Effect } from "effect"

/** What may happen to the connection of the broker under test. */
export class ConnectionFaults extends Context.Service<
  ConnectionFaults,
  {
    /** It is lost, and none is accepted before `restore`. */
    readonly cut: Effect.Effect<void>
    readonly restore: Effect.Effect<void>
  }
>()("test/ConnectionFaults") {}

/** A failed test must not leave the next one without a connection. */
export const faults = Effect.map(ConnectionFaults, ({ cut, restore }) => {
  let isCut = false
  const again = Effect.suspend(() => {
    if (!isCut) return Effect.void
    isCut = false
    return restore
  })
  const cutHere = Effect.andThen(
    Effect.addFinalizer(() => again),
    Effect.suspend(() => {
      isCut = true
      return cut
    })
  )
  return { cutHere, restore: again }
})
