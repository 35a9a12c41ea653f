import { Effect, Layer, Schedule } from "effect"
import { Redis } from "../../services/Redis.ts"

/**
 * Warns if Redis may delete queued usage records when its memory is full. The process starts anyway, because some
 * hosted Redis services do not offer the policy `noeviction`.
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
    `Redis may delete keys when its memory is full (maxmemory-policy ${policy}). Usage records that are queued in Redis can be lost. Rate limits per minute can restart at zero. Set maxmemory-policy to noeviction.`
  )
})

/** Runs the check in the background. If Redis refuses the command `INFO`, there is only a debug log line. */
export const layer = Layer.effectDiscard(
  Effect.forkScoped(
    Effect.catch(warn, (cause) =>
      Effect.logDebug(
        "Redis refused the command INFO, so its maxmemory-policy was not checked. Redis may delete queued usage records unless the policy is noeviction.",
        { cause }
      )
    )
  )
)
