import { Effect, Layer, Schedule } from "effect"
import { Redis } from "../../services/Redis.ts"

/**
 * An evicted counter is restored from the usage records, but an `allkeys` policy may evict their queue and lose them.
 * The process starts anyway, because a managed Redis may not offer another policy.
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

/** A Redis that refuses `INFO` is skipped. */
export const layer = Layer.effectDiscard(
  Effect.forkScoped(
    Effect.catch(warn, (cause) =>
      Effect.logDebug("the eviction policy of Redis could not be read, so it was not checked", { cause })
    )
  )
)
