import { Array as Arr, Deferred, Effect, type Scope, Semaphore } from "effect"
import type { Database } from "../../services/Database.ts"
import { Redis } from "../../services/Redis.ts"
import { redisKeysOf } from "../../state/limits/CounterKeys.ts"
import * as Meters from "../../state/limits/Meters.ts"
import * as RecordedUsage from "../../state/limits/RecordedUsage.ts"
import * as Scripts from "./LimitsScripts.ts"

/** A restoration may take longer than a request, because it continues after the request has timed out. */
const readTimeout = "20 seconds"

/** The limit leaves database connections free for other work, such as key look-ups. */
const maxConcurrent = 3

const maxScopes = 10_000

type Restore = (meters: ReadonlyArray<Meters.Meter>) => Effect.Effect<void, unknown>

/**
 * Restores lost or new counters of days and months from the usage records. Requests with the same limit scope share one
 * restoration. The restoration continues after these requests time out.
 */
export const make: Effect.Effect<Restore, never, Database | Redis | Scope.Scope> = Effect.gen(function* () {
  const context = yield* Effect.context<Database | Redis>()
  const redis = yield* Redis
  const scope = yield* Effect.scope
  const permits = yield* Semaphore.make(maxConcurrent)
  const running = new Map<string, Deferred.Deferred<void, unknown>>()

  const run = Effect.fn("CounterRestoration.restore")(function* (meters: Arr.NonEmptyReadonlyArray<Meters.Meter>) {
    const [{ scope }] = meters
    const restored: Array<readonly [Meters.Meter, number]> = []
    for (const sameRecords of Object.values(Arr.groupBy(meters, RecordedUsage.recordSetKey))) {
      restored.push(...(yield* RecordedUsage.restoredAmounts(sameRecords)))
    }
    const { counters, known, open } = redisKeysOf(redis, { scope, meters: restored.map(([meter]) => meter) })
    yield* redis.run(
      Scripts.restoration,
      [open, known, ...counters],
      restored.flatMap(([meter, sum]) => [meter.name, Meters.markOf(meter), Meters.retentionSeconds[meter.window], sum])
    )
  })

  const restoreScope = (meters: Arr.NonEmptyReadonlyArray<Meters.Meter>) =>
    Effect.suspend(() => {
      const { id } = meters[0].scope
      const pending = running.get(id)
      if (pending !== undefined) return Deferred.await(pending)
      if (running.size >= maxScopes) return Effect.fail(new Error("too many counters are being restored; try later"))
      const done = Deferred.makeUnsafe<void, unknown>()
      running.set(id, done)
      return run(meters).pipe(
        Effect.timeout(readTimeout),
        permits.withPermit,
        Effect.provide(context),
        Effect.onExit((exit) => {
          running.delete(id)
          return Deferred.done(done, exit)
        }),
        Effect.forkIn(scope),
        Effect.andThen(Deferred.await(done))
      )
    })

  return (meters) =>
    Effect.forEach(Object.values(Arr.groupBy(meters, ({ scope }) => scope.id)), restoreScope, {
      concurrency: "unbounded",
      discard: true
    })
})
