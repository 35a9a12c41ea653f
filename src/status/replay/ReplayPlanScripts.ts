import type { Call, Script } from "../../services/Redis.ts"
import { items } from "../dead-letters/DeadLetterIndex.ts"
import { prelude } from "../dead-letters/OutcomeIndex.ts"
import { baseOf } from "../jobs/JobScripts.ts"

export type StepResult = "begun" | "following" | "over"

/** Stands for a person in `paused_by` if every record of a step has failed. */
const failedStep = "failed_step"

const countsOfStep = ["replayed", "failed_again", "failed", "unknown", "not_replayed"] as const

/**
 * Returns how many records of a step were skipped if all others have failed, and nothing otherwise. A record fails that
 * comes back as a dead letter, or that cannot be published. The job counts the records of a step once it has published them.
 */
const skippedLua = `
local function skippedOfFailedStep(key, step)
  local of = 's' .. step .. ':'
  local counts = redis.call('HMGET', key, ${countsOfStep.map((name) => `of .. '${name}'`).join(", ")})
  local replayed, failedAgain = tonumber(counts[1] or '0'), tonumber(counts[2] or '0')
  local failed, unknown = tonumber(counts[3] or '0'), tonumber(counts[4] or '0')
  if failedAgain ~= replayed or unknown > 0 or failedAgain + failed == 0 then return nil end
  return tonumber(counts[5] or '0') - failed
end`

const skippedOfFailedStep = (call: Call, key: string, step: number): number | undefined => {
  const counts = items(call("HMGET", key, ...countsOfStep.map((name) => `s${step}:${name}`)))
  const [replayed = 0, failedAgain = 0, failed = 0, unknown = 0, notReplayed = 0] = counts.map((n) => Number(n ?? 0))
  if (failedAgain !== replayed || unknown > 0 || failedAgain + failed === 0) return undefined
  return notReplayed - failed
}

/**
 * ARGV: id, worker, now, now as text. Returns `begun` if a step begins, `following` while the outcomes of the step are
 * not known, and `over` if the job has ended, is paused, or belongs to another worker. A step of which every record has
 * failed pauses the job, unless somebody has resumed the job since (`resumed_step`).
 */
export const nextStep: Script<StepResult> = {
  name: "dlq-replay-step",
  lua: `${prelude}
${skippedLua}
local key = jobKey(ARGV[1])
local job = redis.call('HMGET', key, 'worker', 'state', 'paused_at', 'step', 'step_end', 'position', 'total', 'ends', 'wait_ms', 'resumed_step')
if job[1] ~= ARGV[2] or job[2] ~= 'running' or job[3] then return 'over' end
if tonumber(job[6]) < tonumber(job[5]) then return 'begun' end
local step = 's' .. job[4] .. ':'
local known = redis.call('HMGET', key, step .. 'replayed', step .. 'handled', step .. 'failed_again', step .. 'published_ms')
local open = tonumber(known[1] or '0') - tonumber(known[2] or '0') - tonumber(known[3] or '0')
if open > 0 and tonumber(ARGV[3]) - tonumber(known[4] or '0') < tonumber(job[9]) then return 'following' end
if tonumber(job[5]) >= tonumber(job[7]) then
  redis.call('HSET', key, 'state', 'finished', 'updated_at', ARGV[4])
  redis.call('HDEL', key, 'worker', 'worker_until')
  redis.call('ZREM', base .. 'replays:staged', ARGV[1])
  redis.call('ZREM', base .. 'replays:timed', ARGV[1])
  return 'over'
end
local skipped = job[10] ~= job[4] and skippedOfFailedStep(key, job[4])
if skipped then
  local reason = 'Every letter of step ' .. job[4] .. (skipped > 0 and ' that was not skipped' or '') .. ' failed'
  redis.call('HSET', key, 'paused_at', ARGV[4], 'paused_by', '${failedStep}', 'paused_reason', reason, 'updated_at', ARGV[4])
  return 'over'
end
local n, next = 0, job[7]
for stepEnd in string.gmatch(job[8], '%d+') do
  n = n + 1
  if n == tonumber(job[4]) + 1 then next = stepEnd end
end
local following = tostring(tonumber(job[4]) + 1)
redis.call('HSET', key, 'step', following, 'step_end', next, 's' .. following .. ':began_at', ARGV[4])
return 'begun'`,
  step: (call, keys, [id = "", worker = "", now = "", at = ""]) => {
    const base = baseOf(keys)
    const key = `${base}replay:${id}`
    const plan = ["step", "step_end", "position", "total", "ends", "wait_ms", "resumed_step"]
    const [holder, state, pausedAt, step, stepEnd, position, total, ends, waitMs, resumed] = items(
      call("HMGET", key, "worker", "state", "paused_at", ...plan)
    )
    if (holder !== worker || state !== "running" || pausedAt !== null) return "over"
    if (Number(position) < Number(stepEnd)) return "begun"
    const counts = ["replayed", "handled", "failed_again", "published_ms"].map((name) => `s${step}:${name}`)
    const [replayed, handled, failedAgain, publishedMs] = items(call("HMGET", key, ...counts))
    const open = Number(replayed ?? 0) - Number(handled ?? 0) - Number(failedAgain ?? 0)
    if (open > 0 && Number(now) - Number(publishedMs ?? 0) < Number(waitMs)) return "following"
    if (Number(stepEnd) >= Number(total)) {
      call("HSET", key, "state", "finished", "updated_at", at)
      call("HDEL", key, "worker", "worker_until")
      call("ZREM", `${base}replays:staged`, id)
      call("ZREM", `${base}replays:timed`, id)
      return "over"
    }
    const skipped = resumed === step ? undefined : skippedOfFailedStep(call, key, Number(step))
    if (skipped !== undefined) {
      const reason = `Every letter of step ${step}${skipped > 0 ? " that was not skipped" : ""} failed`
      call("HSET", key, "paused_at", at, "paused_by", failedStep, "paused_reason", reason, "updated_at", at)
      return "over"
    }
    const next = String(ends).split(",")[Number(step)] ?? String(total)
    call("HSET", key, "step", Number(step) + 1, "step_end", next, `s${Number(step) + 1}:began_at`, at)
    return "begun"
  },
  decode: (reply) => (reply === "begun" || reply === "following" ? reply : "over")
}

/** ARGV: id, now as text, who says so or an empty string, reason. */
export const pause: Script<boolean> = {
  name: "dlq-replay-pause",
  lua: `${prelude}
local job = redis.call('HMGET', jobKey(ARGV[1]), 'state', 'plan', 'paused_at')
if job[1] ~= 'running' or not job[2] or job[3] then return 0 end
redis.call('HSET', jobKey(ARGV[1]), 'paused_at', ARGV[2], 'paused_by', ARGV[3], 'paused_reason', ARGV[4], 'updated_at', ARGV[2])
return 1`,
  step: (call, keys, [id = "", at = "", by = "", reason = ""]) => {
    const key = `${baseOf(keys)}replay:${id}`
    const [state, plan, pausedAt] = items(call("HMGET", key, "state", "plan", "paused_at"))
    if (state !== "running" || plan === null || pausedAt !== null) return 0
    call("HSET", key, "paused_at", at, "paused_by", by, "paused_reason", reason, "updated_at", at)
    return 1
  },
  decode: (reply) => reply === 1
}

/** ARGV: id, now as text. The failures before the pause do not pause the job again, and neither does a step that has failed. */
export const resume: Script<boolean> = {
  name: "dlq-replay-resume",
  lua: `${prelude}
${skippedLua}
local key = jobKey(ARGV[1])
local job = redis.call('HMGET', key, 'state', 'paused_at', 'step', 'step_end', 'position')
if job[1] ~= 'running' or not job[2] then return 0 end
redis.call('HDEL', key, 'paused_at', 'paused_by', 'paused_reason')
redis.call('DEL', key .. ':failures')
redis.call('HSET', key, 'updated_at', ARGV[2])
if job[5] == job[4] and skippedOfFailedStep(key, job[3]) then redis.call('HSET', key, 'resumed_step', job[3]) end
return 1`,
  step: (call, keys, [id = "", at = ""]) => {
    const key = `${baseOf(keys)}replay:${id}`
    const [state, pausedAt, step, stepEnd, position] = items(
      call("HMGET", key, "state", "paused_at", "step", "step_end", "position")
    )
    if (state !== "running" || pausedAt === null) return 0
    call("HDEL", key, "paused_at", "paused_by", "paused_reason")
    call("DEL", `${key}:failures`)
    call("HSET", key, "updated_at", at)
    if (position === stepEnd && skippedOfFailedStep(call, key, Number(step)) !== undefined)
      call("HSET", key, "resumed_step", String(step))
    return 1
  },
  decode: (reply) => reply === 1
}
