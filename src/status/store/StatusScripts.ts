import type { Reply, Script } from "../../services/Redis.ts"

/**
 * The data of a task is in two keys of one hash slot. Both keys expire at the same time.
 *
 * - the history: a list of entries, oldest first. An entry is a sequence number, a line break, and the payload.
 * - the event ids: a sorted set of the latest ids, with their sequence numbers as scores. One more member, the empty
 *   string, has the newest sequence number as its score. It continues the numbering after all events were removed.
 */

/**
 * KEYS: history, event ids. ARGV: event id, payload, channel, TTL in seconds or an empty string, maximum entries,
 * maximum ids. Returns the sequence number of the event, or 0 for a duplicate.
 */
export const storeStatus: Script<"stored" | "duplicate"> = {
  name: "store-status",
  lua: `
local last = redis.call('ZSCORE', KEYS[2], '')
if last then
  if redis.call('ZSCORE', KEYS[2], ARGV[1]) then return 0 end
else
  redis.call('DEL', KEYS[1])
end
local next = tonumber(last or '0') + 1
local sequence = string.format('%.0f', next)
local entry = sequence .. '\\n' .. ARGV[2]
if redis.call('RPUSH', KEYS[1], entry) > tonumber(ARGV[5]) then redis.call('LTRIM', KEYS[1], '-' .. ARGV[5], '-1') end
redis.call('ZADD', KEYS[2], sequence, '', sequence, ARGV[1])
local forgotten = next - tonumber(ARGV[6])
if forgotten > 0 then redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', forgotten)) end
if ARGV[4] ~= '' then
  redis.call('EXPIRE', KEYS[1], ARGV[4])
  redis.call('EXPIRE', KEYS[2], ARGV[4])
end
redis.call('PUBLISH', ARGV[3], entry)
return next`,
  step: (
    call,
    [history = "", ids = ""],
    [id = "", payload = "", channel = "", seconds = "", maxEntries = "", maxIds = ""]
  ) => {
    const last = call("ZSCORE", ids, "")
    if (last === null) call("DEL", history)
    else if (call("ZSCORE", ids, id) !== null) return 0
    const next = Number(last ?? 0) + 1
    const entry = `${next}\n${payload}`
    if (Number(call("RPUSH", history, entry)) > Number(maxEntries)) call("LTRIM", history, `-${maxEntries}`, "-1")
    call("ZADD", ids, next, "", next, id)
    const forgotten = next - Number(maxIds)
    if (forgotten > 0) call("ZREMRANGEBYSCORE", ids, "-inf", forgotten)
    if (seconds !== "") {
      call("EXPIRE", history, seconds)
      call("EXPIRE", ids, seconds)
    }
    call("PUBLISH", channel, entry)
    return next
  },
  decode: (reply) => (reply === 0 ? "duplicate" : "stored")
}

const chunkSize = 8

const minimumEntries = 2

interface HistoryRead {
  readonly newest: number
  readonly oldest: number
  readonly entries: ReadonlyArray<string>
}

/**
 * KEYS: history, event ids. ARGV: sequence number after which to read, number of newest entries, then two limits of
 * these entries: their number and their bytes. An empty argument means no limit. Returns the oldest entries within the
 * limits, but at least two. Sequence numbers have no gaps, so they give the index of an entry.
 */
export const readHistory: Script<HistoryRead> = {
  name: "read-status-history",
  lua: `
local newest = tonumber(redis.call('ZSCORE', KEYS[2], '') or '0')
local kept = redis.call('LLEN', KEYS[1])
if newest == 0 or kept == 0 then return {newest, 0, {}} end
local oldest = newest - kept + 1
local first = math.max(tonumber(ARGV[1]) + 1 - oldest, 0)
if ARGV[2] ~= '' then first = math.max(first, kept - tonumber(ARGV[2])) end
if first >= kept then return {newest, oldest, {}} end
local function range(from, to)
  return redis.call('LRANGE', KEYS[1], string.format('%.0f', from), string.format('%.0f', to))
end
if ARGV[3] == '' then return {newest, oldest, range(first, kept - 1)} end
local most = math.min(kept - first, tonumber(ARGV[3]))
local room = tonumber(ARGV[4])
local entries = {}
while #entries < most do
  local from = first + #entries
  for _, entry in ipairs(range(from, math.min(from + ${chunkSize}, first + most) - 1)) do
    if room <= 0 and #entries >= ${minimumEntries} then return {newest, oldest, entries} end
    entries[#entries + 1] = entry
    room = room - #entry
  end
end
return {newest, oldest, entries}`,
  step: (call, [history = "", ids = ""], [after = "", limit = "", maxEntries = "", maxBytes = ""]) => {
    const newest = Number(call("ZSCORE", ids, "") ?? 0)
    const kept = Number(call("LLEN", history))
    if (newest === 0 || kept === 0) return [newest, 0, []]
    const oldest = newest - kept + 1
    const firstAfter = Math.max(Number(after) + 1 - oldest, 0)
    const first = limit === "" ? firstAfter : Math.max(firstAfter, kept - Number(limit))
    if (first >= kept) return [newest, oldest, []]
    if (maxEntries === "") return [newest, oldest, call("LRANGE", history, first, -1)]
    let bytesLeft = Number(maxBytes)
    const entries: Array<Reply> = []
    for (const entry of items(call("LRANGE", history, first, -1)).slice(0, Number(maxEntries))) {
      if (bytesLeft <= 0 && entries.length >= minimumEntries) break
      entries.push(entry)
      bytesLeft -= Buffer.byteLength(String(entry))
    }
    return [newest, oldest, entries]
  },
  decode: (reply) => {
    const [newest, oldest, entries = []] = items(reply)
    return { newest: Number(newest), oldest: Number(oldest), entries: items(entries).map(String) }
  }
}

/** KEYS: children. ARGV: child, TTL in seconds or an empty string, maximum children. Known children stay indexed. */
export const indexChild: Script<"indexed" | "full"> = {
  name: "index-child",
  lua: `
local full = 0
if redis.call('ZADD', KEYS[1], 'NX', '0', ARGV[1]) == 1 and redis.call('ZCARD', KEYS[1]) > tonumber(ARGV[3]) then
  redis.call('ZREM', KEYS[1], ARGV[1])
  full = 1
end
if ARGV[2] ~= '' then redis.call('EXPIRE', KEYS[1], ARGV[2]) end
return full`,
  step: (call, [children = ""], [child = "", seconds = "", maxChildren = ""]) => {
    const isFull = call("ZADD", children, "NX", 0, child) === 1 && Number(call("ZCARD", children)) > Number(maxChildren)
    if (isFull) call("ZREM", children, child)
    if (seconds !== "") call("EXPIRE", children, seconds)
    return isFull ? 1 : 0
  },
  decode: (reply) => (reply === 1 ? "full" : "indexed")
}

const items = (reply: Reply): ReadonlyArray<Reply> => (Array.isArray(reply) ? reply : [])
