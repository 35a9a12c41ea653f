import { Clock, Effect, type Scope } from "effect"
import * as ConcurrencyLimit from "../../services/ConcurrencyLimit.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"

/** A key that was created a moment ago works after this time at the latest. */
const unknownTtlMs = 1000
const maxUnknown = 10_000

/** The limits leave database sessions free for operators. */
const concurrency = { maxTotal: 8, maxPerCaller: 2, maxWait: "2 seconds" } as const

export type Busy = Refused<"store_unavailable">

/**
 * Looks keys up so that a flood of wrong ones neither occupies the database nor delays others: an address has a share of
 * the look-ups, and a wrong key is remembered for a second.
 */
export const make = <Key, E, R>(
  find: (digest: string) => Effect.Effect<Key | undefined, E, R>
): Effect.Effect<
  (digest: string, address: string) => Effect.Effect<Key | undefined, E | Busy, R>,
  never,
  Scope.Scope
> =>
  Effect.gen(function* () {
    const limit = yield* ConcurrencyLimit.make(concurrency)
    const unknownUntil = new Map<string, number>()

    const remember = (digest: string, until: number) => {
      unknownUntil.delete(digest)
      unknownUntil.set(digest, until)
      if (unknownUntil.size > maxUnknown)
        for (const oldest of unknownUntil.keys()) return void unknownUntil.delete(oldest)
    }

    return (digest, address) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        (unknownUntil.get(digest) ?? 0) > now
          ? Effect.succeed(undefined)
          : limit.acquire(address).pipe(
              Effect.mapError(() => busy),
              Effect.andThen(find(digest)),
              Effect.scoped,
              Effect.tap((key) =>
                Effect.sync(() => {
                  if (key === undefined) remember(digest, now + unknownTtlMs)
                })
              )
            )
      )
  })

const busy = new ControlError("store_unavailable", "Too many gateway keys are being looked up. Try again shortly.")
