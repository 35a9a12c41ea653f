import { Array as Arr, Clock, Effect, Option, type Scope } from "effect"
import { HttpServerRequest } from "effect/http"
import * as ConcurrencyLimit from "../../services/ConcurrencyLimit.ts"
import * as FairShare from "../../services/FairShare.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"

/** A secret that was stored or enabled a moment ago works after this time at the latest. */
const unknownTtlMs = 1000
const maxUnknown = 10_000

/** Gateway keys and sessions each have these limits. They leave database sessions free for what operators do. */
const concurrency = { maxTotal: 4, maxPerCaller: 2, maxWait: "2 seconds" } as const

export type Busy = Refused<"store_unavailable">

/** The caller whose share the look-ups of a request count against. */
export const callerAddress = Effect.map(HttpServerRequest.HttpServerRequest, ({ remoteAddress }) =>
  FairShare.callerOfAddress(Option.getOrElse(remoteAddress, () => ""))
)

/**
 * Looks secrets up so that a flood of wrong ones neither occupies the database nor delays others: an address has a share
 * of the look-ups, and a wrong secret is remembered for a second. `find` gets the digests of the secrets of one request
 * that may be known, and returns what belongs to the first one that is. `secrets` names them in error messages.
 */
export const make = <Found, E, R>(
  secrets: string,
  find: (digests: Arr.NonEmptyReadonlyArray<string>) => Effect.Effect<Found | undefined, E, R>
): Effect.Effect<
  (digests: ReadonlyArray<string>, address: string) => Effect.Effect<Found | undefined, E | Busy, R>,
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

    const busy = new ControlError("store_unavailable", `Too many ${secrets} are being looked up. Try again shortly.`)

    return (digests, address) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const open = digests.filter((digest) => (unknownUntil.get(digest) ?? 0) <= now)
        if (!Arr.isReadonlyArrayNonEmpty(open)) return Effect.succeed(undefined)
        return limit.acquire(address).pipe(
          Effect.mapError(() => busy),
          Effect.andThen(find(open)),
          Effect.scoped,
          Effect.tap((found) =>
            Effect.sync(() => {
              if (found === undefined) for (const digest of open) remember(digest, now + unknownTtlMs)
            })
          )
        )
      })
  })
