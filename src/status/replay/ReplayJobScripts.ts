import type { Reply, Script } from "../../services/Redis.ts"
import * as Index from "../dead-letters/DeadLetterIndex.ts"
import { items, texts } from "../dead-letters/DeadLetterIndex.ts"
import { countFailure, prelude } from "../dead-letters/OutcomeIndex.ts"

/**
 * The keys of replay jobs. They have the same prefix as the dead-letter index.
 *
 * - `…replays`, `…replays:running`, `…replays:staged`, `…replays:timed`: sorted sets of job ids in the order of creation.
 *   Running jobs with a plan are in one of the last two, because earlier releases would replay their records all at once.
 *   Those that begin later are in the last one, because earlier releases would begin at once.
 * - `…replay:<id>`: a hash with the job. `…replay:<id>:ids` and `…replay:<id>:problems` are lists.
 * - `…replay:<id>:begun`: a hash with the records of the current batch that the job has begun to publish. Each value is
 *   the token of the attempt, or `replayed`.
 * - The hash of a job with a plan has its `step`, the position `step_end`, and `s<step>:…` for what is known of steps.
 * - `…replay-key:<hash>`: the job that was created with an idempotency key.
 *
 * Scripts receive the key `…stats` and derive the other keys from it.
 */
const baseOf = ([stats = ""]: ReadonlyArray<string>): string => stats.slice(0, -"stats".length)

const lists = ["running", "staged", "timed"]

const idsPerPush = 1_000

const dropsAtOnce = 10

type CreateResult =
  | { readonly _tag: "Created" | "Existing"; readonly id: string }
  | { readonly _tag: "OtherRequest" }
  | { readonly _tag: "TooMany" }

/**
 * ARGV: id, hash of the idempotency key or an empty string, hash of the request, TTL of the key in seconds, maximum
 * jobs, maximum running jobs, the sorted set of the running job or an empty string, number of field arguments, the fields as pairs, then the ids.
 */
export const create: Script<CreateResult> = {
  name: "dlq-replay-create",
  lua: `${prelude}
local id, key, fingerprint = ARGV[1], ARGV[2], ARGV[3]
if key ~= '' then
  local known = redis.call('HMGET', base .. 'replay-key:' .. key, 'job', 'fingerprint')
  if known[1] and redis.call('EXISTS', jobKey(known[1])) == 1 then
    if known[2] ~= fingerprint then return { 'other' } end
    return { 'existing', known[1] }
  end
end
local running = redis.call('ZCARD', base .. 'replays:running') + redis.call('ZCARD', base .. 'replays:staged')
  + redis.call('ZCARD', base .. 'replays:timed')
if ARGV[7] ~= '' and running >= tonumber(ARGV[6]) then return { 'too_many' } end
local seq = redis.call('HINCRBY', KEYS[1], 'jobs', '1')
local fields = 8 + tonumber(ARGV[8])
redis.call('HSET', jobKey(id), unpack(ARGV, 9, fields))
for from = fields + 1, #ARGV, ${idsPerPush} do
  redis.call('RPUSH', jobKey(id) .. ':ids', unpack(ARGV, from, math.min(from + ${idsPerPush - 1}, #ARGV)))
end
redis.call('ZADD', base .. 'replays', seq, id)
if ARGV[7] ~= '' then redis.call('ZADD', base .. 'replays:' .. ARGV[7], seq, id) end
if key ~= '' then
  redis.call('HSET', base .. 'replay-key:' .. key, 'job', id, 'fingerprint', fingerprint)
  redis.call('EXPIRE', base .. 'replay-key:' .. key, ARGV[4])
end
local excess = redis.call('ZCARD', base .. 'replays') - tonumber(ARGV[5])
if excess > 0 then
  local dropped = 0
  for _, old in ipairs(redis.call('ZRANGEBYSCORE', base .. 'replays', '-inf', '+inf', 'LIMIT', '0', tonumber(ARGV[6]) + ${dropsAtOnce})) do
    if dropped < excess and dropped < ${dropsAtOnce} and not redis.call('ZSCORE', base .. 'replays:running', old)
      and not redis.call('ZSCORE', base .. 'replays:staged', old) and not redis.call('ZSCORE', base .. 'replays:timed', old) then
      redis.call('ZREM', base .. 'replays', old)
      redis.call('DEL', jobKey(old), jobKey(old) .. ':ids', jobKey(old) .. ':problems', jobKey(old) .. ':begun', jobKey(old) .. ':failures')
      dropped = dropped + 1
    end
  end
end
return { 'created', id }`,
  step: (
    call,
    keys,
    [id = "", key = "", fingerprint = "", seconds = "", maxJobs = "", maxRunning = "", list = "", ...rest]
  ) => {
    const base = baseOf(keys)
    const [n = "", ...given] = rest
    const job = `${base}replay:${id}`
    const idempotency = `${base}replay-key:${key}`
    if (key !== "") {
      const [known, knownFingerprint] = items(call("HMGET", idempotency, "job", "fingerprint"))
      if (typeof known === "string" && call("EXISTS", `${base}replay:${known}`) === 1) {
        return knownFingerprint === fingerprint ? ["existing", known] : ["other"]
      }
    }
    const running = lists.reduce((sum, list) => sum + Number(call("ZCARD", `${base}replays:${list}`)), 0)
    if (list !== "" && running >= Number(maxRunning)) return ["too_many"]
    const seq = String(call("HINCRBY", keys[0] ?? "", "jobs", "1"))
    call("HSET", job, ...given.slice(0, Number(n)))
    const ids = given.slice(Number(n))
    if (ids.length > 0) call("RPUSH", `${job}:ids`, ...ids)
    call("ZADD", `${base}replays`, seq, id)
    if (list !== "") call("ZADD", `${base}replays:${list}`, seq, id)
    if (key !== "") {
      call("HSET", idempotency, "job", id, "fingerprint", fingerprint)
      call("EXPIRE", idempotency, seconds)
    }
    const excess = Math.min(Number(call("ZCARD", `${base}replays`)) - Number(maxJobs), dropsAtOnce)
    if (excess > 0) {
      const oldest = call(
        "ZRANGEBYSCORE",
        `${base}replays`,
        "-inf",
        "+inf",
        "LIMIT",
        "0",
        Number(maxRunning) + dropsAtOnce
      )
      const droppable = texts(oldest).filter((old) =>
        lists.every((list) => call("ZSCORE", `${base}replays:${list}`, old) === null)
      )
      for (const old of droppable.slice(0, excess)) {
        call("ZREM", `${base}replays`, old)
        const key = `${base}replay:${old}`
        call("DEL", key, `${key}:ids`, `${key}:problems`, `${key}:begun`, `${key}:failures`)
      }
    }
    return ["created", id]
  },
  decode: (reply) => {
    const [outcome, id] = texts(reply)
    if (outcome === "other") return { _tag: "OtherRequest" }
    if (outcome === "too_many") return { _tag: "TooMany" }
    return { _tag: outcome === "created" ? "Created" : "Existing", id: String(id) }
  }
}

/**
 * ARGV: id, worker, now, end of the lease. Returns 0 if the job has ended or is paused, or another worker has it. An
 * earlier release that cancels a job with a plan leaves it among those with one.
 */
export const take: Script<boolean> = {
  name: "dlq-replay-take",
  lua: `${prelude}
local job = redis.call('HMGET', jobKey(ARGV[1]), 'state', 'worker', 'worker_until', 'paused_at')
if job[1] ~= 'running' then
  redis.call('ZREM', base .. 'replays:staged', ARGV[1])
  redis.call('ZREM', base .. 'replays:timed', ARGV[1])
end
if job[1] ~= 'running' or job[4] then return 0 end
if job[2] and job[2] ~= ARGV[2] and tonumber(job[3]) > tonumber(ARGV[3]) then return 0 end
redis.call('HSET', jobKey(ARGV[1]), 'worker', ARGV[2], 'worker_until', ARGV[4])
return 1`,
  step: (call, keys, [id = "", worker = "", now = "", until = ""]) => {
    const job = `${baseOf(keys)}replay:${id}`
    const [state, holder, holderUntil, pausedAt] = items(
      call("HMGET", job, "state", "worker", "worker_until", "paused_at")
    )
    if (state !== "running") {
      call("ZREM", `${baseOf(keys)}replays:staged`, id)
      call("ZREM", `${baseOf(keys)}replays:timed`, id)
    }
    if (state !== "running" || pausedAt !== null) return 0
    if (holder !== null && holder !== worker && Number(holderUntil) > Number(now)) return 0
    call("HSET", job, "worker", worker, "worker_until", until)
    return 1
  },
  decode: (reply) => reply === 1
}

const counters = ["replayed", "skipped", "failed", "unknown"] as const

/**
 * ARGV: id, worker, position before, position after, four counts, now as text, now, maximum problems, number of ids,
 * these ids, problems. Adds the counts of a batch to the job. Returns `running` if the job continues, and `over` if the job
 * has ended. Returns `lost` and adds nothing if another worker has the lease or the position has changed. A job with a
 * plan continues until its last step is over.
 *
 * The ids are those of a batch that was interrupted, in their new order: first the records with an outcome. The others
 * are the next ones of the job. What the job knows of them in `begun` stays, because they may have been published.
 */
export const advance: Script<"running" | "over" | "lost"> = {
  name: "dlq-replay-advance",
  lua: `${prelude}
local key = jobKey(ARGV[1])
local job = redis.call('HMGET', key, 'worker', 'position', 'total', 'state', 'step', 'step_end')
if job[1] ~= ARGV[2] or job[2] ~= ARGV[3] then return 'lost' end
redis.call('HSET', key, 'position', ARGV[4], 'updated_at', ARGV[9])
if job[5] then
  local step = 's' .. job[5] .. ':'
  redis.call('HINCRBY', key, step .. 'replayed', ARGV[5])
  redis.call('HINCRBY', key, step .. 'not_replayed', ARGV[6] + ARGV[7] + ARGV[8])
  for _ = 1, tonumber(ARGV[7]) do countFailure(ARGV[1], 'not published', ARGV[9]) end
  if tonumber(ARGV[4]) >= tonumber(job[6]) then
    redis.call('HSET', key, step .. 'published_at', ARGV[9], step .. 'published_ms', ARGV[10])
  end
end
${counters.map((name, i) => `redis.call('HINCRBY', key, '${name}', ARGV[${i + 5}])`).join("\n")}
local room = tonumber(ARGV[11]) - redis.call('LLEN', key .. ':problems')
local reordered = tonumber(ARGV[12])
for i = 1, reordered do redis.call('LSET', key .. ':ids', tonumber(ARGV[3]) + i - 1, ARGV[12 + i]) end
for i = 13 + reordered, math.min(#ARGV, 12 + reordered + room) do redis.call('RPUSH', key .. ':problems', ARGV[i]) end
redis.call('HDEL', key, 'waiting')
if reordered == 0 or job[4] ~= 'running' then redis.call('DEL', key .. ':begun') end
if job[4] == 'running' and (job[5] or tonumber(ARGV[4]) < tonumber(job[3])) then return 'running' end
if job[4] == 'running' then
  redis.call('HSET', key, 'state', 'finished')
  redis.call('ZREM', base .. 'replays:running', ARGV[1])
end
redis.call('HDEL', key, 'worker', 'worker_until')
return 'over'`,
  step: (call, keys, [id = "", worker = "", from = "", to = "", ...rest]) => {
    const base = baseOf(keys)
    const key = `${base}replay:${id}`
    const [holder, position, total, state, step, stepEnd] = items(
      call("HMGET", key, "worker", "position", "total", "state", "step", "step_end")
    )
    if (holder !== worker || position !== from) return "lost"
    const [at = "", nowMs = "", most = "", count = "", ...idsAndProblems] = rest.slice(counters.length)
    const reordered = idsAndProblems.slice(0, Number(count))
    const problems = idsAndProblems.slice(reordered.length)
    call("HSET", key, "position", to, "updated_at", at)
    if (typeof step === "string") {
      const [replayed = "", skipped, failed, unknown] = rest
      call("HINCRBY", key, `s${step}:replayed`, replayed)
      call("HINCRBY", key, `s${step}:not_replayed`, Number(skipped) + Number(failed) + Number(unknown))
      for (let n = 0; n < Number(failed); n++) countFailure(Index.of(call, keys), id, "not published", at)
      if (Number(to) >= Number(stepEnd)) call("HSET", key, `s${step}:published_at`, at, `s${step}:published_ms`, nowMs)
    }
    for (const [i, name] of counters.entries()) call("HINCRBY", key, name, rest[i] ?? "0")
    const room = Number(most) - Number(call("LLEN", `${key}:problems`))
    for (const [i, dlqId] of reordered.entries()) call("LSET", `${key}:ids`, Number(from) + i, dlqId)
    for (const problem of problems.slice(0, Math.max(0, room))) call("RPUSH", `${key}:problems`, problem)
    call("HDEL", key, "waiting")
    if (reordered.length === 0 || state !== "running") call("DEL", `${key}:begun`)
    if (state === "running" && (typeof step === "string" || Number(to) < Number(total))) return "running"
    if (state === "running") {
      call("HSET", key, "state", "finished")
      call("ZREM", `${base}replays:running`, id)
    }
    call("HDEL", key, "worker", "worker_until")
    return "over"
  },
  decode: (reply) => (reply === "running" || reply === "over" ? reply : "lost")
}

export const wait: Script<boolean> = {
  name: "dlq-replay-wait",
  lua: `${prelude}
if redis.call('HGET', jobKey(ARGV[1]), 'worker') ~= ARGV[2] then return 0 end
redis.call('HSET', jobKey(ARGV[1]), 'waiting', ARGV[3])
return 1`,
  step: (call, keys, [id = "", worker = "", why = ""]) => {
    const key = `${baseOf(keys)}replay:${id}`
    if (call("HGET", key, "worker") !== worker) return 0
    call("HSET", key, "waiting", why)
    return 1
  },
  decode: (reply) => reply === 1
}

/** ARGV: id, now as text. Returns the state before the call, or nil if the job does not exist. */
export const cancel: Script<string | undefined> = {
  name: "dlq-replay-cancel",
  lua: `${prelude}
local state = redis.call('HGET', jobKey(ARGV[1]), 'state')
if state == 'running' then
  redis.call('HSET', jobKey(ARGV[1]), 'state', 'cancelled', 'updated_at', ARGV[2])
  redis.call('HDEL', jobKey(ARGV[1]), 'waiting')
  redis.call('ZREM', base .. 'replays:running', ARGV[1])
  redis.call('ZREM', base .. 'replays:staged', ARGV[1])
  redis.call('ZREM', base .. 'replays:timed', ARGV[1])
end
return state`,
  step: (call, keys, [id = "", at = ""]) => {
    const base = baseOf(keys)
    const key = `${base}replay:${id}`
    const state = call("HGET", key, "state")
    if (state === "running") {
      call("HSET", key, "state", "cancelled", "updated_at", at)
      call("HDEL", key, "waiting")
      for (const list of lists) call("ZREM", `${base}replays:${list}`, id)
    }
    return state
  },
  decode: (reply: Reply) => (typeof reply === "string" ? reply : undefined)
}
