import { Array as Arr } from "effect"
import type { Reply, Script } from "../../services/Redis.ts"
import * as Index from "./DeadLetterIndex.ts"
import * as OutcomeIndex from "./OutcomeIndex.ts"

/** A group of open records, as the index stores it. */
export interface FoundGroup {
  readonly group: string
  readonly seq: string
  readonly count: number
  readonly newestAt: string
  readonly oldestAt: string
  /** The newest record. */
  readonly newestId: string
  readonly stackLine: string | null
  /** The JSON of the newest record without its content. `null` if the record is gone. */
  readonly newestSummary: string | null
  /** The number of records in each bucket. */
  readonly trend: ReadonlyArray<number>
  readonly history: Readonly<Record<string, string>>
}

/**
 * ARGV: upper bound of the sequence number, limit, then the bounds of the buckets of the trend: times, one more than
 * there are buckets. Returns the newest sequence number, then the groups.
 */
export const groups: Script<readonly [newest: number, groups: ReadonlyArray<FoundGroup>]> = {
  name: "dlq-groups",
  lua: `${OutcomeIndex.prelude}
local answer = { redis.call('HGET', KEYS[1], 'seq') or '0' }
local found = redis.call('ZREVRANGEBYSCORE', base .. 'groups', ARGV[1], '-inf', 'WITHSCORES', 'LIMIT', '0', ARGV[2])
for i = 1, #found, 2 do
  local of, times, trend = indexKey('group', found[i]), timesKey('group', found[i]), {}
  for b = 3, #ARGV - 1 do trend[b - 2] = redis.call('ZLEXCOUNT', times, '[' .. ARGV[b], '(' .. ARGV[b + 1]) end
  local newest = last(of)
  answer[#answer + 1] = { found[i], found[i + 1], redis.call('ZCARD', of),
    timeOf(last(times), newest), timeOf(first(times), first(of)),
    newest, redis.call('HMGET', recordKey(newest), 'stack_line', 'summary'), trend,
    redis.call('HGETALL', historyKey(found[i])) }
end
return answer`,
  step: (call, keys, [above = "", limit = "", ...bounds]) => {
    const index = Index.of(call, keys)
    const found = Index.texts(
      call("ZREVRANGEBYSCORE", `${index.base}groups`, above, "-inf", "WITHSCORES", "LIMIT", "0", limit)
    )
    return [
      call("HGET", index.stats, "seq") ?? "0",
      ...Arr.chunksOf(found, 2).map(([group = "", seq = ""]) => {
        const of = index.base + Index.indexName("group", group)
        const newest = String(Index.last(index, of))
        return [
          group,
          seq,
          call("ZCARD", of),
          Index.newestTime(index, "group", group),
          Index.oldestTime(index, "group", group),
          newest,
          call("HMGET", Index.recordKey(index, newest), "stack_line", "summary"),
          Arr.zip(bounds, bounds.slice(1)).map(([from, to]) =>
            call("ZLEXCOUNT", Index.timesKey(index, "group", group), `[${from}`, `(${to}`)
          ),
          call("HGETALL", OutcomeIndex.historyKey(index, group))
        ]
      })
    ]
  },
  decode: (reply) => {
    const [newest, ...found] = Index.items(reply)
    return [Number(newest), found.map(Index.items).map(groupOf)]
  }
}

const groupOf = (values: ReadonlyArray<Reply>): FoundGroup => {
  const [group, seq, count, newestAt, oldestAt, newestId, newest = null, trend = null, history = null] = values
  const [stackLine, summary] = Index.items(newest)
  return {
    group: String(group),
    seq: String(seq),
    count: Number(count),
    newestAt: String(newestAt),
    oldestAt: String(oldestAt),
    newestId: String(newestId),
    stackLine: typeof stackLine === "string" ? stackLine : null,
    newestSummary: typeof summary === "string" ? summary : null,
    trend: Index.items(trend).map(Number),
    history: Object.fromEntries(Arr.chunksOf(Index.texts(history), 2).map(([name = "", value = ""]) => [name, value]))
  }
}
