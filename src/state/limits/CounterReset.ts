import { Array as Arr, Effect } from "effect"
import { Redis, type Script } from "../../services/Redis.ts"
import { redisKeysOf } from "./CounterKeys.ts"
import type * as Meters from "./Meters.ts"

/**
 * Sets a counter to what running requests hold. A counter that has to be restored is lowered as well, because a
 * restoration keeps a higher value.
 */
export const reset = Effect.fn("CounterReset.reset")(function* (meter: Meters.Meter) {
  const redis = yield* Redis
  const { counters, open } = redisKeysOf(redis, { scope: meter.scope, meters: [meter] })
  yield* redis.run(script, [open, ...counters], [meter.name, meter.windowId])
})

/** KEYS: open reservations, the counter. ARGV: name and window of the counter. The counter keeps its time to live. */
const script: Script<void> = {
  name: "reset",
  lua: `
local value = redis.call('GET', KEYS[2])
if value then
  local place, held = ' ' .. ARGV[1] .. ':' .. ARGV[2] .. ' ', 0
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '+inf')) do
    local _, at = string.find(member, place, 1, true)
    if at then held = held + tonumber(string.match(member, '^%d+', at + 1)) end
  end
  redis.call('INCRBY', KEYS[2], string.format('%.0f', held - tonumber(value)))
end`,
  step: (call, [open = "", counter = ""], [name = "", window = ""]) => {
    const value = call("GET", counter)
    if (value === null) return null
    const members = call("ZRANGEBYSCORE", open, "-inf", "+inf")
    const held = (Array.isArray(members) ? members : []).flatMap((member) =>
      Arr.chunksOf(String(member).split(" ").slice(1), 2).flatMap(([place, amount]) =>
        place === `${name}:${window}` ? [Number(amount)] : []
      )
    )
    const total = held.reduce((sum, amount) => sum + amount, 0)
    call("INCRBY", counter, total - Number(value))
    return null
  },
  decode: () => undefined
}
