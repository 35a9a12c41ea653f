import { Array as Arr } from "effect"
import type { Reply, Script } from "../../services/Redis.ts"
import * as Index from "./DeadLetterIndex.ts"
import * as OutcomeIndex from "./OutcomeIndex.ts"

export const summaryFields = [
  "summary",
  "state",
  "replay_count",
  "replayed_at",
  "target",
  "unknown_at",
  "unknown_by",
  "claim_until",
  "replaced_by",
  "replaced_at",
  "edited_from",
  "archived_at",
  "archived_by",
  "archived_reason",
  "archived_from",
  "archived_until",
  "outcome",
  "outcome_of",
  "outcome_at",
  "failed_again_as"
] as const

/**
 * ARGV: id, now, maximum records, maximum bytes, expiry bound, now as text, then the fields of the record as pairs.
 * Records that were indexed before the expiry bound have expired.
 */
export const record: Script<boolean> = {
  name: "dlq-record",
  lua: `${OutcomeIndex.prelude}
local id, now = ARGV[1], ARGV[2]
if isPresent(id, ARGV[5]) then return 0 end
if redis.call('EXISTS', recordKey(id)) == 1 then drop(id, 'expired') end
local seq = redis.call('HINCRBY', KEYS[1], 'seq', '1')
redis.call('HSET', recordKey(id), 'seq', seq, 'indexed_at', now, unpack(ARGV, 7))
list(id)
redis.call('HINCRBY', KEYS[1], 'bytes', redis.call('HGET', recordKey(id), 'bytes'))
redis.call('HINCRBY', KEYS[1], 'indexed', '1')
noteSeen(id)
linkReplay(id, ARGV[6])
trim(ARGV[3], ARGV[4], ARGV[5])
return 1`,
  step: (call, keys, [id = "", now = "", maxRecords = "", maxBytes = "", expiredBefore = "", at = "", ...given]) => {
    const index = Index.of(call, keys)
    const { stats } = index
    const key = Index.recordKey(index, id)
    if (Index.isPresent(index, id, expiredBefore)) return 0
    if (call("EXISTS", key) === 1) Index.drop(index, id, "expired")
    const seq = String(call("HINCRBY", stats, "seq", "1"))
    call("HSET", key, "seq", seq, "indexed_at", now, ...given)
    Index.list(index, id)
    call("HINCRBY", stats, "bytes", String(call("HGET", key, "bytes")))
    call("HINCRBY", stats, "indexed", "1")
    OutcomeIndex.noteSeen(index, id)
    OutcomeIndex.linkReplay(index, id, at)
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
table.insert(answer, redis.call('ZCARD', indexKey('state', 'archived')))
return answer`,
  step: (call, keys, [maxRecords = "", maxBytes = "", expiredBefore = ""]) => {
    const index = Index.of(call, keys)
    Index.trim(index, maxRecords, maxBytes, expiredBefore)
    return [
      call("ZCARD", `${index.base}by:all`),
      ...Index.items(call("HMGET", index.stats, "bytes", "indexed", "evicted", "expired")),
      call("ZCARD", `${index.base}by:state:archived`)
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
  local values = redis.call('HMGET', key, unpack(wanted))
  for i, name in ipairs(wanted) do
    if name == 'state' then values[i] = shownState(redis.call('HMGET', key, 'state', 'archived_at', 'replaced_by')) end
  end
  for i, value in ipairs(values) do
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
      return conditions.every(([field, value, has], i) => {
        const given = field === "state" ? Index.shownState(index, key) : values[i]
        return given === (has === "1" ? value : null)
      })
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

/** No ARGV. Returns for each queue: name, number of records, newest time, number of records in each state. */
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
  answer[i] = { queue, redis.call('ZCARD', of), timeOf(last(timesKey('queue', queue)), last(of)), unpack(states) }
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
          Index.newestTime(index, "queue", queue),
          ...Index.states.map((state) => call("ZCARD", `${index.base}by:queue_state:${state}:${queue}`))
        ]
      }
    )
  },
  decode: (reply) => Index.items(reply).map(Index.items)
}
