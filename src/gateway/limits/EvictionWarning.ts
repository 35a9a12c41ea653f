import { Effect, Layer, Schedule } from "effect"
import { Redis } from "../../services/Redis.ts"

/**
 * Warns that Redis may evict queued usage records, which would be lost. The process starts anyway, because some hosted
 * Redis services allow no other eviction policy.
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
    `Redis evicts keys when its memory is full (maxmemory-policy ${policy}). Queued usage records can be lost, minute limits restart, and budget counters are restored from the records. Set maxmemory-policy to noeviction.`
  )
})

/** A Redis that refuses the command `INFO` is not checked. */
export const layer = Layer.effectDiscard(
  Effect.forkScoped(
    Effect.catch(warn, (cause) =>
      Effect.logDebug("the eviction policy of Redis could not be read, so nothing warns if it can lose usage records", {
        cause
      })
    )
  )
)
