import type { Call, Reply } from "../../services/Redis.ts"

/** The Lua functions that name keys and read sorted sets. The TypeScript functions below do the same. */
export const prelude = `
local base = string.sub(KEYS[1], 1, -6)
local function recordKey(id) return base .. 'record:' .. id end
local function indexKey(what, value)
  if value then return base .. 'by:' .. what .. ':' .. value end
  return base .. 'by:' .. what
end
local function first(key) return redis.call('ZRANGEBYSCORE', key, '-inf', '+inf', 'LIMIT', '0', '1')[1] end
local function last(key) return redis.call('ZREVRANGEBYSCORE', key, '+inf', '-inf', 'LIMIT', '0', '1')[1] end
local function timesKey(what, value) return base .. 'times:' .. what .. ':' .. value end
local function timeMember(id) return redis.call('HGET', recordKey(id), 'at') .. '\\n' .. id end
local function timeOf(member, otherwise)
  if member then return string.match(member, '^[^\\n]*') end
  return redis.call('HGET', recordKey(otherwise), 'at')
end`

export const indexName = (dimension: string, value: string | null): string =>
  value === null ? `by:${dimension}` : `by:${dimension}:${value}`

export interface Index {
  readonly call: Call
  readonly stats: string
  readonly base: string
}

export const of = (call: Call, keys: ReadonlyArray<string>): Index => {
  const [stats = ""] = keys
  return { call, stats, base: stats.slice(0, -"stats".length) }
}

export const recordKey = ({ base }: Index, id: string): string => `${base}record:${id}`

export const items = (reply: Reply): ReadonlyArray<Reply> => (Array.isArray(reply) ? reply : [])

export const texts = (reply: Reply): ReadonlyArray<string> => items(reply).map((item) => String(item ?? ""))

export const first = ({ call }: Index, key: string): Reply =>
  items(call("ZRANGEBYSCORE", key, "-inf", "+inf", "LIMIT", "0", "1"))[0] ?? null

export const last = ({ call }: Index, key: string): Reply =>
  items(call("ZREVRANGEBYSCORE", key, "+inf", "-inf", "LIMIT", "0", "1"))[0] ?? null

export const timesKey = ({ base }: Index, what: "queue" | "group", value: string): string =>
  `${base}times:${what}:${value}`

export const timeMember = (index: Index, id: string): string =>
  `${index.call("HGET", recordKey(index, id), "at")}\n${id}`

/** Returns the newest time in a queue or group. For data of earlier releases, returns the time of the last record. */
export const newestTime = (index: Index, what: "queue" | "group", value: string): Reply =>
  timeOf(index, last(index, timesKey(index, what, value)), () => last(index, index.base + matchingIndex(what, value)))

export const oldestTime = (index: Index, what: "queue" | "group", value: string): Reply =>
  timeOf(index, first(index, timesKey(index, what, value)), () => first(index, index.base + matchingIndex(what, value)))

const matchingIndex = (what: "queue" | "group", value: string) =>
  indexName(what === "queue" ? "queue_name" : what, value)

const timeOf = (index: Index, member: Reply, otherwise: () => Reply): Reply => {
  if (member === null) return index.call("HGET", recordKey(index, String(otherwise())), "at")
  const text = String(member)
  return text.slice(0, text.indexOf("\n"))
}
