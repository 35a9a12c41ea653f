import assert from "node:assert/strict"
import type { Script } from "../../../src/services/Redis.ts"

/** Takes tokens from a bucket, and returns the number that is left and the last three calls. */
export const take: Script<{ readonly taken: number; readonly left: number; readonly log: ReadonlyArray<string> }> = {
  name: "take",
  lua: `
    local left = tonumber(redis.call("GET", KEYS[1]) or ARGV[1])
    local wanted = tonumber(ARGV[2])
    if wanted > left then
      redis.call("RPUSH", KEYS[2], "refused " .. ARGV[2])
      redis.call("LTRIM", KEYS[2], -3, -1)
      return {0, left, redis.call("LRANGE", KEYS[2], 0, -1)}
    end
    redis.call("SET", KEYS[1], left - wanted, "PX", 60000)
    redis.call("RPUSH", KEYS[2], "took " .. ARGV[2])
    redis.call("LTRIM", KEYS[2], -3, -1)
    return {wanted, left - wanted, redis.call("LRANGE", KEYS[2], 0, -1)}`,
  step: (call, [bucket = "", log = ""], [full = "", text = ""]) => {
    const left = Number(call("GET", bucket) ?? full)
    const wanted = Number(text)
    const enough = wanted <= left
    if (enough) call("SET", bucket, left - wanted, "PX", 60_000)
    call("RPUSH", log, `${enough ? "took" : "refused"} ${text}`)
    call("LTRIM", log, -3, -1)
    return [enough ? wanted : 0, enough ? left - wanted : left, call("LRANGE", log, 0, -1)]
  },
  decode: (reply) => {
    const [taken, left, log] = Array.isArray(reply) ? reply : []
    assert.ok(typeof taken === "number" && typeof left === "number" && Array.isArray(log))
    return { taken, left, log: log.map(String) }
  }
}
