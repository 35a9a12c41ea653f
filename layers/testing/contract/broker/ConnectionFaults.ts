import { Context, Effect } from "effect"

/** Cuts the connection of the broker under test. */
export class ConnectionFaults extends Context.Service<
  ConnectionFaults,
  {
    /** Breaks the connection, and refuses new ones until `restore`. */
    readonly cut: Effect.Effect<void>
    readonly restore: Effect.Effect<void>
  }
>()("svc/testing/ConnectionFaults") {}

/** Restores the connection at the end of the scope, because the next law needs it. */
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
