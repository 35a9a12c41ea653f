import type { Reply, Script } from "../../services/Redis.ts"
import * as Index from "./DeadLetterIndex.ts"
import * as OutcomeIndex from "./OutcomeIndex.ts"
import { begunKey, jobKey } from "./OutcomeIndex.ts"

const claimFields = Index.claimFields.map((field) => `'${field}'`).join(", ")

const { prelude } = OutcomeIndex

/**
 * Reserves a record for a replay. ARGV: id, token, claimant, job or an empty string, position of its batch, force
 * (0/1), now, end of the reservation, expiry bound, required state or an empty string. Returns `claimed`, or why the
 * record cannot be claimed. A job may claim a record again if it has not begun to publish the message. The hash `begun`
 * contains the records of the current batch that the job has begun to publish. A worker with an outdated position has
 * lost the job. It receives `begun` and `replayed`, so it publishes nothing.
 */
export const claim: Script<ReadonlyArray<Reply>> = {
  name: "dlq-claim",
  lua: `${prelude}
local id, token, by, job, force, now, untilMs = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[6] == '1', ARGV[7], ARGV[8]
if job ~= '' and redis.call('HGET', jobKey(job), 'position') ~= ARGV[5] then return { 'begun', 'replayed' } end
local begun = job ~= '' and redis.call('HGET', begunKey(job), id)
if not isPresent(id, ARGV[9]) then return begun and { 'begun', begun } or { 'absent' } end
local key = recordKey(id)
local c = redis.call('HMGET', key, 'state', 'claim', 'claim_phase', 'claim_until', 'claim_by', 'replayed_at', 'unknown_at', 'unknown_by', 'archived_at', 'replaced_by')
if c[2] and tonumber(c[4]) > tonumber(now) and not (c[5] == by and c[3] == 'claimed') then
  return { 'in_progress', c[4] }
end
if begun then return { 'begun', begun } end
if c[9] then return { 'archived', c[9] } end
if c[10] then return { 'replaced', c[10] } end
if c[1] == 'replayed' and not force then return { 'replayed', c[6] } end
if c[1] == 'replay_unknown' and not force then return { 'unknown', c[7], c[8] } end
if ARGV[10] ~= '' and c[1] ~= ARGV[10] then return { 'changed', c[1] } end
redis.call('HDEL', key, ${claimFields})
redis.call('HSET', key, 'claim', token, 'claim_phase', 'claimed', 'claim_until', untilMs, 'claim_by', by)
return { 'claimed' }`,
  step: (
    call,
    keys,
    [
      id = "",
      token = "",
      by = "",
      job = "",
      position = "",
      force = "",
      now = "",
      until = "",
      expiredBefore = "",
      requiredState = ""
    ]
  ) => {
    const index = Index.of(call, keys)
    if (job !== "" && call("HGET", jobKey(index, job), "position") !== position) return ["begun", "replayed"]
    const begun = job === "" ? null : call("HGET", begunKey(index, job), id)
    if (!Index.isPresent(index, id, expiredBefore)) return begun === null ? ["absent"] : ["begun", begun]
    const key = Index.recordKey(index, id)
    const [state, claimed, phase, claimedUntil, claimedBy, replayedAt, unknownAt, unknownBy, archivedAt, replacedBy] =
      Index.items(
        call(
          "HMGET",
          key,
          "state",
          "claim",
          "claim_phase",
          "claim_until",
          "claim_by",
          "replayed_at",
          "unknown_at",
          "unknown_by",
          "archived_at",
          "replaced_by"
        )
      )
    if (claimed !== null && Number(claimedUntil) > Number(now) && !(claimedBy === by && phase === "claimed")) {
      return ["in_progress", claimedUntil ?? null]
    }
    if (begun !== null) return ["begun", begun]
    if (typeof archivedAt === "string") return ["archived", archivedAt]
    if (typeof replacedBy === "string") return ["replaced", replacedBy]
    if (state === "replayed" && force !== "1") return ["replayed", replayedAt ?? null]
    if (state === "replay_unknown" && force !== "1") return ["unknown", unknownAt ?? null, unknownBy ?? null]
    if (requiredState !== "" && state !== requiredState) return ["changed", state ?? null]
    call("HDEL", key, ...Index.claimFields)
    call("HSET", key, "claim", token, "claim_phase", "claimed", "claim_until", until, "claim_by", by)
    return ["claimed"]
  },
  decode: Index.items
}

/**
 * ARGV: id, token, now, end of the reservation, now as text, job or an empty string. If the claim is still valid, sets
 * the state to `replay_unknown` and returns 1. Otherwise returns 0.
 */
export const begin: Script<boolean> = {
  name: "dlq-begin",
  lua: `${prelude}
local id, token, now, untilMs, at, job = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local key = recordKey(id)
local c = redis.call('HMGET', key, 'claim', 'claim_phase', 'claim_until', 'claim_by', 'state', 'unknown_at', 'unknown_by')
if c[1] ~= token or c[2] ~= 'claimed' or tonumber(c[3]) <= tonumber(now) then return 0 end
redis.call('HSET', key, 'claim_phase', 'publishing', 'claim_until', untilMs, 'before_state', c[5], 'unknown_at', at, 'unknown_by', c[4])
if c[6] then redis.call('HSET', key, 'before_at', c[6], 'before_by', c[7]) end
if job ~= '' then redis.call('HSET', begunKey(job), id, token) end
changeState(id, 'replay_unknown')
return 1`,
  step: (call, keys, [id = "", token = "", now = "", until = "", at = "", job = ""]) => {
    const index = Index.of(call, keys)
    const key = Index.recordKey(index, id)
    const [claimed, phase, claimedUntil, by, state, unknownAt, unknownBy] = Index.items(
      call("HMGET", key, "claim", "claim_phase", "claim_until", "claim_by", "state", "unknown_at", "unknown_by")
    )
    if (claimed !== token || phase !== "claimed" || Number(claimedUntil) <= Number(now)) return 0
    const before = ["before_state", String(state), "unknown_at", at, "unknown_by", String(by)]
    call("HSET", key, "claim_phase", "publishing", "claim_until", until, ...before)
    if (unknownAt !== null) call("HSET", key, "before_at", String(unknownAt), "before_by", String(unknownBy))
    if (job !== "") call("HSET", begunKey(index, job), id, token)
    Index.changeState(index, id, "replay_unknown")
    return 1
  },
  decode: (reply) => reply === 1
}

/**
 * ARGV: id, token, outcome, time, target queue, job or an empty string, now, step of the job or an empty string. Returns the number of replays, or nil if the
 * record does not exist. A confirmed message counts even if the claim has expired, because the message is in its queue.
 */
export const settle: Script<number | undefined> = {
  name: "dlq-settle",
  lua: `${prelude}
local id, token, outcome, at, target, job = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
if job ~= '' and redis.call('HGET', begunKey(job), id) == token then
  if outcome == 'replayed' then redis.call('HSET', begunKey(job), id, 'replayed') end
  if outcome == 'reverted' then redis.call('HDEL', begunKey(job), id) end
end
local key = recordKey(id)
local c = redis.call('HMGET', key, 'replay_count', 'claim', 'claim_phase', 'settled', 'before_state', 'before_at', 'before_by')
if not c[1] then return false end
local mine, count = c[2] == token, c[1]
if outcome == 'replayed' and c[4] ~= token then
  count = redis.call('HINCRBY', key, 'replay_count', '1')
  redis.call('HSET', key, 'settled', token, 'replayed_at', at, 'target', target)
  noteReplayed(id, at, job, ARGV[8], ARGV[7])
  if mine or not c[2] or c[3] == 'claimed' then
    changeState(id, 'replayed')
    redis.call('HDEL', key, 'unknown_at', 'unknown_by')
  else
    redis.call('HSET', key, 'before_state', 'replayed')
    redis.call('HDEL', key, 'before_at', 'before_by')
  end
end
if mine and outcome == 'reverted' and c[3] == 'publishing' then
  changeState(id, c[5])
  redis.call('HDEL', key, 'unknown_at', 'unknown_by')
  if c[6] then redis.call('HSET', key, 'unknown_at', c[6], 'unknown_by', c[7]) end
end
if mine then redis.call('HDEL', key, ${claimFields}) end
return tonumber(count)`,
  step: (call, keys, [id = "", token = "", outcome = "", at = "", target = "", job = "", nowMs = "", step = ""]) => {
    const index = Index.of(call, keys)
    if (job !== "" && call("HGET", begunKey(index, job), id) === token) {
      if (outcome === "replayed") call("HSET", begunKey(index, job), id, "replayed")
      if (outcome === "reverted") call("HDEL", begunKey(index, job), id)
    }
    const key = Index.recordKey(index, id)
    const before = call(
      "HMGET",
      key,
      "replay_count",
      "claim",
      "claim_phase",
      "settled",
      "before_state",
      "before_at",
      "before_by"
    )
    const [replays, claimed, phase, settled, state, unknownAt, unknownBy] = Index.items(before)
    if (replays === null) return null
    const mine = claimed === token
    let count = Number(replays)
    if (outcome === "replayed" && settled !== token) {
      count = Number(call("HINCRBY", key, "replay_count", "1"))
      call("HSET", key, "settled", token, "replayed_at", at, "target", target)
      OutcomeIndex.noteReplayed(index, id, { at, job, nowMs, step })
      if (mine || claimed === null || phase === "claimed") {
        Index.changeState(index, id, "replayed")
        call("HDEL", key, "unknown_at", "unknown_by")
      } else {
        call("HSET", key, "before_state", "replayed")
        call("HDEL", key, "before_at", "before_by")
      }
    }
    if (mine && outcome === "reverted" && phase === "publishing") {
      Index.changeState(index, id, String(state))
      call("HDEL", key, "unknown_at", "unknown_by")
      if (unknownAt !== null) call("HSET", key, "unknown_at", String(unknownAt), "unknown_by", String(unknownBy))
    }
    if (mine) call("HDEL", key, ...Index.claimFields)
    return count
  },
  decode: (reply) => (reply === null ? undefined : Number(reply))
}
