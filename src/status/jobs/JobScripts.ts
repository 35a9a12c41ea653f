import type { Call, Script } from "../../services/Redis.ts"
import { items, texts } from "../dead-letters/DeadLetterIndex.ts"

/**
 * The keys of one kind of jobs. All of them have the same beginning, in one hash slot:
 *
 * - `…stats`: a hash; its field `jobs` is the last sequence number. Scripts receive this key and derive the others.
 * - `…<jobs>`: a sorted set of job ids in the order of creation. `…<jobs>:<list>`: the running ones.
 * - `…<job>:<id>`: a hash with the job. Its `state` is `running` until no process has to work on the job any more.
 *   `…<job>:<id>:ids` is the list of what the job is about, in its order. `parts` names this and the other keys of a job.
 * - `…<job>-key:<hash>`: the job that was created with an idempotency key.
 */
export interface JobKind {
  /** The names of its scripts begin with it. */
  readonly scripts: string
  readonly jobs: string
  readonly job: string
  readonly lists: ReadonlyArray<string>
  readonly parts: ReadonlyArray<string>
}

export type CreateResult =
  | { readonly _tag: "Created" | "Existing"; readonly id: string }
  | { readonly _tag: "OtherRequest" }
  | { readonly _tag: "TooMany" }

export interface JobScripts {
  /**
   * ARGV: id, hash of the idempotency key or an empty string, hash of the request, TTL of the key in seconds, maximum
   * jobs, maximum running jobs, the list of the running job or an empty string, number of field arguments, the fields as
   * pairs, then the ids.
   */
  readonly create: Script<CreateResult>
  /** ARGV: id, worker, now, end of the lease. Returns false if the job has ended or is paused, or another worker has it. */
  readonly take: Script<boolean>
}

/** Returns the start of the keys of all jobs. */
export const baseOf = ([stats = ""]: ReadonlyArray<string>): string => stats.slice(0, -"stats".length)

/** The Lua functions that name keys. */
export const preludeOf = ({ job, jobs, lists }: JobKind): string => `
local base = string.sub(KEYS[1], 1, -6)
local function jobKey(id) return base .. '${job}:' .. id end
local lists = { ${lists.map((list) => `base .. '${jobs}:${list}'`).join(", ")} }
local function isRunning(id)
  for _, list in ipairs(lists) do
    if redis.call('ZSCORE', list, id) then return true end
  end
  return false
end`

const idsPerPush = 1_000

const dropsAtOnce = 10

export const scriptsOf = (kind: JobKind): JobScripts => {
  const prelude = preludeOf(kind)
  const { job, jobs, parts, scripts } = kind
  const listsOf = (base: string) => kind.lists.map((list) => `${base}${jobs}:${list}`)
  const dropLua = `redis.call('DEL', jobKey(old)${parts.map((part) => `, jobKey(old) .. ':${part}'`).join("")})`

  return {
    create: {
      name: `${scripts}-create`,
      lua: `${prelude}
local id, key, fingerprint = ARGV[1], ARGV[2], ARGV[3]
if key ~= '' then
  local known = redis.call('HMGET', base .. '${job}-key:' .. key, 'job', 'fingerprint')
  if known[1] and redis.call('EXISTS', jobKey(known[1])) == 1 then
    if known[2] ~= fingerprint then return { 'other' } end
    return { 'existing', known[1] }
  end
end
local running = 0
for _, list in ipairs(lists) do running = running + redis.call('ZCARD', list) end
if ARGV[7] ~= '' and running >= tonumber(ARGV[6]) then return { 'too_many' } end
local seq = redis.call('HINCRBY', KEYS[1], 'jobs', '1')
local fields = 8 + tonumber(ARGV[8])
redis.call('HSET', jobKey(id), unpack(ARGV, 9, fields))
for from = fields + 1, #ARGV, ${idsPerPush} do
  redis.call('RPUSH', jobKey(id) .. ':ids', unpack(ARGV, from, math.min(from + ${idsPerPush - 1}, #ARGV)))
end
redis.call('ZADD', base .. '${jobs}', seq, id)
if ARGV[7] ~= '' then redis.call('ZADD', base .. '${jobs}:' .. ARGV[7], seq, id) end
if key ~= '' then
  redis.call('HSET', base .. '${job}-key:' .. key, 'job', id, 'fingerprint', fingerprint)
  redis.call('EXPIRE', base .. '${job}-key:' .. key, ARGV[4])
end
local excess = redis.call('ZCARD', base .. '${jobs}') - tonumber(ARGV[5])
if excess > 0 then
  local dropped = 0
  for _, old in ipairs(redis.call('ZRANGEBYSCORE', base .. '${jobs}', '-inf', '+inf', 'LIMIT', '0', tonumber(ARGV[6]) + ${dropsAtOnce})) do
    if dropped < excess and dropped < ${dropsAtOnce} and old ~= id and not isRunning(old) then
      redis.call('ZREM', base .. '${jobs}', old)
      ${dropLua}
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
        const keyOf = (id: string) => `${base}${job}:${id}`
        const idempotency = `${base}${job}-key:${key}`
        if (key !== "") {
          const [known, knownFingerprint] = items(call("HMGET", idempotency, "job", "fingerprint"))
          if (typeof known === "string" && call("EXISTS", keyOf(known)) === 1) {
            return knownFingerprint === fingerprint ? ["existing", known] : ["other"]
          }
        }
        const lists = listsOf(base)
        const running = lists.reduce((sum, list) => sum + Number(call("ZCARD", list)), 0)
        if (list !== "" && running >= Number(maxRunning)) return ["too_many"]
        const seq = String(call("HINCRBY", keys[0] ?? "", "jobs", "1"))
        call("HSET", keyOf(id), ...given.slice(0, Number(n)))
        const ids = given.slice(Number(n))
        if (ids.length > 0) call("RPUSH", `${keyOf(id)}:ids`, ...ids)
        call("ZADD", `${base}${jobs}`, seq, id)
        if (list !== "") call("ZADD", `${base}${jobs}:${list}`, seq, id)
        if (key !== "") {
          call("HSET", idempotency, "job", id, "fingerprint", fingerprint)
          call("EXPIRE", idempotency, seconds)
        }
        const excess = Math.min(Number(call("ZCARD", `${base}${jobs}`)) - Number(maxJobs), dropsAtOnce)
        if (excess > 0) {
          const count = Number(maxRunning) + dropsAtOnce
          const oldest = texts(call("ZRANGEBYSCORE", `${base}${jobs}`, "-inf", "+inf", "LIMIT", "0", count))
          const droppable = oldest.filter(
            (old) => old !== id && lists.every((list) => call("ZSCORE", list, old) === null)
          )
          for (const old of droppable.slice(0, excess)) {
            call("ZREM", `${base}${jobs}`, old)
            call("DEL", keyOf(old), ...parts.map((part) => `${keyOf(old)}:${part}`))
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
    },

    // A job that has ended may still be among the running ones, because earlier releases left some of them there.
    take: {
      name: `${scripts}-take`,
      lua: `${prelude}
local job = redis.call('HMGET', jobKey(ARGV[1]), 'state', 'worker', 'worker_until', 'paused_at')
if job[1] ~= 'running' then
  for _, list in ipairs(lists) do redis.call('ZREM', list, ARGV[1]) end
end
if job[1] ~= 'running' or job[4] then return 0 end
if job[2] and job[2] ~= ARGV[2] and tonumber(job[3]) > tonumber(ARGV[3]) then return 0 end
redis.call('HSET', jobKey(ARGV[1]), 'worker', ARGV[2], 'worker_until', ARGV[4])
return 1`,
      step: (call, keys, [id = "", worker = "", now = "", until = ""]) => {
        const base = baseOf(keys)
        const key = `${base}${job}:${id}`
        const [state, holder, holderUntil, pausedAt] = items(
          call("HMGET", key, "state", "worker", "worker_until", "paused_at")
        )
        if (state !== "running") removeFromLists(call, listsOf(base), id)
        if (state !== "running" || pausedAt !== null) return 0
        if (holder !== null && holder !== worker && Number(holderUntil) > Number(now)) return 0
        call("HSET", key, "worker", worker, "worker_until", until)
        return 1
      },
      decode: (reply) => reply === 1
    }
  }
}

const removeFromLists = (call: Call, lists: ReadonlyArray<string>, id: string): void => {
  for (const list of lists) call("ZREM", list, id)
}
