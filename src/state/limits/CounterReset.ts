import { Array as Arr, Effect } from "effect"
import { Redis, type Script } from "../../services/Redis.ts"
import { redisKeysOf } from "./CounterKeys.ts"
import { markStanding, parseMark, remember, rememberLua, standingLua } from "./CounterMarks.ts"
import * as Meters from "./Meters.ts"

/**
 * Sets the counter of a day or month to what running requests hold. A counter that was lost or is new is complete from
 * then on. A restoration that has read the usage records before the reset then finds that it has nothing to restore.
 */
export const reset = Effect.fn("CounterReset.reset")(function* (meter: Meters.Meter) {
  const redis = yield* Redis
  const { counters, known, open } = redisKeysOf(redis, { scope: meter.scope, meters: [meter] })
  const keep = Meters.retentionSeconds[meter.window]
  yield* redis.run(script, [open, known, ...counters], [meter.name, Meters.markOf(meter), keep])
})

/** KEYS: open reservations, marks, the counter. ARGV: name and mark of the counter, and how long a lost one is kept. */
const script: Script<void> = {
  name: "reset",
  lua: `
${standingLua}
${rememberLua}
local name, wanted, keep = ARGV[1], ARGV[2], ARGV[3]
local value, mark = redis.call('GET', KEYS[3]), redis.call('HGET', KEYS[2], name)
local stand = standing(mark, wanted, value)
if stand ~= 'begins' then
  local place, held = ' ' .. name .. ':' .. string.match(wanted, '^%d+') .. ' ', 0
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '+inf')) do
    local _, at = string.find(member, place, 1, true)
    if at then held = held + tonumber(string.match(member, '^%d+', at + 1)) end
  end
  if value then
    redis.call('INCRBY', KEYS[3], string.format('%.0f', held - tonumber(value)))
  else
    redis.call('SET', KEYS[3], string.format('%.0f', held), 'EX', keep)
  end
  if stand == 'cold' then remember(KEYS[2], name, mark, wanted) end
end`,
  step: (call, [open = "", known = "", counter = ""], [name = "", wanted = "", keep = ""]) => {
    const [value, mark] = [call("GET", counter), call("HGET", known, name)]
    const stand = markStanding(mark, wanted, value !== null)
    if (stand === "begins") return null
    const members = call("ZRANGEBYSCORE", open, "-inf", "+inf")
    const held = (Array.isArray(members) ? members : []).flatMap((member) =>
      Arr.chunksOf(String(member).split(" ").slice(1), 2).flatMap(([place, amount]) =>
        place === `${name}:${parseMark(wanted)?.window}` ? [Number(amount)] : []
      )
    )
    const total = held.reduce((sum, amount) => sum + amount, 0)
    if (value === null) call("SET", counter, total, "EX", keep)
    else call("INCRBY", counter, total - Number(value))
    if (stand === "cold") remember(call, known, name, mark, wanted)
    return null
  },
  decode: () => undefined
}
