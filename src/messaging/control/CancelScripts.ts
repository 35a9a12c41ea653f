import type { Reply, Script } from "../../services/Redis.ts"

/**
 * The requests to cancel are in four keys of one hash slot:
 *
 * - the requests: a hash by task id. A value is the state, the id of the request and its JSON, in three lines.
 * - their order: a sorted set of task ids by sequence number. Workers read what is new to them.
 * - their expiry: a sorted set of task ids by milliseconds since 1970.
 * - the last sequence number.
 */

export const cancelStateOf = (
  stored: string
): { readonly state: string; readonly id: string; readonly json: string } => {
  const first = stored.indexOf("\n")
  const second = stored.indexOf("\n", first + 1)
  return { state: stored.slice(0, first), id: stored.slice(first + 1, second), json: stored.slice(second + 1) }
}

const isOpen = (stored: string): boolean => /^(requested|interrupting)\n/.test(stored)

/**
 * ARGV: task id, request, time now, expiry, maximum number of requests. Returns the stored request: the earlier one if
 * that is open. Returns `undefined` if there are too many requests.
 */
export const requestCancel: Script<string | undefined> = {
  name: "request-cancel",
  lua: `
for _, old in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', ARGV[3], 'LIMIT', 0, 1000)) do
  redis.call('HDEL', KEYS[1], old)
  redis.call('ZREM', KEYS[2], old)
  redis.call('ZREM', KEYS[3], old)
end
local current = redis.call('HGET', KEYS[1], ARGV[1])
if current and (string.sub(current, 1, 10) == 'requested\\n' or string.sub(current, 1, 13) == 'interrupting\\n') then
  return current
end
if not current and redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[5]) then return '' end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[2], redis.call('INCR', KEYS[4]), ARGV[1])
redis.call('ZADD', KEYS[3], ARGV[4], ARGV[1])
return ARGV[2]`,
  step: (
    call,
    [requests = "", order = "", expiry = "", sequence = ""],
    [taskId = "", request = "", now = "", expiresAt = "", most = ""]
  ) => {
    for (const old of texts(call("ZRANGEBYSCORE", expiry, "-inf", now, "LIMIT", 0, 1_000))) {
      call("HDEL", requests, old)
      call("ZREM", order, old)
      call("ZREM", expiry, old)
    }
    const current = call("HGET", requests, taskId)
    if (current !== null && isOpen(String(current))) return current
    if (current === null && Number(call("ZCARD", order)) >= Number(most)) return ""
    call("HSET", requests, taskId, request)
    call("ZADD", order, Number(call("INCR", sequence)), taskId)
    call("ZADD", expiry, expiresAt, taskId)
    return request
  },
  decode: (reply) => (reply === "" ? undefined : String(reply))
}

/** ARGV: task id, id of the request, the answered request, expiry. No-op if the task has another request or none. */
export const answerCancel: Script<void> = {
  name: "answer-cancel",
  lua: `
local current = redis.call('HGET', KEYS[1], ARGV[1])
if not current or string.match(current, '^%a+\\n(%w*)\\n') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
redis.call('ZADD', KEYS[3], ARGV[4], ARGV[1])
return 0`,
  step: (call, [requests = "", , expiry = ""], [taskId = "", id = "", request = "", expiresAt = ""]) => {
    const current = call("HGET", requests, taskId)
    if (current === null || cancelStateOf(String(current)).id !== id) return 0
    call("HSET", requests, taskId, request)
    call("ZADD", expiry, expiresAt, taskId)
    return 0
  },
  decode: () => {}
}

/**
 * ARGV: task id, id of a request or an empty string. With an id, only this request is withdrawn, and only if no worker
 * has met a message of the task since. Returns whether a request was withdrawn.
 */
export const withdrawCancel: Script<boolean> = {
  name: "withdraw-cancel",
  lua: `
if ARGV[2] ~= '' then
  local current = redis.call('HGET', KEYS[1], ARGV[1])
  if not current or string.match(current, '^requested\\n(%w*)\\n') ~= ARGV[2] then return 0 end
end
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
return redis.call('HDEL', KEYS[1], ARGV[1])`,
  step: (call, [requests = "", order = "", expiry = ""], [taskId = "", cancelId = ""]) => {
    if (cancelId !== "") {
      const current = cancelStateOf(String(call("HGET", requests, taskId) ?? ""))
      if (current.state !== "requested" || current.id !== cancelId) return 0
    }
    call("ZREM", order, taskId)
    call("ZREM", expiry, taskId)
    return call("HDEL", requests, taskId)
  },
  decode: (reply) => reply === 1
}

const texts = (reply: Reply): ReadonlyArray<string> => (Array.isArray(reply) ? reply.map(String) : [])
