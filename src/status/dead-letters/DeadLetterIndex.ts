import type { Reply } from "../../services/Redis.ts"
import * as Keys from "./IndexKeys.ts"
import { first, type Index, indexName, items, recordKey, texts, timeMember, timesKey } from "./IndexKeys.ts"

export {
  first,
  type Index,
  indexName,
  items,
  last,
  newestTime,
  of,
  oldestTime,
  recordKey,
  texts,
  timesKey
} from "./IndexKeys.ts"

/**
 * The keys of the dead-letter index in Redis. All keys have the same hash tag, so one script may use all of them.
 *
 * - `…stats`: a hash with the last sequence number and the totals. Scripts receive this key and derive the other keys.
 * - `…record:<id>`: a hash with the record, the fields that filters compare, and the claim of a replay.
 * - `…by:<dimension>[:<value>]`: sorted sets of ids by sequence number, one for each value of a filter. The key of the
 *   value `null` ends after the dimension. `…by:group:<group>` contains only records that were not replayed.
 * - `…times:queue:<queue>`, `…times:group:<group>`: sorted sets that order the records of a queue or group by time.
 *   Each member has the score 0 and consists of the time and the id on two lines.
 * - `…queues`, `…groups`: the queues and groups that are not empty, by the sequence number of their newest record.
 * - `…by:state:archived`, `…by:queue_state:archived:<queue>`: the archived records. No other list or count has them.
 * - `…archive`: the archived records whose messages are removed, by the time of their deletion.
 * - `…copies`: the queues that have messages of archived records, by the time of the next try to remove these messages.
 *   `…copies:<queue>`: the archived records of the queue whose messages are not known to be removed, by the time of
 *   their deletion. `…copies-rest`: the queues that were walked a moment ago, by the time until which they are left alone.
 * - `…following`: the replayed records whose outcome is not known yet, by the time of the next look.
 *
 * Earlier releases do not know archived and replaced records. The field `state` of these is `replayed`, so that earlier
 * releases do not replay them. The fields `archived_at` and `replaced_by` tell them from replayed ones.
 */
export const fields = ["queue_name", "task_id", "reason", "exception_type", "source_queue_name"] as const

export const states = ["dead_lettered", "replay_unknown", "replayed", "replaced", "archived"] as const

export const claimFields = ["claim", "claim_phase", "claim_until", "claim_by", "before_state", "before_at", "before_by"]

const dropsAtOnce = 100

const fieldNames = fields.map((field) => `'${field}'`).join(", ")

/** The Lua functions that all scripts share. The in-memory Redis calls the equivalent TypeScript functions below. */
export const prelude = `${Keys.prelude}
local function indexByState(id, seq, state, queue, group)
  redis.call('ZADD', indexKey('state', state), seq, id)
  redis.call('ZADD', indexKey('queue_state', state .. ':' .. queue), seq, id)
  if state == 'dead_lettered' then
    redis.call('ZADD', indexKey('group', group), seq, id)
    redis.call('ZADD', timesKey('group', group), '0', timeMember(id))
    local known = redis.call('ZSCORE', base .. 'groups', group)
    if not known or tonumber(known) < tonumber(seq) then redis.call('ZADD', base .. 'groups', seq, group) end
  end
end
local function unindexByState(id, state, queue, group)
  redis.call('ZREM', indexKey('state', state), id)
  redis.call('ZREM', indexKey('queue_state', state .. ':' .. queue), id)
  if state == 'dead_lettered' then
    redis.call('ZREM', indexKey('group', group), id)
    redis.call('ZREM', timesKey('group', group), timeMember(id))
    if redis.call('ZCARD', indexKey('group', group)) == 0 then redis.call('ZREM', base .. 'groups', group) end
  end
end
local function shownState(record)
  if record[2] then return 'archived' end
  return record[3] and 'replaced' or record[1]
end
local function changeState(id, to)
  local record = redis.call('HMGET', recordKey(id), 'seq', 'state', 'queue_name', 'group', 'archived_at', 'replaced_by')
  if record[5] then
    redis.call('HSET', recordKey(id), 'archived_from', to)
  elseif record[2] ~= to then
    if not record[6] then
      unindexByState(id, record[2], record[3], record[4])
      indexByState(id, record[1], to, record[3], record[4])
    end
    redis.call('HSET', recordKey(id), 'state', to)
  end
end
local function list(id)
  local record = redis.call('HMGET', recordKey(id), 'seq', 'state', 'group', 'replaced_by', ${fieldNames})
  local seq, queue = record[1], record[5]
  redis.call('ZADD', base .. 'by:all', seq, id)
${fields.map((field, i) => `  redis.call('ZADD', indexKey('${field}', record[${i + 5}]), seq, id)`).join("\n")}
  local known = redis.call('ZSCORE', base .. 'queues', queue)
  if not known or tonumber(known) < tonumber(seq) then redis.call('ZADD', base .. 'queues', seq, queue) end
  redis.call('ZADD', timesKey('queue', queue), '0', timeMember(id))
  indexByState(id, seq, record[4] and 'replaced' or record[2], queue, record[3])
end
local function unlist(id)
  local record = redis.call('HMGET', recordKey(id), 'state', 'group', 'replaced_by', ${fieldNames})
  local queue = record[4]
  unindexByState(id, record[3] and 'replaced' or record[1], queue, record[2])
  redis.call('ZREM', base .. 'by:all', id)
  redis.call('ZREM', timesKey('queue', queue), timeMember(id))
${fields.map((field, i) => `  redis.call('ZREM', indexKey('${field}', record[${i + 4}]), id)`).join("\n")}
  if redis.call('ZCARD', indexKey('queue_name', queue)) == 0 then redis.call('ZREM', base .. 'queues', queue) end
end
local function copyIsGone(id, queue)
  redis.call('ZREM', base .. 'copies:' .. queue, id)
  if redis.call('ZCARD', base .. 'copies:' .. queue) == 0 then redis.call('ZREM', base .. 'copies', queue) end
end
local function leaveArchive(id, queue)
  redis.call('ZREM', base .. 'archive', id)
  redis.call('ZREM', indexKey('state', 'archived'), id)
  redis.call('ZREM', indexKey('queue_state', 'archived:' .. queue), id)
  copyIsGone(id, queue)
end
local function drop(id, total)
  local record = redis.call('HMGET', recordKey(id), 'bytes', 'queue_name', 'archived_at')
  redis.call('ZREM', base .. 'following', id)
  if not record[1] then
    redis.call('ZREM', base .. 'by:all', id)
    redis.call('ZREM', base .. 'archive', id)
    redis.call('ZREM', indexKey('state', 'archived'), id)
    return
  end
  if record[3] then leaveArchive(id, record[2]) else unlist(id) end
  redis.call('DEL', recordKey(id))
  redis.call('HINCRBY', KEYS[1], 'bytes', '-' .. record[1])
  redis.call('HINCRBY', KEYS[1], total, '1')
end
local function isPresent(id, expiredBefore)
  local at = redis.call('HGET', recordKey(id), 'indexed_at')
  return at and tonumber(at) > tonumber(expiredBefore)
end
local function trim(maxRecords, maxBytes, expiredBefore)
  for _ = 1, ${dropsAtOnce} do
    local archived = indexKey('state', 'archived')
    local open = redis.call('ZCARD', base .. 'by:all')
    local count = open + redis.call('ZCARD', archived)
    if count == 0 then return end
    local bytes = tonumber(redis.call('HGET', KEYS[1], 'bytes'))
    local full = count > tonumber(maxRecords) or (bytes > tonumber(maxBytes) and count > 1)
    if not full and tonumber(expiredBefore) < 0 then return end
    local id = first(base .. 'by:all')
    if id and not isPresent(id, expiredBefore) then drop(id, 'expired')
    elseif full then drop(first(base .. 'archive') or (open > 1 and id) or first(archived) or id, 'evicted')
    else return end
  end
end`

export const indexByState = (
  index: Index,
  id: string,
  { group, queue, seq, state }: { readonly group: string; readonly queue: string; seq: string; readonly state: string }
): void => {
  const { base, call } = index
  call("ZADD", `${base}by:state:${state}`, seq, id)
  call("ZADD", `${base}by:queue_state:${state}:${queue}`, seq, id)
  if (state !== "dead_lettered") return
  call("ZADD", `${base}by:group:${group}`, seq, id)
  call("ZADD", timesKey(index, "group", group), 0, timeMember(index, id))
  const known = call("ZSCORE", `${base}groups`, group)
  if (known === null || Number(known) < Number(seq)) call("ZADD", `${base}groups`, seq, group)
}

export const unindexByState = (index: Index, id: string, state: string, queue: string, group: string): void => {
  const { base, call } = index
  call("ZREM", `${base}by:state:${state}`, id)
  call("ZREM", `${base}by:queue_state:${state}:${queue}`, id)
  if (state !== "dead_lettered") return
  call("ZREM", `${base}by:group:${group}`, id)
  call("ZREM", timesKey(index, "group", group), timeMember(index, id))
  if (call("ZCARD", `${base}by:group:${group}`) === 0) call("ZREM", `${base}groups`, group)
}

/** Returns the state as readers see it. */
export const shownState = ({ call }: Index, key: string): Reply => {
  const [state = null, archivedAt, replacedBy] = items(call("HMGET", key, "state", "archived_at", "replaced_by"))
  if (archivedAt !== null) return "archived"
  return replacedBy === null ? state : "replaced"
}

export const changeState = (index: Index, id: string, to: string): void => {
  const record = recordKey(index, id)
  const [seq = "", from = "", queue = "", group = "", archivedAt = "", replacedBy = ""] = texts(
    index.call("HMGET", record, "seq", "state", "queue_name", "group", "archived_at", "replaced_by")
  )
  if (archivedAt !== "") index.call("HSET", record, "archived_from", to)
  else if (from !== to) {
    if (replacedBy === "") {
      unindexByState(index, id, from, queue, group)
      indexByState(index, id, { seq, state: to, queue, group })
    }
    index.call("HSET", record, "state", to)
  }
}

/** Adds a record to the sorted sets of lists and counts. */
export const list = (index: Index, id: string): void => {
  const { base, call } = index
  const [seq, state, group, replacedBy, ...values] = items(
    call("HMGET", recordKey(index, id), "seq", "state", "group", "replaced_by", ...fields)
  )
  const queue = String(values[0])
  call("ZADD", `${base}by:all`, String(seq), id)
  for (const key of valueIndexes(index, values)) call("ZADD", key, String(seq), id)
  const known = call("ZSCORE", `${base}queues`, queue)
  if (known === null || Number(known) < Number(seq)) call("ZADD", `${base}queues`, String(seq), queue)
  call("ZADD", timesKey(index, "queue", queue), 0, timeMember(index, id))
  const shown = replacedBy === null ? String(state) : "replaced"
  indexByState(index, id, { seq: String(seq), state: shown, queue, group: String(group) })
}

export const unlist = (index: Index, id: string): void => {
  const { base, call } = index
  const [state, group, replacedBy, ...values] = items(
    call("HMGET", recordKey(index, id), "state", "group", "replaced_by", ...fields)
  )
  const queue = String(values[0])
  unindexByState(index, id, replacedBy === null ? String(state) : "replaced", queue, String(group))
  call("ZREM", `${base}by:all`, id)
  call("ZREM", timesKey(index, "queue", queue), timeMember(index, id))
  for (const key of valueIndexes(index, values)) call("ZREM", key, id)
  if (call("ZCARD", base + indexName("queue_name", queue)) === 0) call("ZREM", `${base}queues`, queue)
}

const valueIndexes = ({ base }: Index, values: ReadonlyArray<Reply>): ReadonlyArray<string> =>
  fields.map((field, i) => {
    const value = values[i] ?? null
    return base + indexName(field, value === null ? null : String(value))
  })

/** The message of an archived record is not in its queue any more. */
export const copyIsGone = ({ base, call }: Index, id: string, queue: string): void => {
  call("ZREM", `${base}copies:${queue}`, id)
  if (call("ZCARD", `${base}copies:${queue}`) === 0) call("ZREM", `${base}copies`, queue)
}

export const leaveArchive = (index: Index, id: string, queue: string): void => {
  const { base, call } = index
  call("ZREM", `${base}archive`, id)
  call("ZREM", `${base}by:state:archived`, id)
  call("ZREM", `${base}by:queue_state:archived:${queue}`, id)
  copyIsGone(index, id, queue)
}

export const drop = (index: Index, id: string, total: "evicted" | "expired"): void => {
  const { base, call, stats } = index
  const [bytes, queue, archivedAt] = items(call("HMGET", recordKey(index, id), "bytes", "queue_name", "archived_at"))
  call("ZREM", `${base}following`, id)
  // An earlier release has deleted the record.
  if (bytes === null) {
    for (const name of ["by:all", "archive", "by:state:archived"]) call("ZREM", base + name, id)
    return
  }
  if (archivedAt === null) unlist(index, id)
  else leaveArchive(index, id, String(queue))
  call("DEL", recordKey(index, id))
  call("HINCRBY", stats, "bytes", `-${bytes}`)
  call("HINCRBY", stats, total, "1")
}

/**
 * Deletes archived records first, because they are of the least use. One whose message may be in its queue stays as
 * long as others can make room, because indexing the queue would bring it back.
 */
export const trim = (index: Index, maxRecords: string, maxBytes: string, expiredBefore: string): void => {
  const { base, call, stats } = index
  for (let dropped = 0; dropped < dropsAtOnce; dropped++) {
    const archived = `${base}by:state:archived`
    const open = Number(call("ZCARD", `${base}by:all`))
    const count = open + Number(call("ZCARD", archived))
    if (count === 0) return
    const full = count > Number(maxRecords) || (Number(call("HGET", stats, "bytes")) > Number(maxBytes) && count > 1)
    if (!full && Number(expiredBefore) < 0) return
    const id = first(index, `${base}by:all`)
    if (id !== null && !isPresent(index, String(id), expiredBefore)) drop(index, String(id), "expired")
    else if (full) {
      const dropped = first(index, `${base}archive`) ?? (open > 1 ? id : (first(index, archived) ?? id))
      drop(index, String(dropped), "evicted")
    } else return
  }
}

export const isPresent = (index: Index, id: string, expiredBefore: string): boolean => {
  const at = index.call("HGET", recordKey(index, id), "indexed_at")
  return at !== null && Number(at) > Number(expiredBefore)
}
