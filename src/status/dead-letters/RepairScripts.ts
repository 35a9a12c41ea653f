import type { Reply, Script } from "../../services/Redis.ts"
import * as Index from "./DeadLetterIndex.ts"
import * as OutcomeIndex from "./OutcomeIndex.ts"

const claimFields = Index.claimFields.map((field) => `'${field}'`).join(", ")

const archiveFields = [
  "archived_at",
  "archived_by",
  "archived_reason",
  "archived_from",
  "archived_until",
  "copy_misses"
] as const

/** `done`, or why the record cannot be changed, and what that says: a time, an id or a state. */
export type Changed = readonly [outcome: string, detail: Reply]

const changed = (reply: Reply): Changed => {
  const [outcome, detail = null] = Index.items(reply)
  return [String(outcome), detail]
}

/**
 * Replaces a record with an edited one. ARGV: id, new id, now, now as text, expiry bound, maximum records, maximum
 * bytes, then the fields of the new record as pairs.
 */
export const replace: Script<Changed> = {
  name: "dlq-replace",
  lua: `${OutcomeIndex.prelude}
local id, newId, now, at = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local key = recordKey(id)
if not isPresent(id, ARGV[5]) then return { 'absent' } end
local c = redis.call('HMGET', key, 'state', 'claim', 'claim_until', 'archived_at', 'replaced_by', 'seq', 'queue_name', 'group')
if c[4] then return { 'archived', c[4] } end
if c[5] then return { 'replaced', c[5] } end
if c[2] and tonumber(c[3]) > tonumber(now) then return { 'in_progress', c[3] } end
if c[1] ~= 'dead_lettered' then return { 'changed', c[1] } end
if redis.call('EXISTS', recordKey(newId)) == 1 then return { 'replaced', newId } end
unindexByState(id, c[1], c[7], c[8])
redis.call('HDEL', key, ${claimFields})
redis.call('HSET', key, 'state', 'replayed', 'replaced_by', newId, 'replaced_at', at)
indexByState(id, c[6], 'replaced', c[7], c[8])
local seq = redis.call('HINCRBY', KEYS[1], 'seq', '1')
redis.call('HSET', recordKey(newId), 'seq', seq, 'indexed_at', now, unpack(ARGV, 8))
list(newId)
redis.call('HINCRBY', KEYS[1], 'bytes', redis.call('HGET', recordKey(newId), 'bytes'))
redis.call('HINCRBY', KEYS[1], 'indexed', '1')
trim(ARGV[6], ARGV[7], ARGV[5])
return { 'done' }`,
  step: (call, keys, given) => {
    const [id = "", newId = "", now = "", at = "", expiredBefore = "", maxRecords = "", maxBytes = "", ...rest] = given
    const index = Index.of(call, keys)
    const key = Index.recordKey(index, id)
    if (!Index.isPresent(index, id, expiredBefore)) return ["absent"]
    const found = call(
      "HMGET",
      key,
      "state",
      "claim",
      "claim_until",
      "archived_at",
      "replaced_by",
      "seq",
      "queue_name",
      "group"
    )
    const [state, claim, claimUntil, archivedAt, replacedBy, ...texts] = Index.items(found)
    const [seq = "", queue = "", group = ""] = texts.map(String)
    if (typeof archivedAt === "string") return ["archived", archivedAt]
    if (typeof replacedBy === "string") return ["replaced", replacedBy]
    if (claim !== null && Number(claimUntil) > Number(now)) return ["in_progress", claimUntil ?? null]
    if (state !== "dead_lettered") return ["changed", state ?? null]
    if (call("EXISTS", Index.recordKey(index, newId)) === 1) return ["replaced", newId]
    Index.unindexByState(index, id, state, queue, group)
    call("HDEL", key, ...Index.claimFields)
    call("HSET", key, "state", "replayed", "replaced_by", newId, "replaced_at", at)
    Index.indexByState(index, id, { seq, state: "replaced", queue, group })
    const newSeq = String(call("HINCRBY", index.stats, "seq", "1"))
    call("HSET", Index.recordKey(index, newId), "seq", newSeq, "indexed_at", now, ...rest)
    Index.list(index, newId)
    call("HINCRBY", index.stats, "bytes", String(call("HGET", Index.recordKey(index, newId), "bytes")))
    call("HINCRBY", index.stats, "indexed", "1")
    Index.trim(index, maxRecords, maxBytes, expiredBefore)
    return ["done"]
  },
  decode: changed
}

/** Letters that are archived one after the other share one walk over their queue. */
export const gatheringMs = 1_000

/**
 * Takes a record out of all lists until it is deleted. ARGV: id, now, now as text, time of the deletion, the same as
 * text, expiry bound, reason, who says so or an empty string.
 */
export const archive: Script<Changed> = {
  name: "dlq-archive",
  lua: `${Index.prelude}
local id, now, at = ARGV[1], ARGV[2], ARGV[3]
local key = recordKey(id)
if not isPresent(id, ARGV[6]) then return { 'absent' } end
local c = redis.call('HMGET', key, 'state', 'claim', 'claim_until', 'archived_at', 'seq', 'queue_name')
if c[4] then return { 'archived', c[4] } end
if c[2] and tonumber(c[3]) > tonumber(now) then return { 'in_progress', c[3] } end
unlist(id)
redis.call('HDEL', key, ${claimFields})
redis.call('HSET', key, 'state', 'replayed', 'archived_from', c[1], 'archived_at', at, 'archived_until', ARGV[5],
  'archived_reason', ARGV[7])
if ARGV[8] ~= '' then redis.call('HSET', key, 'archived_by', ARGV[8]) end
redis.call('ZADD', indexKey('state', 'archived'), c[5], id)
redis.call('ZADD', indexKey('queue_state', 'archived:' .. c[6]), c[5], id)
redis.call('ZADD', base .. 'copies:' .. c[6], ARGV[4], id)
local rest = redis.call('ZSCORE', base .. 'copies-rest', c[6]) or '0'
redis.call('ZADD', base .. 'copies', 'NX', math.max(tonumber(now) + ${gatheringMs}, tonumber(rest)), c[6])
return { 'done' }`,
  step: (
    call,
    keys,
    [id = "", now = "", at = "", until = "", untilText = "", expiredBefore = "", reason = "", by = ""]
  ) => {
    const index = Index.of(call, keys)
    const { base } = index
    const key = Index.recordKey(index, id)
    if (!Index.isPresent(index, id, expiredBefore)) return ["absent"]
    const [state, claim, claimUntil, archivedAt, seq, queue] = Index.items(
      call("HMGET", key, "state", "claim", "claim_until", "archived_at", "seq", "queue_name")
    )
    if (typeof archivedAt === "string") return ["archived", archivedAt]
    if (claim !== null && Number(claimUntil) > Number(now)) return ["in_progress", claimUntil ?? null]
    Index.unlist(index, id)
    call("HDEL", key, ...Index.claimFields)
    const fields = { archived_from: String(state), archived_at: at, archived_until: untilText, archived_reason: reason }
    call("HSET", key, "state", "replayed", ...Object.entries(fields).flat())
    if (by !== "") call("HSET", key, "archived_by", by)
    call("ZADD", `${base}by:state:archived`, String(seq), id)
    call("ZADD", `${base}by:queue_state:archived:${queue}`, String(seq), id)
    call("ZADD", `${base}copies:${queue}`, until, id)
    const rest = Number(call("ZSCORE", `${base}copies-rest`, String(queue)) ?? 0)
    call("ZADD", `${base}copies`, "NX", Math.max(Number(now) + gatheringMs, rest), String(queue))
    return ["done"]
  },
  decode: changed
}

/** ARGV: id, expiry bound. The record has the state again that it had before it was archived. */
export const unarchive: Script<Changed> = {
  name: "dlq-unarchive",
  lua: `${Index.prelude}
local id = ARGV[1]
local key = recordKey(id)
if not isPresent(id, ARGV[2]) then return { 'absent' } end
local c = redis.call('HMGET', key, 'state', 'archived_at', 'replaced_by', 'archived_from', 'queue_name')
if not c[2] then return { 'changed', shownState(c) } end
leaveArchive(id, c[5])
redis.call('HSET', key, 'state', c[4])
redis.call('HDEL', key, ${archiveFields.map((field) => `'${field}'`).join(", ")})
list(id)
return { 'done' }`,
  step: (call, keys, [id = "", expiredBefore = ""]) => {
    const index = Index.of(call, keys)
    const key = Index.recordKey(index, id)
    if (!Index.isPresent(index, id, expiredBefore)) return ["absent"]
    const [archivedAt, archivedFrom, queue] = Index.items(
      call("HMGET", key, "archived_at", "archived_from", "queue_name")
    )
    if (archivedAt === null) return ["changed", Index.shownState(index, key)]
    Index.leaveArchive(index, id, String(queue))
    call("HSET", key, "state", String(archivedFrom))
    call("HDEL", key, ...archiveFields)
    Index.list(index, id)
    return ["done"]
  },
  decode: changed
}

export const sweptAtOnce = 100

/**
 * Deletes archived records whose time has come. A record whose message may still be in its queue stays, because
 * indexing the queue would bring it back. ARGV: now. Returns how many records were deleted.
 */
export const sweep: Script<number> = {
  name: "dlq-archive-sweep",
  lua: `${Index.prelude}
local due = redis.call('ZRANGEBYSCORE', base .. 'archive', '-inf', ARGV[1], 'LIMIT', '0', '${sweptAtOnce}')
for _, id in ipairs(due) do drop(id, 'expired') end
return #due`,
  step: (call, keys, [now = ""]) => {
    const index = Index.of(call, keys)
    const due = Index.texts(call("ZRANGEBYSCORE", `${index.base}archive`, "-inf", now, "LIMIT", "0", sweptAtOnce))
    for (const id of due) Index.drop(index, id, "expired")
    return due.length
  },
  decode: Number
}

/**
 * ARGV: now, time of the next try. Returns the queue that has waited for the longest, if any. Another process does not
 * take the queue before the next try.
 */
export const takeCopies: Script<string | undefined> = {
  name: "dlq-copies-take",
  lua: `${Index.prelude}
local queue = redis.call('ZRANGEBYSCORE', base .. 'copies', '-inf', ARGV[1], 'LIMIT', '0', '1')[1]
if queue then redis.call('ZADD', base .. 'copies', ARGV[2], queue) end
return queue`,
  step: (call, keys, [now = "", next = ""]) => {
    const { base } = Index.of(call, keys)
    const [queue = null] = Index.items(call("ZRANGEBYSCORE", `${base}copies`, "-inf", now, "LIMIT", "0", "1"))
    if (queue !== null) call("ZADD", `${base}copies`, next, String(queue))
    return queue
  },
  decode: (reply) => (typeof reply === "string" ? reply : undefined)
}

/** A message that was not found so often is not in its queue. Another consumer may hold it for a while. */
const missesAtMost = 3

/**
 * ARGV: queue, now, time of the next try, end of the rest of the queue, number of ids whose messages were removed, these
 * ids, then the ids whose messages were not found.
 */
export const copiesGone: Script<boolean> = {
  name: "dlq-copies-gone",
  lua: `${Index.prelude}
redis.call('ZREMRANGEBYSCORE', base .. 'copies-rest', '-inf', ARGV[2])
redis.call('ZADD', base .. 'copies-rest', ARGV[4], ARGV[1])
for i = 6, #ARGV do
  local key, id = recordKey(ARGV[i]), ARGV[i]
  local isKnown = redis.call('HGET', key, 'archived_at')
  local isGone = not isKnown or i <= 5 + tonumber(ARGV[5]) or redis.call('HINCRBY', key, 'copy_misses', '1') >= ${missesAtMost}
  if isGone then
    local deletedAt = redis.call('ZSCORE', base .. 'copies:' .. ARGV[1], id)
    if isKnown and deletedAt then redis.call('ZADD', base .. 'archive', deletedAt, id) end
    copyIsGone(id, ARGV[1])
  end
end
if redis.call('ZCARD', base .. 'copies:' .. ARGV[1]) > 0 then redis.call('ZADD', base .. 'copies', ARGV[3], ARGV[1]) end
return 1`,
  step: (call, keys, [queue = "", now = "", next = "", rest = "", removed = "", ...ids]) => {
    const index = Index.of(call, keys)
    call("ZREMRANGEBYSCORE", `${index.base}copies-rest`, "-inf", now)
    call("ZADD", `${index.base}copies-rest`, rest, queue)
    for (const [i, id] of ids.entries()) {
      const key = Index.recordKey(index, id)
      const isKnown = call("HGET", key, "archived_at") !== null
      const isGone = !isKnown || i < Number(removed) || Number(call("HINCRBY", key, "copy_misses", "1")) >= missesAtMost
      if (!isGone) continue
      const deletedAt = call("ZSCORE", `${index.base}copies:${queue}`, id)
      if (isKnown && deletedAt !== null) call("ZADD", `${index.base}archive`, String(deletedAt), id)
      Index.copyIsGone(index, id, queue)
    }
    if (Number(call("ZCARD", `${index.base}copies:${queue}`)) > 0) call("ZADD", `${index.base}copies`, next, queue)
    return 1
  },
  decode: (reply) => reply === 1
}
