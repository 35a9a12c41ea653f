import type { Reply, Script } from "../../services/Redis.ts"
import * as Index from "../dead-letters/DeadLetterIndex.ts"
import { items } from "../dead-letters/DeadLetterIndex.ts"
import { countFailure, prelude } from "../dead-letters/OutcomeIndex.ts"
import { baseOf, type JobKind } from "../jobs/JobScripts.ts"

/**
 * The keys of replay jobs. They have the same prefix as the dead-letter index. `JobKind` says what all kinds of jobs have.
 *
 * - Running jobs with a plan are in `…replays:staged` or `…replays:timed`, because earlier releases would replay their
 *   records all at once. Those that begin later are in the last one, because earlier releases would begin at once. An
 *   earlier release that cancels a job with a plan leaves it among those with one.
 * - `…replay:<id>:problems` is a list.
 * - `…replay:<id>:begun`: a hash with the records of the current batch that the job has begun to publish. Each value is
 *   the token of the attempt, or `replayed`.
 * - The hash of a job with a plan has its `step`, the position `step_end`, and `s<step>:…` for what is known of steps.
 */
export const kind: JobKind = {
  scripts: "dlq-replay",
  jobs: "replays",
  job: "replay",
  lists: ["running", "staged", "timed"],
  parts: ["ids", "problems", "begun", "failures"]
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
  redis.call('HINCRBY', key, step .. 'failed', ARGV[7])
  redis.call('HINCRBY', key, step .. 'unknown', ARGV[8])
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
      const [replayed = "", skipped = "", failed = "", unknown = ""] = rest
      call("HINCRBY", key, `s${step}:replayed`, replayed)
      call("HINCRBY", key, `s${step}:not_replayed`, Number(skipped) + Number(failed) + Number(unknown))
      call("HINCRBY", key, `s${step}:failed`, failed)
      call("HINCRBY", key, `s${step}:unknown`, unknown)
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
      for (const list of kind.lists) call("ZREM", `${base}replays:${list}`, id)
    }
    return state
  },
  decode: (reply: Reply) => (typeof reply === "string" ? reply : undefined)
}
