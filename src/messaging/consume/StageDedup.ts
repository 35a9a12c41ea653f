import { Context, Effect, Layer } from "effect"
import { Redis, type RedisError, type Script } from "../../services/Redis.ts"

/** The exclusive right of one message to do a piece of work in a stage. */
export interface Claim {
  readonly stage: string
  readonly taskId: string
  /** Identifies the work. It is a hash of the task id, the action and the `dedup_key_fields`. */
  readonly signature: string
  readonly messageId: string
  /** True for a redelivery, a retry or a replay. Such a delivery may take over the claim of an earlier delivery. */
  readonly redelivered: boolean
}

/**
 * Prevents two messages from doing the same work concurrently. Stages with `dedup_key_fields` need this service. The
 * end of the handler releases the claim. A later message may then do the same work again.
 */
export class StageDedup extends Context.Service<
  StageDedup,
  {
    /** Succeeds with `false` if another message holds the claim. */
    readonly claim: (claim: Claim) => Effect.Effect<boolean, RedisError>
    readonly release: (claim: Claim) => Effect.Effect<void, RedisError>
  }
>()("svc/messaging/StageDedup") {
  /** Keeps claims in the memory of this process. Suitable for a stage with one worker process. */
  static readonly layerMemory = Layer.sync(StageDedup, () => {
    const claimed = new Map<string, string>()
    return StageDedup.of({
      claim: (claim) =>
        Effect.sync(() => {
          const key = claimKey(claim)
          const holder = claimed.get(key)
          if (holder !== undefined && !(claim.redelivered && holder === claim.messageId)) return false
          claimed.set(key, claim.messageId)
          return true
        }),
      release: (claim) =>
        Effect.sync(() => {
          const key = claimKey(claim)
          if (claimed.get(key) === claim.messageId) claimed.delete(key)
        })
    })
  })

  /**
   * Keeps claims in Redis, for all processes that share it. A process that dies or cannot reach Redis does not release
   * its claim. A redelivery, a retry or a replay of the same message can take over this claim. For other messages, the
   * claim expires after a day.
   */
  static readonly layerRedis = Layer.effect(
    StageDedup,
    Effect.map(Redis, (redis) =>
      StageDedup.of({
        claim: (claim) =>
          redis.run(
            claimScript,
            [redis.key(claimKey(claim))],
            [claim.messageId, claim.redelivered ? 1 : 0, claimTtlSeconds]
          ),
        release: (claim) => redis.run(releaseScript, [redis.key(claimKey(claim))], [claim.messageId])
      })
    )
  )
}

const claimTtlSeconds = 86_400

const claimKey = ({ signature, stage, taskId }: Claim): string =>
  `workflow:contract:${stage}:dedup:${taskId}:${signature}`

const claimScript: Script<boolean> = {
  name: "claim-stage-work",
  lua: `
local holder = redis.call("GET", KEYS[1])
if holder and not (ARGV[2] == "1" and holder == ARGV[1]) then
  return 0
end
redis.call("SET", KEYS[1], ARGV[1], "EX", ARGV[3])
return 1
`,
  step: (call, [key = ""], [messageId = "", redelivered, seconds = ""]) => {
    const holder = call("GET", key)
    if (holder !== null && !(redelivered === "1" && holder === messageId)) return 0
    call("SET", key, messageId, "EX", seconds)
    return 1
  },
  decode: (reply) => reply === 1
}

const releaseScript: Script<void> = {
  name: "release-stage-work",
  lua: `
if redis.call("GET", KEYS[1]) == ARGV[1] then
  redis.call("DEL", KEYS[1])
end
return 0
`,
  step: (call, [key = ""], [messageId]) => {
    if (call("GET", key) === messageId) call("DEL", key)
    return 0
  },
  decode: () => {}
}
