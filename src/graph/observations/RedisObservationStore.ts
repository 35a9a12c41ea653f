import { Effect, Layer, type Scope } from "effect"
import { SettingsError } from "../../messaging/envelope/Errors.ts"
import { encode, type Observed } from "../../messaging/observe/Observation.ts"
import { type ObservationSink, queued } from "../../messaging/observe/ObservationSink.ts"
import { ValidationIssues } from "../../messaging/topology/Parameters.ts"
import { Redis, type Reply, type Script } from "../../services/Redis.ts"
import * as TimeToLive from "../../status/store/TimeToLive.ts"
import { type ObservationHistory, ObservationStore } from "./ObservationStore.ts"

export interface Parameters {
  /** The prefix of the Redis keys. Workers and HTTP services must use the same one. Default: `"svc-observations"`. */
  readonly prefix?: string | undefined
  /** The time to live after the last observation of a task, in seconds. `null` or 0: unlimited. Default: 86,400. */
  readonly ttl_seconds?: number | null | undefined
  /** The number of observations that are kept per task: 1 to 100,000. Default: 500. */
  readonly history_maxlen?: number | undefined
}

/** Stores observations in Redis, shared by all processes. Fails with a `SettingsError` if a parameter is invalid. */
export const layer = (parameters: Parameters = {}): Layer.Layer<ObservationStore, SettingsError, Redis> =>
  Layer.effect(
    ObservationStore,
    Effect.gen(function* () {
      const redis = yield* Redis
      const { history_maxlen = 500, prefix = "svc-observations", ttl_seconds = 86_400 } = parameters
      const issues = new ValidationIssues()
      if (prefix.trim() === "") issues.addMistake("prefix", "must not be blank")
      const ttl = TimeToLive.normalize(ttl_seconds, issues)
      issues.checkInteger("history_maxlen", history_maxlen, 1, 100_000)
      if (issues.mistakes.length > 0) return yield* SettingsError.of("RedisObservationStore", issues.mistakes)
      const keyOf = (taskId: string) => redis.key(`${prefix}:observed:${taskId}`)
      return ObservationStore.of({
        store: (observation) => {
          const taskId = taskIdOf(observation)
          return taskId === undefined
            ? Effect.succeed("ignored")
            : redis.run(append, [keyOf(taskId)], [encode(observation), history_maxlen, ttl ?? 0])
        },
        history: (taskId) =>
          Effect.map(redis.command("ZRANGEBYSCORE", keyOf(taskId), "-inf", "+inf", "WITHSCORES"), historyOf)
      })
    })
  )

/**
 * Creates a sink for the option `observationSink` of consumers. Handlers do not wait for the sink. Observations of hubs
 * and event streams are not stored, because a long stream would displace the history of its task. The specification
 * calls this function `make_redis_observation_sink`.
 */
export const makeRedisObservationSink = (
  store: ObservationStore["Service"]
): Effect.Effect<ObservationSink, never, Scope.Scope> =>
  Effect.map(
    queued((observation) => store.store(observation)),
    (sink) => (observation) => {
      if (workerComponents.has(observation.component) && taskIdOf(observation) !== undefined) sink(observation)
    }
  )

const workerComponents: ReadonlySet<string> = new Set(["consumer", "aggregation", "workflow"])

const taskIdOf = (observation: Observed): string | undefined =>
  "task_id" in observation && observation.task_id !== null && observation.task_id.trim() !== ""
    ? observation.task_id
    : undefined

/**
 * Each task has one sorted set. Its members are the observations, so there are no duplicates. Their scores are sequence
 * numbers without gaps, because only the oldest members are removed. The next sequence number is therefore the oldest
 * one plus the number of members. The script uses one key, so it works in a Redis cluster.
 *
 * KEYS: the set of the task. ARGV: observation, maximum number of observations, seconds to live (0: no expiry).
 */
export const append: Script<"stored" | "duplicate"> = {
  name: "append-observation",
  lua: `
local first = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '+inf', 'WITHSCORES', 'LIMIT', '0', '1')
local sequence = 1
if first[2] then sequence = tonumber(first[2]) + redis.call('ZCARD', KEYS[1]) end
if redis.call('ZADD', KEYS[1], 'NX', sequence, ARGV[1]) == 0 then return 0 end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', sequence - tonumber(ARGV[2]))
if ARGV[3] ~= '0' then redis.call('EXPIRE', KEYS[1], ARGV[3]) end
return 1
`,
  step: (call, [key = ""], [observation = "", maxlen, ttl = "0"]) => {
    const first = toArray(call("ZRANGEBYSCORE", key, "-inf", "+inf", "WITHSCORES", "LIMIT", 0, 1))
    const sequence = first.length === 0 ? 1 : Number(first[1]) + Number(call("ZCARD", key))
    if (call("ZADD", key, "NX", sequence, observation) === 0) return 0
    call("ZREMRANGEBYSCORE", key, "-inf", sequence - Number(maxlen))
    if (ttl !== "0") call("EXPIRE", key, ttl)
    return 1
  },
  decode: (reply) => (reply === 1 ? "stored" : "duplicate")
}

const historyOf = (reply: Reply): ObservationHistory => {
  const flat = toArray(reply)
  const events = Array.from({ length: flat.length / 2 }, (_, index) => ({
    sequence: Number(flat[2 * index + 1]),
    json: String(flat[2 * index])
  }))
  return { events, oldest: events[0]?.sequence ?? 0 }
}

const toArray = (reply: Reply): ReadonlyArray<Reply> => (Array.isArray(reply) ? reply : [])
