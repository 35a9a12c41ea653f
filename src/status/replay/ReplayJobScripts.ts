import type { Reply, Script } from "../../services/Redis.ts"
import { items, texts } from "../dead-letters/DeadLetterIndex.ts"

/**
 * The keys of replay jobs. They have the same prefix as the dead-letter index.
 *
 * - `…replays`, `…replays:running`: sorted sets of job ids in the order of creation.
 * - `…replay:<id>`: a hash with the job. `…replay:<id>:ids` and `…replay:<id>:problems` are lists.
 * - `…replay:<id>:begun`: a hash with the records of the current batch that the job has begun to publish. Each value is
 *   the token of the attempt, or `replayed`.
 * - `…replay-key:<hash>`: the job that was created with an idempotency key.
 *
 * Scripts receive the key `…stats` and derive the other keys from it.
 */
const prelude = `
local base = string.sub(KEYS[1], 1, -6)
local function jobKey(id) return base .. 'replay:' .. id end`

const baseOf = ([stats = ""]: ReadonlyArray<string>): string => stats.slice(0, -"stats".length)

const idsPerPush = 1_000

const dropsAtOnce = 10

type CreateResult =
  | { readonly _tag: "Created" | "Existing"; readonly id: string }
  | { readonly _tag: "OtherRequest" }
  | { readonly _tag: "TooMany" }

/**
 * ARGV: id, hash of the idempotency key or an empty string, hash of the request, TTL of the key in seconds, maximum
 * jobs, maximum running jobs, 1 if the job has records, number of field arguments, the fields as pairs, then the ids.
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
if ARGV[7] == '1' and redis.call('ZCARD', base .. 'replays:running') >= tonumber(ARGV[6]) then return { 'too_many' } end
local seq = redis.call('HINCRBY', KEYS[1], 'jobs', '1')
local fields = 8 + tonumber(ARGV[8])
redis.call('HSET', jobKey(id), unpack(ARGV, 9, fields))
for from = fields + 1, #ARGV, ${idsPerPush} do
  redis.call('RPUSH', jobKey(id) .. ':ids', unpack(ARGV, from, math.min(from + ${idsPerPush - 1}, #ARGV)))
end
redis.call('ZADD', base .. 'replays', seq, id)
if ARGV[7] == '1' then redis.call('ZADD', base .. 'replays:running', seq, id) end
if key ~= '' then
  redis.call('HSET', base .. 'replay-key:' .. key, 'job', id, 'fingerprint', fingerprint)
  redis.call('EXPIRE', base .. 'replay-key:' .. key, ARGV[4])
end
local excess = redis.call('ZCARD', base .. 'replays') - tonumber(ARGV[5])
if excess > 0 then
  local dropped = 0
  for _, old in ipairs(redis.call('ZRANGEBYSCORE', base .. 'replays', '-inf', '+inf', 'LIMIT', '0', tonumber(ARGV[6]) + ${dropsAtOnce})) do
    if dropped < excess and dropped < ${dropsAtOnce} and not redis.call('ZSCORE', base .. 'replays:running', old) then
      redis.call('ZREM', base .. 'replays', old)
      redis.call('DEL', jobKey(old), jobKey(old) .. ':ids', jobKey(old) .. ':problems', jobKey(old) .. ':begun')
      dropped = dropped + 1
    end
  end
end
return { 'created', id }`,
  step: (
    call,
    keys,
    [id = "", key = "", fingerprint = "", seconds = "", maxJobs = "", maxRunning = "", hasWork = "", ...rest]
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
    if (hasWork === "1" && Number(call("ZCARD", `${base}replays:running`)) >= Number(maxRunning)) return ["too_many"]
    const seq = String(call("HINCRBY", keys[0] ?? "", "jobs", "1"))
    call("HSET", job, ...given.slice(0, Number(n)))
    const ids = given.slice(Number(n))
    if (ids.length > 0) call("RPUSH", `${job}:ids`, ...ids)
    call("ZADD", `${base}replays`, seq, id)
    if (hasWork === "1") call("ZADD", `${base}replays:running`, seq, id)
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
      const droppable = texts(oldest).filter((old) => call("ZSCORE", `${base}replays:running`, old) === null)
      for (const old of droppable.slice(0, excess)) {
        call("ZREM", `${base}replays`, old)
        const key = `${base}replay:${old}`
        call("DEL", key, `${key}:ids`, `${key}:problems`, `${key}:begun`)
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

/** ARGV: id, worker, now, end of the lease. Returns 0 if the job has ended or another worker has the lease. */
export const take: Script<boolean> = {
  name: "dlq-replay-take",
  lua: `${prelude}
local job = redis.call('HMGET', jobKey(ARGV[1]), 'state', 'worker', 'worker_until')
if job[1] ~= 'running' then return 0 end
if job[2] and job[2] ~= ARGV[2] and tonumber(job[3]) > tonumber(ARGV[3]) then return 0 end
redis.call('HSET', jobKey(ARGV[1]), 'worker', ARGV[2], 'worker_until', ARGV[4])
return 1`,
  step: (call, keys, [id = "", worker = "", now = "", until = ""]) => {
    const job = `${baseOf(keys)}replay:${id}`
    const [state, holder, holderUntil] = items(call("HMGET", job, "state", "worker", "worker_until"))
    if (state !== "running") return 0
    if (holder !== null && holder !== worker && Number(holderUntil) > Number(now)) return 0
    call("HSET", job, "worker", worker, "worker_until", until)
    return 1
  },
  decode: (reply) => reply === 1
}

const counters = ["replayed", "skipped", "failed", "unknown"] as const

/**
 * ARGV: id, worker, position before, position after, four counts, now as text, maximum problems, problems. Adds the
 * counts of a batch to the job. Returns `running` if the job continues, and `over` if the job has ended. Returns `lost`
 * and adds nothing if another worker has the lease or the position has changed.
 */
export const advance: Script<"running" | "over" | "lost"> = {
  name: "dlq-replay-advance",
  lua: `${prelude}
local key = jobKey(ARGV[1])
local job = redis.call('HMGET', key, 'worker', 'position', 'total', 'state')
if job[1] ~= ARGV[2] or job[2] ~= ARGV[3] then return 'lost' end
redis.call('HSET', key, 'position', ARGV[4], 'updated_at', ARGV[9])
${counters.map((name, i) => `redis.call('HINCRBY', key, '${name}', ARGV[${i + 5}])`).join("\n")}
local room = tonumber(ARGV[10]) - redis.call('LLEN', key .. ':problems')
for i = 11, math.min(#ARGV, 10 + room) do redis.call('RPUSH', key .. ':problems', ARGV[i]) end
redis.call('HDEL', key, 'waiting')
redis.call('DEL', key .. ':begun')
if job[4] == 'running' and tonumber(ARGV[4]) < tonumber(job[3]) then return 'running' end
if job[4] == 'running' then
  redis.call('HSET', key, 'state', 'finished')
  redis.call('ZREM', base .. 'replays:running', ARGV[1])
end
redis.call('HDEL', key, 'worker', 'worker_until')
return 'over'`,
  step: (call, keys, [id = "", worker = "", from = "", to = "", ...rest]) => {
    const base = baseOf(keys)
    const key = `${base}replay:${id}`
    const [holder, position, total, state] = items(call("HMGET", key, "worker", "position", "total", "state"))
    if (holder !== worker || position !== from) return "lost"
    const [at = "", most = "", ...problems] = rest.slice(counters.length)
    call("HSET", key, "position", to, "updated_at", at)
    for (const [i, name] of counters.entries()) call("HINCRBY", key, name, rest[i] ?? "0")
    const room = Number(most) - Number(call("LLEN", `${key}:problems`))
    for (const problem of problems.slice(0, Math.max(0, room))) call("RPUSH", `${key}:problems`, problem)
    call("HDEL", key, "waiting")
    call("DEL", `${key}:begun`)
    if (state === "running" && Number(to) < Number(total)) return "running"
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
end
return state`,
  step: (call, keys, [id = "", at = ""]) => {
    const base = baseOf(keys)
    const key = `${base}replay:${id}`
    const state = call("HGET", key, "state")
    if (state === "running") {
      call("HSET", key, "state", "cancelled", "updated_at", at)
      call("HDEL", key, "waiting")
      call("ZREM", `${base}replays:running`, id)
    }
    return state
  },
  decode: (reply: Reply) => (typeof reply === "string" ? reply : undefined)
}
