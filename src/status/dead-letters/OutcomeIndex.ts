import * as Index from "./DeadLetterIndex.ts"

/**
 * Keeps the outcomes of replayed messages in Redis.
 *
 * - `…record:<id>`: `outcome` is `handled` or `failed_again`, and is about the replay at `outcome_of`. `early…`: the next
 *   dead letter of a replay that is not settled yet.
 * - `…history:<group>`: a hash with the first and the last time of a dead letter, the release of the worker then, and the counts of the latest replays
 *   (`runs`): those of a job by its id, all others as `single`. It expires, because groups come and go.
 * - `…replay:<job>`: `s<step>:<outcome>` counts the outcomes of a step. `…replay:<job>:failures` counts exceptions.
 */
export type Outcome = "handled" | "failed_again"

export const maxRuns = 10
export const runCounts = ["replayed", "handled", "failed_again"] as const
const historySeconds = 30 * 86_400
const maxKinds = 100

/** The Lua functions of scripts that count replays and their outcomes. */
export const prelude = `${Index.prelude}
local function jobKey(job) return base .. 'replay:' .. job end
local function begunKey(job) return jobKey(job) .. ':begun' end
local function historyKey(group) return base .. 'history:' .. group end
local function runOf(job) if job == '' then return 'single' end return job end
local function noteSeen(id)
  local record = redis.call('HMGET', recordKey(id), 'group', 'at', 'version')
  local key, version = historyKey(record[1]), record[3] or ''
  local seen = redis.call('HMGET', key, 'first', 'last')
  if not seen[1] or record[2] < seen[1] then redis.call('HSET', key, 'first', record[2], 'first_version', version) end
  if not seen[2] or record[2] > seen[2] then redis.call('HSET', key, 'last', record[2], 'last_version', version) end
  redis.call('EXPIRE', key, '${historySeconds}')
end
local function countRun(group, run, what, by)
  local key = historyKey(group)
  if redis.call('HGET', key, run .. ':at') then redis.call('HINCRBY', key, run .. ':' .. what, by) end
end
local function startRun(group, run, at)
  local key = historyKey(group)
  if not redis.call('HGET', key, run .. ':at') then
    local runs = {}
    for name in string.gmatch(redis.call('HGET', key, 'runs') or '', '[^,]+') do runs[#runs + 1] = name end
    runs[#runs + 1] = run
    if #runs > ${maxRuns} then
      local oldest = table.remove(runs, 1)
      redis.call('HDEL', key, oldest .. ':at'${runCounts.map((what) => `, oldest .. ':${what}'`).join("")})
    end
    redis.call('HSET', key, 'runs', table.concat(runs, ','))
  end
  redis.call('HSET', key, run .. ':at', at)
  redis.call('EXPIRE', key, '${historySeconds}')
end
local function countFailure(job, kind, now)
  local found = redis.call('HMGET', jobKey(job), 'state', 'stop_after', 'paused_at')
  if not found[2] then return end
  local key = jobKey(job) .. ':failures'
  if redis.call('HLEN', key) >= ${maxKinds} and not redis.call('HGET', key, kind) then kind = 'others' end
  local count = redis.call('HINCRBY', key, kind, '1')
  if found[1] ~= 'running' or found[3] or count < tonumber(found[2]) then return end
  redis.call('HSET', jobKey(job), 'paused_at', now, 'paused_by', 'stop_after', 'paused_reason', count .. ' failed with ' .. kind)
end
local function noteOutcome(id, at, outcome, kind, as, now)
  local key = recordKey(id)
  local record = redis.call('HMGET', key, 'replayed_at', 'outcome', 'outcome_of', 'replayed_by', 'replay_step', 'group')
  if record[1] ~= at then return 0 end
  local known = record[3] == at and record[2]
  redis.call('ZREM', base .. 'following', id)
  if known == outcome or known == 'failed_again' then return 0 end
  redis.call('HSET', key, 'outcome', outcome, 'outcome_of', at, 'outcome_at', now, 'failed_again_as', as)
  local job = record[4] or ''
  if known then countRun(record[6], runOf(job), known, '-1') end
  countRun(record[6], runOf(job), outcome, '1')
  if job ~= '' and record[5] and redis.call('EXISTS', jobKey(job)) == 1 then
    if known then redis.call('HINCRBY', jobKey(job), 's' .. record[5] .. ':' .. known, '-1') end
    redis.call('HINCRBY', jobKey(job), 's' .. record[5] .. ':' .. outcome, '1')
    if outcome == 'failed_again' then countFailure(job, kind, now) end
  end
  return 1
end
local function linkReplay(id, now)
  local record = redis.call('HMGET', recordKey(id), 'replay_of', 'replay_of_at', 'exception_type', 'reason')
  if not record[1] then return end
  local key, at, kind = recordKey(record[1]), record[2], record[3] or record[4]
  local replayed = redis.call('HMGET', key, 'seq', 'replayed_at')
  if not replayed[1] then return end
  if replayed[2] == at then noteOutcome(record[1], at, 'failed_again', kind, id, now)
  else redis.call('HSET', key, 'early', at, 'early_as', id, 'early_kind', kind) end
end
local function noteReplayed(id, at, job, step, nowMs)
  local key = recordKey(id)
  redis.call('HSET', key, 'replayed_by', job, 'replayed_ms', nowMs)
  if step ~= '' then redis.call('HSET', key, 'replay_step', step) else redis.call('HDEL', key, 'replay_step') end
  redis.call('ZADD', base .. 'following', nowMs, id)
  local record = redis.call('HMGET', key, 'group', 'early', 'early_as', 'early_kind')
  startRun(record[1], runOf(job), at)
  countRun(record[1], runOf(job), 'replayed', '1')
  if record[2] == at then noteOutcome(id, at, 'failed_again', record[4], record[3], at) end
  redis.call('HDEL', key, 'early', 'early_as', 'early_kind')
end`

export const jobKey = ({ base }: Index.Index, job: string): string => `${base}replay:${job}`

export const begunKey = (index: Index.Index, job: string): string => `${jobKey(index, job)}:begun`

export const historyKey = ({ base }: Pick<Index.Index, "base">, group: string): string => `${base}history:${group}`

const runOf = (job: string): string => (job === "" ? "single" : job)

/** Notes the time of a dead letter of a group. */
export const noteSeen = (index: Index.Index, id: string): void => {
  const { call } = index
  const [group = "", at = "", version] = Index.items(
    call("HMGET", Index.recordKey(index, id), "group", "at", "version")
  ).map((value) => String(value ?? ""))
  const key = historyKey(index, group)
  const [first, last] = Index.items(call("HMGET", key, "first", "last"))
  if (first === null || at < String(first)) call("HSET", key, "first", at, "first_version", version ?? "")
  if (last === null || at > String(last)) call("HSET", key, "last", at, "last_version", version ?? "")
  call("EXPIRE", key, historySeconds)
}

const countRun = (index: Index.Index, group: string, run: string, what: string, by: string): void => {
  const key = historyKey(index, group)
  if (index.call("HGET", key, `${run}:at`) !== null) index.call("HINCRBY", key, `${run}:${what}`, by)
}

const startRun = (index: Index.Index, group: string, run: string, at: string): void => {
  const { call } = index
  const key = historyKey(index, group)
  if (call("HGET", key, `${run}:at`) === null) {
    const runs = [...runsOf(call("HGET", key, "runs")), run]
    if (runs.length > maxRuns) {
      const oldest = runs.shift()
      call("HDEL", key, `${oldest}:at`, ...runCounts.map((what) => `${oldest}:${what}`))
    }
    call("HSET", key, "runs", runs.join(","))
  }
  call("HSET", key, `${run}:at`, at)
  call("EXPIRE", key, historySeconds)
}

export const runsOf = (runs: unknown): ReadonlyArray<string> =>
  typeof runs === "string" ? runs.split(",").filter((run) => run !== "") : []

/** Counts a failure of a job, and pauses the job where the same exception came too often. */
export const countFailure = (index: Index.Index, job: string, given: string, now: string): void => {
  const { call } = index
  const key = jobKey(index, job)
  const [state, stopAfter, pausedAt] = Index.items(call("HMGET", key, "state", "stop_after", "paused_at"))
  if (stopAfter === null) return
  const failures = `${key}:failures`
  const isOther = Number(call("HLEN", failures)) >= maxKinds && call("HGET", failures, given) === null
  const kind = isOther ? "others" : given
  const count = Number(call("HINCRBY", failures, kind, "1"))
  if (state !== "running" || pausedAt !== null || count < Number(stopAfter)) return
  call("HSET", key, "paused_at", now, "paused_by", "stop_after", "paused_reason", `${count} failed with ${kind}`)
}

interface Noted {
  /** The time of the replay. The outcome of any other replay of the record is ignored. */
  readonly at: string
  readonly outcome: Outcome
  /** The exception, or else the reason, of a failure. */
  readonly kind: string
  /** The next dead letter, or an empty text. */
  readonly as: string
  readonly now: string
}

/** Records the outcome of a replay. `failed_again` is final; `handled` is not, because a handler may fail at its end. */
export const noteOutcome = (index: Index.Index, id: string, { as, at, kind, now, outcome }: Noted): boolean => {
  const { base, call } = index
  const key = Index.recordKey(index, id)
  const [replayedAt, before, outcomeOf, replayedBy, step, group] = Index.items(
    call("HMGET", key, "replayed_at", "outcome", "outcome_of", "replayed_by", "replay_step", "group")
  )
  if (replayedAt !== at) return false
  const known = outcomeOf === at ? before : null
  call("ZREM", `${base}following`, id)
  if (known === outcome || known === "failed_again") return false
  call("HSET", key, "outcome", outcome, "outcome_of", at, "outcome_at", now, "failed_again_as", as)
  const job = String(replayedBy ?? "")
  if (typeof known === "string") countRun(index, String(group), runOf(job), known, "-1")
  countRun(index, String(group), runOf(job), outcome, "1")
  if (job === "" || typeof step !== "string" || call("EXISTS", jobKey(index, job)) !== 1) return true
  if (typeof known === "string") call("HINCRBY", jobKey(index, job), `s${step}:${known}`, "-1")
  call("HINCRBY", jobKey(index, job), `s${step}:${outcome}`, "1")
  if (outcome === "failed_again") countFailure(index, job, kind, now)
  return true
}

/** Notes that the replay that a new dead letter names has failed again. The replay may not be settled yet. */
export const linkReplay = (index: Index.Index, id: string, now: string): void => {
  const { call } = index
  const [origin, at, exception, reason] = Index.items(
    call("HMGET", Index.recordKey(index, id), "replay_of", "replay_of_at", "exception_type", "reason")
  )
  if (typeof origin !== "string" || typeof at !== "string") return
  const key = Index.recordKey(index, origin)
  const kind = String(exception ?? reason)
  const [seq, replayedAt] = Index.items(call("HMGET", key, "seq", "replayed_at"))
  if (seq === null) return
  if (replayedAt === at) noteOutcome(index, origin, { at, outcome: "failed_again", kind, as: id, now })
  else call("HSET", key, "early", at, "early_as", id, "early_kind", kind)
}

/** Counts a replay, and lets its outcome be followed. */
export const noteReplayed = (
  index: Index.Index,
  id: string,
  { at, job, nowMs, step }: { readonly at: string; readonly job: string; readonly nowMs: string; readonly step: string }
): void => {
  const { base, call } = index
  const key = Index.recordKey(index, id)
  call("HSET", key, "replayed_by", job, "replayed_ms", nowMs)
  if (step === "") call("HDEL", key, "replay_step")
  else call("HSET", key, "replay_step", step)
  call("ZADD", `${base}following`, nowMs, id)
  const [group = "", early = "", as = "", kind = ""] = Index.texts(
    call("HMGET", key, "group", "early", "early_as", "early_kind")
  )
  startRun(index, group, runOf(job), at)
  countRun(index, group, runOf(job), "replayed", "1")
  if (early === at) noteOutcome(index, id, { at, outcome: "failed_again", kind, as, now: at })
  call("HDEL", key, "early", "early_as", "early_kind")
}
