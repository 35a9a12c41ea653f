import { Array as Arr, Effect } from "effect"
import { type Call, Redis, type Reply, type Script } from "../../services/Redis.ts"
import { redisKeysOf } from "./CounterKeys.ts"
import { markStanding, standingLua } from "./CounterMarks.ts"
import * as Meters from "./Meters.ts"

/** The reading of one meter in Redis. Amounts are in the unit of the meter. */
export interface CounterReading {
  readonly meter: Meters.Meter
  /** False if the counter was lost or was not begun. The requests that it should count are then unknown. */
  readonly known: boolean
  /** The usage of ended requests. For request meters also that of running ones. Includes `reserved` if that is unknown. */
  readonly used: number
  /** The amounts that running requests hold. `undefined` if there are too many requests to add up. */
  readonly reserved: number | undefined
}

/** One script call reads this many scopes. Redis needs less than a millisecond for them. */
const scopesPerCall = 64
const concurrentCalls = 4

/** One script call adds up this many reservations. The reservations of further scopes stay unknown. */
const maxReservations = 2000

/** Reads the counters of all meters without changing them. */
export const read = Effect.fn("CounterReadings.read")(function* (
  scopes: ReadonlyArray<Meters.ScopeMeters>,
  now: number
) {
  const redis = yield* Redis
  const readings = yield* Effect.forEach(
    Arr.chunksOf(scopes, scopesPerCall),
    (some) =>
      redis.run(
        readingScript,
        some.flatMap((scope) => {
          const { counters, known, open } = redisKeysOf(redis, scope)
          return [open, known, ...counters]
        }),
        [now, maxReservations, ...some.map(({ meters }) => meters.map(termsOf).join(" "))]
      ),
    { concurrency: concurrentCalls }
  )
  const all = scopes.flatMap(({ meters }) => meters)
  return readings.flat().map((counter, index) => readingOf(all[index]!, counter))
})

const termsOf = (meter: Meters.Meter): string =>
  `${meter.name} ${meter.windowId} ${Meters.isDurable(meter) ? 1 : 0} ${Meters.markOf(meter)}`
const termsPerMeter = 5

const readingOf = (meter: Meters.Meter, { held, standing, value }: StoredCounter): CounterReading => ({
  meter,
  known: standing !== "cold",
  used: Math.max(0, value - (held?.open ?? 0) - (held?.expired ?? 0)),
  reserved: held?.open
})

interface StoredCounter {
  readonly standing: string
  readonly value: number
  /** `expired` is what the next admission gives back, because the requests ended without a settlement. */
  readonly held: { readonly open: number; readonly expired: number } | undefined
}

/**
 * Returns four items per meter: how its counter stands, its value, and the amounts of open and expired reservations, or
 * `-` if the call has added up its maximum.
 * - KEYS, per scope: open reservations, marks, one counter per meter.
 * - ARGV: now, the maximum number of reservations, and per scope the name, window, durability and mark of each meter.
 */
const readingScript: Script<ReadonlyArray<StoredCounter>> = {
  name: "readings",
  lua: `
${standingLua}
local now, left = ARGV[1], tonumber(ARGV[2])
local function sums(open, first, last)
  local found = {}
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', open, first, last)) do
    for place, amount in string.gmatch(member, ' (%S+:%d+) (%d+)') do found[place] = (found[place] or 0) + tonumber(amount) end
  end
  return found
end
local answer, k = {}, 1
for a = 3, #ARGV do
  local open, known, live, expired = KEYS[k], KEYS[k + 1], nil, nil
  k = k + 2
  local size = redis.call('ZCARD', open)
  if size <= left then
    left = left - size
    live, expired = sums(open, '(' .. now, '+inf'), sums(open, '-inf', now)
  end
  for name, window, durable, mark in string.gmatch(ARGV[a], '(%S+) (%d+) ([01]) (%d+ %d+)') do
    local value, stand, place = redis.call('GET', KEYS[k]), 'stands', name .. ':' .. window
    k = k + 1
    if durable == '1' then stand = standing(redis.call('HGET', known, name), mark, value) end
    answer[#answer + 1] = stand
    answer[#answer + 1] = value or '0'
    answer[#answer + 1] = live and string.format('%.0f', live[place] or 0) or '-'
    answer[#answer + 1] = expired and string.format('%.0f', expired[place] or 0) or '-'
  end
end
return answer`,
  step: (call, keys, [now = "", most = "", ...scopes]) => {
    const names = [...keys]
    let left = Number(most)
    return scopes.flatMap((terms) => {
      const [open = "", known = ""] = names.splice(0, 2)
      const size = Number(call("ZCARD", open))
      const few = size <= left
      if (few) left -= size
      const live = few ? sumsOf(call, open, `(${now}`, "+inf") : undefined
      const expired = few ? sumsOf(call, open, "-inf", now) : undefined
      return Arr.chunksOf(terms.split(" "), termsPerMeter).flatMap(([name = "", window, durable, at, since]) => {
        const value = call("GET", names.shift() ?? "")
        const mark = `${at} ${since}`
        const stands = durable === "1" ? markStanding(call("HGET", known, name), mark, value !== null) : "stands"
        const amounts = [live, expired].map((sums) =>
          sums === undefined ? "-" : String(sums.get(`${name}:${window}`) ?? 0)
        )
        return [stands, value ?? "0", ...amounts]
      })
    })
  },
  decode: (reply) =>
    Arr.chunksOf(items(reply), 4).map(([standing, value, open, expired]) => ({
      standing: String(standing),
      value: Number(value),
      held: open === "-" ? undefined : { open: Number(open), expired: Number(expired) }
    }))
}

const sumsOf = (call: Call, open: string, from: string, to: string): ReadonlyMap<string, number> => {
  const sums = new Map<string, number>()
  for (const member of items(call("ZRANGEBYSCORE", open, from, to))) {
    for (const [place = "", amount] of Arr.chunksOf(String(member).split(" ").slice(1), 2)) {
      sums.set(place, (sums.get(place) ?? 0) + Number(amount))
    }
  }
  return sums
}

const items = (reply: Reply): ReadonlyArray<Reply> => (Array.isArray(reply) ? reply : [])
