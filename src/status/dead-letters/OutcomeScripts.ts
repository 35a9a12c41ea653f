import type { Script } from "../../services/Redis.ts"
import * as Index from "./DeadLetterIndex.ts"
import * as OutcomeIndex from "./OutcomeIndex.ts"

/** A replayed record whose outcome is not known yet. */
export interface Followed {
  readonly id: string
  readonly taskId: string | null
  readonly replayedAt: string
  /** The latest records of the same task that were indexed after it. */
  readonly later: ReadonlyArray<string>
}

const laterAtMost = 3

/** The time between two looks at a record grows with the time since its replay. */
const [shortestMs, longestMs] = [500, 600_000]
/** Statuses of a task are kept for a day. */
const followedMs = 25 * 3_600_000

/** ARGV: now, maximum number, or an id. Returns the records to look at, and sets the times of the next looks. */
export const follow: Script<ReadonlyArray<Followed>> = {
  name: "dlq-follow",
  lua: `${Index.prelude}
local now, answer = tonumber(ARGV[1]), {}
local due = ARGV[3] and { ARGV[3] } or redis.call('ZRANGEBYSCORE', base .. 'following', '-inf', ARGV[1], 'LIMIT', '0', ARGV[2])
for _, id in ipairs(due) do
  local r = redis.call('HMGET', recordKey(id), 'replayed_at', 'replayed_ms', 'task_id', 'seq', 'outcome_of')
  local age = now - tonumber(r[2] or '0')
  if not r[1] or r[5] == r[1] or (age > ${followedMs} and not ARGV[3]) then
    redis.call('ZREM', base .. 'following', id)
  else
    if not ARGV[3] then
      redis.call('ZADD', base .. 'following', now + math.max(${shortestMs}, math.min(${longestMs}, math.floor(age / 4))), id)
    end
    local later = {}
    if r[3] then
      later = redis.call('ZREVRANGEBYSCORE', indexKey('task_id', r[3]), '+inf', '(' .. r[4], 'LIMIT', '0', '${laterAtMost}')
    end
    answer[#answer + 1] = { id, r[3], r[1], later }
  end
end
return answer`,
  step: (call, keys, [nowText = "", most = "", wanted]) => {
    const index = Index.of(call, keys)
    const following = `${index.base}following`
    const now = Number(nowText)
    const due =
      wanted === undefined
        ? Index.texts(call("ZRANGEBYSCORE", following, "-inf", nowText, "LIMIT", "0", most))
        : [wanted]
    return due.flatMap((id) => {
      const [replayedAt, replayedMs, taskId, seq, outcomeOf] = Index.items(
        call("HMGET", Index.recordKey(index, id), "replayed_at", "replayed_ms", "task_id", "seq", "outcome_of")
      )
      const age = now - Number(replayedMs ?? 0)
      if (typeof replayedAt !== "string" || outcomeOf === replayedAt || (age > followedMs && wanted === undefined)) {
        call("ZREM", following, id)
        return []
      }
      if (wanted === undefined) {
        const pause = Math.max(shortestMs, Math.min(longestMs, Math.floor(age / 4)))
        call("ZADD", following, now + pause, id)
      }
      const later =
        typeof taskId === "string"
          ? call(
              "ZREVRANGEBYSCORE",
              index.base + Index.indexName("task_id", taskId),
              "+inf",
              `(${seq}`,
              "LIMIT",
              "0",
              laterAtMost
            )
          : []
      return [[id, taskId ?? null, replayedAt, later]]
    })
  },
  decode: (reply) =>
    Index.items(reply).map((item) => {
      const [id, taskId, replayedAt, later = null] = Index.items(item)
      return {
        id: String(id),
        taskId: typeof taskId === "string" ? taskId : null,
        replayedAt: String(replayedAt),
        later: Index.texts(later)
      }
    })
}

/** ARGV: id, time of the replay, outcome, exception or reason of a failure, next dead letter, now as text. */
export const note: Script<boolean> = {
  name: "dlq-outcome",
  lua: `${OutcomeIndex.prelude}
return noteOutcome(ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6])`,
  step: (call, keys, [id = "", at = "", outcome = "", kind = "", as = "", now = ""]) =>
    OutcomeIndex.noteOutcome(Index.of(call, keys), id, {
      at,
      outcome: outcome === "handled" ? "handled" : "failed_again",
      kind,
      as,
      now
    })
      ? 1
      : 0,
  decode: (reply) => reply === 1
}
