import { Effect, Layer, Schedule } from "effect"
import { Redis } from "../../services/Redis.ts"

/**
 * Warns where Redis evicts keys when its memory is full. A counter that is evicted is restored from the usage records,
 * but with an `allkeys` policy the queue of usage records may go too, and those are lost.
 *
 * The start is not refused: a managed Redis may leave its user no choice.
 */
export const warn = Effect.gen(function* () {
  const redis = yield* Redis
  const info = yield* Effect.retry(redis.command("INFO", "memory"), {
    schedule: Schedule.spaced("5 seconds"),
    while: ({ retryable }) => retryable
  })
  const [policy, memory] = ["maxmemory_policy", "maxmemory"].map(
    (name) => new RegExp(`^${name}:(\\S+)`, "m").exec(String(info))?.[1]
  )
  if (policy === undefined || policy === "noeviction" || memory === "0") return
  yield* Effect.logWarning(
    `Redis evicts keys when its memory is full (maxmemory-policy ${policy}): usage records that wait for the database can be lost, limits of a minute start anew, and spend is read from the records again. Set maxmemory-policy to noeviction.`
  )
})

/** A Redis whose user may not ask is not asked: `INFO` is refused, or is not there. */
export const layer = Layer.effectDiscard(
  Effect.forkScoped(
    Effect.catch(warn, (cause) => Effect.logDebug("Redis does not say whether it evicts keys", { cause }))
  )
)
