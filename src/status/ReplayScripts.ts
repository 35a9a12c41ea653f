import type { Reply, Script } from "../services/Redis.ts"
import * as Index from "./DeadLetterIndex.ts"

/** Of the Lua and of the TypeScript alike. */
const claimFields = Index.claimFields.map((field) => `'${field}'`).join(", ")

/**
 * ARGV: id, token, by, force (0/1), now, end of the lease, expired before, the state that it must be in or nothing. Answers
 * what is in the way, or the content.
 *
 * Who has the same name may take over a claim with which nothing was published: it is a job that another process goes on
 * with. But nobody forces what it did itself, or a job that was interrupted would publish twice.
 */
export const claim: Script<ReadonlyArray<Reply>> = {
  name: "dlq-claim",
  lua: `${Index.prelude}
local id, token, by, force, now, untilMs = ARGV[1], ARGV[2], ARGV[3], ARGV[4] == '1', ARGV[5], ARGV[6]
if not present(id, ARGV[7]) then return { 'absent' } end
local key = recordKey(id)
local c = redis.call('HMGET', key, 'state', 'claim', 'claim_phase', 'claim_until', 'claim_by', 'replayed_at', 'replayed_by', 'unknown_at', 'unknown_by')
if c[2] and tonumber(c[4]) > tonumber(now) and not (c[5] == by and c[3] == 'claimed') then
  return { 'in_progress', c[4] }
end
if c[1] == 'replayed' and (not force or c[7] == by) then return { 'replayed', c[6], c[7] } end
if c[1] == 'replay_unknown' and (not force or c[9] == by) then return { 'unknown', c[8], c[9] } end
if ARGV[8] ~= '' and c[1] ~= ARGV[8] then return { 'changed', c[1] } end
redis.call('HDEL', key, ${claimFields})
redis.call('HSET', key, 'claim', token, 'claim_phase', 'claimed', 'claim_until', untilMs, 'claim_by', by)
return { 'claimed' }`,
  step: (
    call,
    keys,
    [id = "", token = "", by = "", force = "", now = "", until = "", expiredBefore = "", wanted = ""]
  ) => {
    const index = Index.of(call, keys)
    if (!Index.present(index, id, expiredBefore)) return ["absent"]
    const key = Index.recordKey(index, id)
    const [state, claimed, phase, claimedUntil, claimedBy, replayedAt, replayedBy, unknownAt, unknownBy] = Index.items(
      call(
        "HMGET",
        key,
        "state",
        "claim",
        "claim_phase",
        "claim_until",
        "claim_by",
        "replayed_at",
        "replayed_by",
        "unknown_at",
        "unknown_by"
      )
    )
    if (claimed !== null && Number(claimedUntil) > Number(now) && !(claimedBy === by && phase === "claimed")) {
      return ["in_progress", claimedUntil ?? null]
    }
    const overrides = (who: Reply | undefined) => force === "1" && who !== by
    if (state === "replayed" && !overrides(replayedBy)) return ["replayed", replayedAt ?? null, replayedBy ?? null]
    if (state === "replay_unknown" && !overrides(unknownBy)) return ["unknown", unknownAt ?? null, unknownBy ?? null]
    if (wanted !== "" && state !== wanted) return ["changed", state ?? null]
    call("HDEL", key, ...Index.claimFields)
    call("HSET", key, "claim", token, "claim_phase", "claimed", "claim_until", until, "claim_by", by)
    return ["claimed"]
  },
  decode: Index.items
}

/** ARGV: id, token, now, end of the lease, now as text. Whether the claim still holds; the record is unknown from here on. */
export const begin: Script<boolean> = {
  name: "dlq-begin",
  lua: `${Index.prelude}
local id, token, now, untilMs, at = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local key = recordKey(id)
local c = redis.call('HMGET', key, 'claim', 'claim_phase', 'claim_until', 'claim_by', 'state', 'unknown_at', 'unknown_by')
if c[1] ~= token or c[2] ~= 'claimed' or tonumber(c[3]) <= tonumber(now) then return 0 end
redis.call('HSET', key, 'claim_phase', 'publishing', 'claim_until', untilMs, 'before_state', c[5], 'unknown_at', at, 'unknown_by', c[4])
if c[6] then redis.call('HSET', key, 'before_at', c[6], 'before_by', c[7]) end
move(id, 'replay_unknown')
return 1`,
  step: (call, keys, [id = "", token = "", now = "", until = "", at = ""]) => {
    const index = Index.of(call, keys)
    const key = Index.recordKey(index, id)
    const [claimed, phase, claimedUntil, by, state, unknownAt, unknownBy] = Index.items(
      call("HMGET", key, "claim", "claim_phase", "claim_until", "claim_by", "state", "unknown_at", "unknown_by")
    )
    if (claimed !== token || phase !== "claimed" || Number(claimedUntil) <= Number(now)) return 0
    const before = ["before_state", String(state), "unknown_at", at, "unknown_by", String(by)]
    call("HSET", key, "claim_phase", "publishing", "claim_until", until, ...before)
    if (unknownAt !== null) call("HSET", key, "before_at", String(unknownAt), "before_by", String(unknownBy))
    Index.move(index, id, "replay_unknown")
    return 1
  },
  decode: (reply) => reply === 1
}

/**
 * ARGV: id, token, what came of it, by, when, target. Answers how often the record was replayed, nothing where it is gone.
 *
 * A confirmed publish counts whoever holds the record by now: somebody may have forced it after the lease, and what
 * comes of that no longer matters to whether the message is in its queue.
 */
export const settle: Script<number | undefined> = {
  name: "dlq-settle",
  lua: `${Index.prelude}
local id, token, outcome, by, at, target = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local key = recordKey(id)
local c = redis.call('HMGET', key, 'replay_count', 'claim', 'claim_phase', 'settled', 'before_state', 'before_at', 'before_by')
if not c[1] then return false end
local mine, count = c[2] == token, c[1]
if outcome == 'replayed' and c[4] ~= token then
  count = redis.call('HINCRBY', key, 'replay_count', '1')
  redis.call('HSET', key, 'settled', token, 'replayed_at', at, 'replayed_by', by, 'target', target)
  if mine or not c[2] or c[3] == 'claimed' then
    move(id, 'replayed')
    redis.call('HDEL', key, 'unknown_at', 'unknown_by')
  else
    redis.call('HSET', key, 'before_state', 'replayed')
    redis.call('HDEL', key, 'before_at', 'before_by')
  end
end
if mine and outcome == 'reverted' and c[3] == 'publishing' then
  move(id, c[5])
  redis.call('HDEL', key, 'unknown_at', 'unknown_by')
  if c[6] then redis.call('HSET', key, 'unknown_at', c[6], 'unknown_by', c[7]) end
end
if mine then redis.call('HDEL', key, ${claimFields}) end
return tonumber(count)`,
  step: (call, keys, [id = "", token = "", outcome = "", by = "", at = "", target = ""]) => {
    const index = Index.of(call, keys)
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
      call("HSET", key, "settled", token, "replayed_at", at, "replayed_by", by, "target", target)
      if (mine || claimed === null || phase === "claimed") {
        Index.move(index, id, "replayed")
        call("HDEL", key, "unknown_at", "unknown_by")
      } else {
        call("HSET", key, "before_state", "replayed")
        call("HDEL", key, "before_at", "before_by")
      }
    }
    if (mine && outcome === "reverted" && phase === "publishing") {
      Index.move(index, id, String(state))
      call("HDEL", key, "unknown_at", "unknown_by")
      if (unknownAt !== null) call("HSET", key, "unknown_at", String(unknownAt), "unknown_by", String(unknownBy))
    }
    if (mine) call("HDEL", key, ...Index.claimFields)
    return count
  },
  decode: (reply) => (reply === null ? undefined : Number(reply))
}
