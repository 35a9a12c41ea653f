import { Array as Arr } from "effect"
import type { Reply, Script } from "../../services/Redis.ts"
import * as Index from "./DeadLetterIndex.ts"

export const summaryFields = [
  "summary",
  "state",
  "replay_count",
  "replayed_at",
  "target",
  "unknown_at",
  "unknown_by",
  "claim_until"
] as const

/**
 * ARGV: id, now, maximum records, maximum bytes, expiry bound, then the fields of the record as pairs. Records that
 * were indexed before the expiry bound have expired.
 */
export const record: Script<boolean> = {
  name: "dlq-record",
  lua: `${Index.prelude}
local id, now = ARGV[1], ARGV[2]
if isPresent(id, ARGV[5]) then return 0 end
if redis.call('EXISTS', recordKey(id)) == 1 then drop(id, 'expired') end
local seq = redis.call('HINCRBY', KEYS[1], 'seq', '1')
redis.call('HSET', recordKey(id), 'seq', seq, 'indexed_at', now, unpack(ARGV, 6))
local record = redis.call('HMGET', recordKey(id), 'state', 'group', 'bytes', ${Index.fields.map((field) => `'${field}'`).join(", ")})
redis.call('ZADD', base .. 'by:all', seq, id)
${Index.fields.map((field, i) => `redis.call('ZADD', indexKey('${field}', record[${i + 4}]), seq, id)`).join("\n")}
redis.call('ZADD', base .. 'queues', seq, record[4])
redis.call('ZADD', timesKey('queue', record[4]), '0', timeMember(id))
indexByState(id, seq, record[1], record[4], record[2])
redis.call('HINCRBY', KEYS[1], 'bytes', record[3])
redis.call('HINCRBY', KEYS[1], 'indexed', '1')
trim(ARGV[3], ARGV[4], ARGV[5])
return 1`,
  step: (call, keys, [id = "", now = "", maxRecords = "", maxBytes = "", expiredBefore = "", ...given]) => {
    const index = Index.of(call, keys)
    const { base, stats } = index
    const key = Index.recordKey(index, id)
    if (Index.isPresent(index, id, expiredBefore)) return 0
    if (call("EXISTS", key) === 1) Index.drop(index, id, "expired")
    const seq = String(call("HINCRBY", stats, "seq", "1"))
    call("HSET", key, "seq", seq, "indexed_at", now, ...given)
    const [state, group, bytes, ...values] = Index.items(call("HMGET", key, "state", "group", "bytes", ...Index.fields))
    call("ZADD", `${base}by:all`, seq, id)
    for (const [i, field] of Index.fields.entries()) {
      const value = values[i] ?? null
      call("ZADD", base + Index.indexName(field, value === null ? null : String(value)), seq, id)
    }
    const queue = String(values[0])
    call("ZADD", `${base}queues`, seq, queue)
    Index.indexTime(index, id, queue)
    Index.indexByState(index, id, { seq, state: String(state), queue, group: String(group) })
    call("HINCRBY", stats, "bytes", String(bytes))
    call("HINCRBY", stats, "indexed", "1")
    Index.trim(index, maxRecords, maxBytes, expiredBefore)
    return 1
  },
  decode: (reply) => reply === 1
}

/** ARGV: maximum records, maximum bytes, expiry bound. Returns the totals. */
export const trim: Script<ReadonlyArray<number>> = {
  name: "dlq-trim",
  lua: `${Index.prelude}
trim(ARGV[1], ARGV[2], ARGV[3])
local answer = redis.call('HMGET', KEYS[1], 'bytes', 'indexed', 'evicted', 'expired')
table.insert(answer, 1, redis.call('ZCARD', base .. 'by:all'))
return answer`,
  step: (call, keys, [maxRecords = "", maxBytes = "", expiredBefore = ""]) => {
    const index = Index.of(call, keys)
    Index.trim(index, maxRecords, maxBytes, expiredBefore)
    return [
      call("ZCARD", `${index.base}by:all`),
      ...Index.items(call("HMGET", index.stats, "bytes", "indexed", "evicted", "expired"))
    ]
  },
  decode: (reply) => Index.items(reply).map((item) => Number(item ?? 0))
}

export interface IndexScan {
  readonly newest: number
  /** The sequence number of the last record that was examined. `undefined` at the end of the index. */
  readonly last: number | undefined
  readonly found: ReadonlyArray<{ readonly id: string; readonly seq: number; readonly values: ReadonlyArray<Reply> }>
}

/**
 * ARGV: upper bound of the sequence number, number of ids to examine, number of records to find, expiry bound, number
 * of candidate indexes, their names, then for each filter: field, value, and 0 for a `null` value, else 1. The script
 * reads the smallest candidate index and compares its records with the filters.
 */
export const page: Script<IndexScan> = {
  name: "dlq-page",
  lua: `${Index.prelude}
local look, find, expiredBefore, n = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
local serving, size
for i = 6, 5 + n do
  local count = redis.call('ZCARD', base .. ARGV[i])
  if not size or count < size then serving, size = base .. ARGV[i], count end
end
local wanted = {}
for i = 6 + n, #ARGV, 3 do wanted[#wanted + 1] = ARGV[i] end
local function matches(key)
  if #wanted == 0 then return true end
  for i, value in ipairs(redis.call('HMGET', key, unpack(wanted))) do
    local at = 5 + n + 3 * i
    if ARGV[at] == '1' then
      if value ~= ARGV[at - 1] then return false end
    elseif value then return false end
  end
  return true
end
local answer = { redis.call('HGET', KEYS[1], 'seq') or '0', '' }
local ids = redis.call('ZREVRANGEBYSCORE', serving, ARGV[1], '-inf', 'LIMIT', '0', look)
for i, id in ipairs(ids) do
  local key = recordKey(id)
  local seq = redis.call('HGET', key, 'seq')
  if isPresent(id, expiredBefore) and matches(key) then
    local found = redis.call('HMGET', key, ${summaryFields.map((field) => `'${field}'`).join(", ")})
    table.insert(found, 1, seq)
    table.insert(found, 1, id)
    answer[#answer + 1] = found
  end
  if i == look or #answer == find + 2 then
    answer[2] = seq
    break
  end
end
return answer`,
  step: (call, keys, [above = "", look = "", find = "", expiredBefore = "", n = "", ...rest]) => {
    const index = Index.of(call, keys)
    const indexes = rest.slice(0, Number(n)).map((name) => index.base + name)
    const conditions = Arr.chunksOf(rest.slice(Number(n)), 3)
    let [serving, size]: [string, number] = ["", Number.POSITIVE_INFINITY]
    for (const key of indexes) {
      const count = Number(call("ZCARD", key))
      if (count < size) [serving, size] = [key, count]
    }
    const matches = (key: string): boolean => {
      if (conditions.length === 0) return true
      const values = Index.items(call("HMGET", key, ...conditions.map(([field = ""]) => field)))
      return conditions.every(([, value, has], i) => values[i] === (has === "1" ? value : null))
    }
    let last = ""
    const found: Array<Reply> = []
    const ids = Index.texts(call("ZREVRANGEBYSCORE", serving, above, "-inf", "LIMIT", "0", look))
    for (const [i, id] of ids.entries()) {
      const key = Index.recordKey(index, id)
      const seq = call("HGET", key, "seq")
      if (Index.isPresent(index, id, expiredBefore) && matches(key)) {
        found.push([id, seq, ...Index.items(call("HMGET", key, ...summaryFields))])
      }
      if (i + 1 === Number(look) || found.length === Number(find)) {
        last = String(seq)
        break
      }
    }
    return [call("HGET", index.stats, "seq") ?? "0", last, ...found]
  },
  decode: (reply) => {
    const [newest, last, ...found] = Index.items(reply)
    return {
      newest: Number(newest),
      last: last === "" ? undefined : Number(last),
      found: found.map((item) => {
        const [id, seq, ...values] = Index.items(item)
        return { id: String(id), seq: Number(seq), values }
      })
    }
  }
}

const maxQueues = 1_000

/** No ARGV. Returns for each queue: name, number of records, number of records in each state, newest time. */
export const queues: Script<ReadonlyArray<ReadonlyArray<Reply>>> = {
  name: "dlq-queues",
  lua: `${Index.prelude}
local answer = {}
for i, queue in ipairs(redis.call('ZREVRANGEBYSCORE', base .. 'queues', '+inf', '-inf', 'LIMIT', '0', '${maxQueues}')) do
  local of = indexKey('queue_name', queue)
  local states = {}
  for s, state in ipairs({ ${Index.states.map((state) => `'${state}'`).join(", ")} }) do
    states[s] = redis.call('ZCARD', indexKey('queue_state', state .. ':' .. queue))
  end
  answer[i] = { queue, redis.call('ZCARD', of), states[1], states[2], states[3], timeOf(last(timesKey('queue', queue)), last(of)) }
end
return answer`,
  step: (call, keys) => {
    const index = Index.of(call, keys)
    return Index.texts(call("ZREVRANGEBYSCORE", `${index.base}queues`, "+inf", "-inf", "LIMIT", "0", maxQueues)).map(
      (queue) => {
        const queueIndex = Index.indexName("queue_name", queue)
        return [
          queue,
          call("ZCARD", index.base + queueIndex),
          ...Index.states.map((state) => call("ZCARD", `${index.base}by:queue_state:${state}:${queue}`)),
          Index.newestTime(index, "queue", queue)
        ]
      }
    )
  },
  decode: (reply) => Index.items(reply).map(Index.items)
}

/**
 * ARGV: upper bound of the sequence number, limit. Returns the newest sequence number, then for each group: name,
 * sequence number, count, newest time, oldest time.
 */
export const groups: Script<readonly [newest: number, groups: ReadonlyArray<ReadonlyArray<Reply>>]> = {
  name: "dlq-groups",
  lua: `${Index.prelude}
local answer = { redis.call('HGET', KEYS[1], 'seq') or '0' }
local found = redis.call('ZREVRANGEBYSCORE', base .. 'groups', ARGV[1], '-inf', 'WITHSCORES', 'LIMIT', '0', ARGV[2])
for i = 1, #found, 2 do
  local of = indexKey('group', found[i])
  answer[#answer + 1] = { found[i], found[i + 1], redis.call('ZCARD', of),
    timeOf(last(timesKey('group', found[i])), last(of)), timeOf(first(timesKey('group', found[i])), first(of)) }
end
return answer`,
  step: (call, keys, [above = "", limit = ""]) => {
    const index = Index.of(call, keys)
    const found = Index.texts(
      call("ZREVRANGEBYSCORE", `${index.base}groups`, above, "-inf", "WITHSCORES", "LIMIT", "0", limit)
    )
    return [
      call("HGET", index.stats, "seq") ?? "0",
      ...Arr.chunksOf(found, 2).map(([group = "", seq = ""]) => {
        const groupIndex = Index.indexName("group", group)
        const count = call("ZCARD", index.base + groupIndex)
        return [group, seq, count, Index.newestTime(index, "group", group), Index.oldestTime(index, "group", group)]
      })
    ]
  },
  decode: (reply) => {
    const [newest, ...found] = Index.items(reply)
    return [Number(newest), found.map(Index.items)]
  }
}
