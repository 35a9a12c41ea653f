import type { Script } from "../../services/Redis.ts"
import { items } from "../dead-letters/DeadLetterIndex.ts"
import { baseOf, type JobKind, preludeOf } from "../jobs/JobScripts.ts"

/**
 * The keys of cancellations of many tasks. `JobKind` says what all kinds of jobs have.
 *
 * - `…job:<id>:open`: a sorted set of the tasks that were asked for and have no answer, in the order of asking.
 * - `…job:<id>:problems`: a list.
 *
 * The ids of a job that has ended are deleted. The others stay, so that its requests can still be withdrawn.
 */
export const kind: JobKind = {
  scripts: "task-cancellation",
  jobs: "jobs",
  job: "job",
  lists: ["running"],
  parts: ["ids", "open", "problems"]
}

const prelude = preludeOf(kind)

export type Turn = "running" | "over" | "lost"

const turnOf = (reply: unknown): Turn => (reply === "running" || reply === "over" ? reply : "lost")

/**
 * ARGV: id, worker, position before, position after, now as text, now, why the job stops itself or an empty string, the
 * numbers of cancelled, ended and failed tasks, maximum problems, number of tasks that were asked for, these tasks,
 * problems. Counts a batch. Returns `lost` and counts nothing if another worker has the lease or the position has changed.
 */
export const asked: Script<Turn> = {
  name: "task-cancellation-asked",
  lua: `${prelude}
local key = jobKey(ARGV[1])
local job = redis.call('HMGET', key, 'worker', 'position', 'state', 'total', 'stopped_at')
if job[1] ~= ARGV[2] or job[2] ~= ARGV[3] or job[3] ~= 'running' then return 'lost' end
redis.call('HSET', key, 'position', ARGV[4], 'updated_at', ARGV[5])
if not job[5] and (ARGV[7] ~= '' or tonumber(ARGV[4]) >= tonumber(job[4])) then
  redis.call('HSET', key, 'asked_ms', ARGV[6])
  if ARGV[7] ~= '' then redis.call('HSET', key, 'stopped_at', ARGV[5], 'stop_reason', ARGV[7]) end
end
redis.call('HINCRBY', key, 'cancelled', ARGV[8])
redis.call('HINCRBY', key, 'ended', ARGV[9])
redis.call('HINCRBY', key, 'failed', ARGV[10])
local open = tonumber(ARGV[12])
redis.call('HINCRBY', key, 'requested', ARGV[12])
for i = 1, open do redis.call('ZADD', key .. ':open', tonumber(ARGV[3]) + i, ARGV[12 + i]) end
local room = tonumber(ARGV[11]) - redis.call('LLEN', key .. ':problems')
for i = 13 + open, math.min(#ARGV, 12 + open + room) do redis.call('RPUSH', key .. ':problems', ARGV[i]) end
return 'running'`,
  step: (call, keys, [id = "", worker = "", from = "", to = "", at = "", millis = "", why = "", ...rest]) => {
    const key = `${baseOf(keys)}job:${id}`
    const names = ["worker", "position", "state", "total", "stopped_at"]
    const [holder, position, state, total, stoppedAt] = items(call("HMGET", key, ...names))
    if (holder !== worker || position !== from || state !== "running") return "lost"
    const [cancelled = "", ended = "", failed = "", most = "", count = "", ...tasksAndProblems] = rest
    call("HSET", key, "position", to, "updated_at", at)
    if (stoppedAt === null && (why !== "" || Number(to) >= Number(total))) {
      call("HSET", key, "asked_ms", millis)
      if (why !== "") call("HSET", key, "stopped_at", at, "stop_reason", why)
    }
    call("HINCRBY", key, "cancelled", cancelled)
    call("HINCRBY", key, "ended", ended)
    call("HINCRBY", key, "failed", failed)
    call("HINCRBY", key, "requested", count)
    for (const [i, taskId] of tasksAndProblems.slice(0, Number(count)).entries()) {
      call("ZADD", `${key}:open`, Number(from) + i + 1, taskId)
    }
    const room = Math.max(0, Number(most) - Number(call("LLEN", `${key}:problems`)))
    for (const problem of tasksAndProblems.slice(Number(count)).slice(0, room))
      call("RPUSH", `${key}:problems`, problem)
    return "running"
  },
  decode: turnOf
}

/**
 * ARGV: id, worker, now as text, maximum problems, 1 if the job is over in any case, then for each answered task its id,
 * its outcome and a problem or an empty string. Counts answers, each once. The job is over once all tasks were asked for,
 * or it was stopped, and no task is open.
 */
export const answered: Script<Turn> = {
  name: "task-cancellation-answered",
  lua: `${prelude}
local key = jobKey(ARGV[1])
local job = redis.call('HMGET', key, 'worker', 'state', 'position', 'total', 'stopped_at')
if job[1] ~= ARGV[2] or job[2] ~= 'running' then return 'lost' end
for i = 6, #ARGV, 3 do
  if redis.call('ZREM', key .. ':open', ARGV[i]) == 1 then
    redis.call('HINCRBY', key, 'requested', '-1')
    redis.call('HINCRBY', key, ARGV[i + 1], '1')
    redis.call('HSET', key, 'updated_at', ARGV[3])
    if ARGV[i + 2] ~= '' and redis.call('LLEN', key .. ':problems') < tonumber(ARGV[4]) then
      redis.call('RPUSH', key .. ':problems', ARGV[i + 2])
    end
  end
end
if tonumber(job[3]) < tonumber(job[4]) and not job[5] then return 'running' end
if ARGV[5] ~= '1' and redis.call('ZCARD', key .. ':open') > 0 then return 'running' end
redis.call('HSET', key, 'state', 'finished', 'ended_at', ARGV[3], 'updated_at', ARGV[3])
redis.call('HDEL', key, 'worker', 'worker_until')
for _, list in ipairs(lists) do redis.call('ZREM', list, ARGV[1]) end
redis.call('DEL', key .. ':ids')
return 'over'`,
  step: (call, keys, [id = "", worker = "", at = "", most = "", isOver = "", ...answers]) => {
    const base = baseOf(keys)
    const key = `${base}job:${id}`
    const [holder, state, position, total, stoppedAt] = items(
      call("HMGET", key, "worker", "state", "position", "total", "stopped_at")
    )
    if (holder !== worker || state !== "running") return "lost"
    for (let i = 0; i < answers.length; i += 3) {
      const [taskId = "", outcome = "", problem = ""] = answers.slice(i, i + 3)
      if (call("ZREM", `${key}:open`, taskId) !== 1) continue
      call("HINCRBY", key, "requested", "-1")
      call("HINCRBY", key, outcome, "1")
      call("HSET", key, "updated_at", at)
      if (problem !== "" && Number(call("LLEN", `${key}:problems`)) < Number(most)) {
        call("RPUSH", `${key}:problems`, problem)
      }
    }
    if (Number(position) < Number(total) && stoppedAt === null) return "running"
    if (isOver !== "1" && Number(call("ZCARD", `${key}:open`)) > 0) return "running"
    call("HSET", key, "state", "finished", "ended_at", at, "updated_at", at)
    call("HDEL", key, "worker", "worker_until")
    for (const list of kind.lists) call("ZREM", `${base}jobs:${list}`, id)
    call("DEL", `${key}:ids`)
    return "over"
  },
  decode: turnOf
}

/** `stopped`: it asks for no further task. `nothing_left`: all tasks were asked for. `ended`: it has ended, or there is none. */
export type StopResult = "stopped" | "nothing_left" | "ended"

/** ARGV: id, now as text, now, why it stops itself or an empty string. Idempotent. */
export const stop: Script<StopResult> = {
  name: "task-cancellation-stop",
  lua: `${prelude}
local key = jobKey(ARGV[1])
local job = redis.call('HMGET', key, 'state', 'stopped_at', 'position', 'total')
if job[1] ~= 'running' then return 'ended' end
if job[2] then return 'stopped' end
if tonumber(job[3]) >= tonumber(job[4]) then return 'nothing_left' end
redis.call('HSET', key, 'stopped_at', ARGV[2], 'asked_ms', ARGV[3], 'stop_reason', ARGV[4], 'updated_at', ARGV[2])
return 'stopped'`,
  step: (call, keys, [id = "", at = "", millis = "", reason = ""]) => {
    const key = `${baseOf(keys)}job:${id}`
    const [state, stoppedAt, position, total] = items(call("HMGET", key, "state", "stopped_at", "position", "total"))
    if (state !== "running") return "ended"
    if (stoppedAt !== null) return "stopped"
    if (Number(position) >= Number(total)) return "nothing_left"
    call("HSET", key, "stopped_at", at, "asked_ms", millis, "stop_reason", reason, "updated_at", at)
    return "stopped"
  },
  decode: (reply) => (reply === "stopped" || reply === "nothing_left" ? reply : "ended")
}

/** `withdrawing`: its worker withdraws the requests. `nothing_left`: each has an answer, or there is no such job. */
export type WithdrawResult = "withdrawing" | "nothing_left"

/**
 * ARGV: id, now as text, now. Idempotent. Stops the job. A job that has ended runs again until its requests are
 * withdrawn: it has its time anew.
 */
export const withdraw: Script<WithdrawResult> = {
  name: "task-cancellation-withdraw",
  lua: `${prelude}
local key = jobKey(ARGV[1])
local job = redis.call('HMGET', key, 'state', 'stopped_at', 'position', 'total')
if not job[1] then return 'nothing_left' end
local asks = job[1] == 'running' and not job[2] and tonumber(job[3]) < tonumber(job[4])
if not asks and redis.call('ZCARD', key .. ':open') == 0 then return 'nothing_left' end
if asks then redis.call('HSET', key, 'stopped_at', ARGV[2], 'stop_reason', '') end
redis.call('HSET', key, 'state', 'running', 'withdrawn_at', ARGV[2], 'updated_at', ARGV[2], 'started_ms', ARGV[3], 'asked_ms', ARGV[3])
redis.call('HDEL', key, 'ended_at')
for _, list in ipairs(lists) do redis.call('ZADD', list, redis.call('ZSCORE', base .. 'jobs', ARGV[1]), ARGV[1]) end
return 'withdrawing'`,
  step: (call, keys, [id = "", at = "", millis = ""]) => {
    const base = baseOf(keys)
    const key = `${base}job:${id}`
    const [state, stoppedAt, position, total] = items(call("HMGET", key, "state", "stopped_at", "position", "total"))
    if (state === null) return "nothing_left"
    const asks = state === "running" && stoppedAt === null && Number(position) < Number(total)
    if (!asks && call("ZCARD", `${key}:open`) === 0) return "nothing_left"
    if (asks) call("HSET", key, "stopped_at", at, "stop_reason", "")
    const again = ["state", "running", "withdrawn_at", at, "updated_at", at, "started_ms", millis, "asked_ms", millis]
    call("HSET", key, ...again)
    call("HDEL", key, "ended_at")
    for (const list of kind.lists) call("ZADD", `${base}jobs:${list}`, String(call("ZSCORE", `${base}jobs`, id)), id)
    return "withdrawing"
  },
  decode: (reply) => (reply === "withdrawing" ? reply : "nothing_left")
}
