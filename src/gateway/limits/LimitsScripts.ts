import { Array as Arr } from "effect"
import type { Call, Reply, Script } from "../../services/Redis.ts"
import {
  beginningMark,
  markStanding,
  parseMark,
  remember,
  rememberLua,
  standingLua
} from "../../state/limits/CounterMarks.ts"
import * as Meters from "../../state/limits/Meters.ts"
import type { SettlementCounter } from "./SettlementCounters.ts"

/** Reservations are kept as long as the longest counter, because unused amounts are subtracted from the counters. */
const reservationSeconds = Meters.retentionSeconds.month
/** For this time Redis notes that an expired reservation was returned. A late settlement reads the note. */
const givenBackSeconds = 86_400

const maxSwept = 16

const absent = "-"

const durableTerms = (meter: Meters.Meter, durable: boolean): string =>
  durable ? `${meter.name} ${Meters.markOf(meter)}` : `${absent} 0 0`

/** Lists each meter's limit, retention, name and mark (see `standingLua`). Separate arguments would cost more time. */
export const admissionTerms = (meters: ReadonlyArray<Meters.Meter>): string =>
  meters
    .map(
      (meter) =>
        `${meter.limit} ${Meters.retentionSeconds[meter.window]} ${durableTerms(meter, Meters.isDurable(meter))}`
    )
    .join(" ")
const termsPerMeter = 5

/**
 * Lists for each counter its retention in seconds, name and mark (see `standingLua`). The retention `absent` means that
 * the settlement must not create the counter.
 */
export const settlementTerms = (counters: ReadonlyArray<SettlementCounter>): string =>
  counters
    .map(({ mayBegin, meter }) => {
      const keep = mayBegin ? String(Meters.retentionSeconds[meter.window]) : absent
      return `${keep} ${durableTerms(meter, mayBegin && Meters.isDurable(meter))}`
    })
    .join(" ")
const termsPerCounter = 4

export type GroupAdmission =
  /** The counters of these meters (by index) must be restored first. Nothing was counted. */
  | { readonly _tag: "Cold"; readonly meters: ReadonlyArray<number> }
  | {
      readonly _tag: "Decided"
      /** For each request 0, or the number (from 1) of the meter that refuses it. Empty if all are admitted. */
      readonly refusedBy: ReadonlyArray<number>
      readonly usedBefore: ReadonlyArray<number>
    }

/**
 * Admits or refuses requests. The meters of a request belong to one or more scopes: its key, and policy layers with
 * shared limits. A request is admitted only if all its meters have room. Requests with the same meters form a group.
 * - KEYS, per group and scope: open reservations, marks, one counter per meter.
 * - ARGV: now, end of the leases, the groups. Lists are separated by blanks.
 * - Each group: number of scopes, number of requests, `admissionTerms` of each scope, total amount per meter, requests.
 * - Each request: its reservation in each scope (or empty), its amount per meter.
 * A full meter still admits the amount 0. The amounts of an expired reservation are subtracted from its counters. A
 * note in Redis tells the later settlement about the subtraction.
 */
export const admission: Script<ReadonlyArray<GroupAdmission>> = {
  name: "admission",
  lua: `
${standingLua}
local now, leaseEnd = ARGV[1], ARGV[2]
local function sweep(open)
  for _, dead in ipairs(redis.call('ZRANGEBYSCORE', open, '-inf', now, 'LIMIT', '0', '${maxSwept}')) do
    redis.call('ZREM', open, dead)
    local prefix, id = string.match(open, '^(.*)limits:open:(.*)$')
    for name, window, amount in string.gmatch(dead, ' (%S+):(%d+) (%d+)') do
      local counter = prefix .. name .. ':' .. id .. ':' .. window
      if redis.call('EXISTS', counter) == 1 then redis.call('DECRBY', counter, amount) end
    end
    redis.call('SET', open .. ':' .. string.match(dead, '^%S+'), '1', 'EX', '${givenBackSeconds}')
  end
end
local function admit(k, a)
  local s, n = tonumber(ARGV[a]), tonumber(ARGV[a + 1])
  local open, known, last, m = {}, {}, {}, 0
  local counters, limits, keeps, names, marks = {}, {}, {}, {}, {}
  for scope = 1, s do
    open[scope], known[scope] = KEYS[k], KEYS[k + 1]
    k = k + 2
    for limit, keep, name, mark in string.gmatch(ARGV[a + 1 + scope], '(%S+) (%S+) (%S+) (%d+ %d+)') do
      m = m + 1
      counters[m], limits[m], keeps[m], names[m], marks[m] = KEYS[k], tonumber(limit), keep, name, mark
      k = k + 1
    end
    last[scope] = m
    sweep(open[scope])
  end
  local first = a + 3 + s
  local after = first + (s + 1) * n
  local before, cold, begins = redis.call('MGET', unpack(counters)), {}, {}
  for scope = 1, s do
    local asked, places = {}, {}
    for i = (last[scope - 1] or 0) + 1, last[scope] do
      if names[i] ~= '-' then
        asked[#asked + 1] = names[i]
        places[#places + 1] = i
      end
    end
    if #asked > 0 then
      for d, mark in ipairs(redis.call('HMGET', known[scope], unpack(asked))) do
        local i = places[d]
        local stand, since = standing(mark, marks[i], before[i])
        if stand == 'cold' then
          cold[#cold + 1] = i
        elseif stand == 'begins' then
          begins[#begins + 1] = { known[scope], names[i], string.match(marks[i], '^%d+') .. ' ' .. since, i }
        end
      end
    end
  end
  if #cold > 0 then return { 'cold', unpack(cold) }, k, after end
  for _, begin in ipairs(begins) do
    redis.call('SET', counters[begin[4]], '0', 'NX', 'EX', keeps[begin[4]])
    redis.call('HSET', begin[1], begin[2], begin[3])
    redis.call('EXPIRE', begin[1], '${Meters.retentionSeconds.month}')
  end
  local sums, fits, i = {}, true, 0
  for sum in string.gmatch(ARGV[a + 2 + s], '%S+') do
    i = i + 1
    before[i] = tonumber(before[i] or '0')
    sums[i] = tonumber(sum)
    if sums[i] > 0 and before[i] + sums[i] > limits[i] then fits = false end
  end
  local answer, reserved, any = {}, {}, false
  if not fits then
    for i = 1, m do sums[i] = 0 end
  end
  for scope = 1, s do reserved[scope] = {} end
  for at = first, after - 1, s + 1 do
    local refusedBy = 0
    if not fits then
      local amounts = {}
      for amount in string.gmatch(ARGV[at + s], '%S+') do amounts[#amounts + 1] = tonumber(amount) end
      for i = m, 1, -1 do
        if amounts[i] > 0 and before[i] + sums[i] + amounts[i] > limits[i] then refusedBy = i end
      end
      answer[#answer + 1] = refusedBy
      if refusedBy == 0 then
        for i = 1, m do sums[i] = sums[i] + amounts[i] end
      end
    end
    if refusedBy == 0 then
      any = true
      for scope = 1, s do
        local member, list = ARGV[at + scope - 1], reserved[scope]
        if member ~= '' then
          list[#list + 1] = leaseEnd
          list[#list + 1] = member
        end
      end
    end
  end
  if any then
    for i = 1, m do
      if redis.call('INCRBY', counters[i], string.format('%.0f', sums[i])) == sums[i] then
        redis.call('EXPIRE', counters[i], keeps[i])
      end
    end
    for scope = 1, s do
      if #reserved[scope] > 0 then
        redis.call('ZADD', open[scope], unpack(reserved[scope]))
        redis.call('EXPIRE', open[scope], '${reservationSeconds}')
      end
    end
  end
  for i = 1, m do answer[#answer + 1] = string.format('%.0f', before[i]) end
  return answer, k, after
end
local answers, k, a = {}, 1, 3
while a <= #ARGV do
  local answer
  answer, k, a = admit(k, a)
  answers[#answers + 1] = answer
end
return answers`,
  step: (call, keys, args) => {
    const [now = "", leaseEnd = ""] = args
    const rest = args.slice(2)
    const names = [...keys]
    const replies: Array<Reply> = []
    while (rest.length > 0) {
      const [s = 0, n = 0] = rest.splice(0, 2).map(Number)
      const terms = rest.splice(0, s).map((text) => Arr.chunksOf(text.split(" "), termsPerMeter))
      const scopes = terms.map(({ length }) => {
        const [open = "", known = "", ...counters] = names.splice(0, 2 + length)
        return { open, known, counters }
      })
      const [sums = ""] = rest.splice(0, 1)
      const amounts = sums.split(" ")
      const meters = terms.flat().map(([limit = "", keep = "", name = "", window, since], index) => {
        return { limit, keep, name, mark: `${window} ${since}`, sum: amounts[index] ?? "" }
      })
      const requests = Arr.chunksOf(rest.splice(0, (s + 1) * n), s + 1)
      replies.push(admitGroup(call, { now, leaseEnd, scopes, meters, requests }))
    }
    return replies
  },
  decode: (reply) => items(reply).map((group) => decodeGroup(items(group)))
}

const decodeGroup = (group: ReadonlyArray<Reply>): GroupAdmission => {
  const [first, ...more] = group
  if (first === "cold") return { _tag: "Cold", meters: more.map((index) => Number(index) - 1) }
  const refusedBy = group.filter((item) => typeof item === "number")
  return { _tag: "Decided", refusedBy, usedBefore: group.slice(refusedBy.length).map(Number) }
}

interface AdmissionGroup {
  readonly now: string
  readonly leaseEnd: string
  readonly scopes: ReadonlyArray<{
    readonly open: string
    readonly known: string
    readonly counters: ReadonlyArray<string>
  }>
  readonly meters: ReadonlyArray<{
    readonly limit: string
    readonly keep: string
    readonly name: string
    readonly mark: string
    readonly sum: string
  }>
  readonly requests: ReadonlyArray<ReadonlyArray<string>>
}

const sweep = (call: Call, open: string, now: string): void => {
  for (const expired of items(call("ZRANGEBYSCORE", open, "-inf", now, "LIMIT", "0", String(maxSwept))).map(String)) {
    call("ZREM", open, expired)
    const [requestId, ...given] = expired.split(" ")
    const [, prefix, id] = /^(.*)limits:open:(.*)$/.exec(open) ?? []
    for (const [counterId = "", amount = ""] of Arr.chunksOf(given, 2)) {
      const [, name, window] = /^(.*):(\d+)$/.exec(counterId) ?? []
      const counter = `${prefix}${name}:${id}:${window}`
      if (call("EXISTS", counter) === 1) call("DECRBY", counter, amount)
    }
    call("SET", `${open}:${requestId}`, "1", "EX", givenBackSeconds)
  }
}

const admitGroup = (call: Call, { leaseEnd, meters, now, requests, scopes }: AdmissionGroup): Reply => {
  for (const { open } of scopes) sweep(call, open, now)
  const counters = scopes.flatMap(({ counters }) => counters)
  const values = items(call("MGET", ...counters))
  const marksKeys = scopes.flatMap(({ counters, known }) => counters.map(() => known))
  const durable = meters.flatMap(({ mark: wanted, name }, index) => {
    if (name === absent) return []
    const mark = call("HGET", marksKeys[index]!, name)
    return [{ index, name, wanted, mark, stand: markStanding(mark, wanted, values[index] !== null) }]
  })
  const cold = durable.filter(({ stand }) => stand === "cold")
  if (cold.length > 0) return ["cold", ...cold.map(({ index }) => index + 1)]
  for (const { index, mark, name, stand, wanted } of durable) {
    if (stand !== "begins") continue
    call("SET", counters[index]!, "0", "NX", "EX", meters[index]?.keep ?? "")
    call("HSET", marksKeys[index]!, name, beginningMark(mark, wanted))
    call("EXPIRE", marksKeys[index]!, Meters.retentionSeconds.month)
  }
  const before = values.map((value) => Number(value ?? "0"))
  const limits = meters.map(({ limit }) => Number(limit))
  const sums = meters.map(({ sum }) => Number(sum))
  const fits = sums.every((sum, i) => sum === 0 || before[i]! + sum <= limits[i]!)
  if (!fits) sums.fill(0)
  const admitted: Array<ReadonlyArray<string>> = []
  const refusedBy = requests.flatMap((request) => {
    const members = request.slice(0, -1)
    if (fits) {
      admitted.push(members)
      return []
    }
    const amounts = (request.at(-1) ?? "").split(" ").map(Number)
    const full = amounts.findIndex((amount, i) => amount > 0 && before[i]! + sums[i]! + amount > limits[i]!)
    if (full === -1) {
      for (const [i, amount] of amounts.entries()) sums[i]! += amount
      admitted.push(members)
    }
    return [full + 1]
  })
  if (admitted.length > 0) {
    for (const [i, counter] of counters.entries()) {
      if (call("INCRBY", counter, sums[i]!) === sums[i]) call("EXPIRE", counter, meters[i]?.keep ?? "")
    }
    for (const [index, { open }] of scopes.entries()) {
      const reserved = admitted.flatMap((members) => (members[index] ? [leaseEnd, members[index]] : []))
      if (reserved.length === 0) continue
      call("ZADD", open, ...reserved)
      call("EXPIRE", open, reservationSeconds)
    }
  }
  return [...refusedBy, ...before.map(String)]
}

/**
 * Replaces reservations by the actual usage and queues the usage records.
 * - KEYS: usage queue; per group: open reservations, marks, the counters that change.
 * - ARGV: number of records, records, groups. Lists are separated by blanks.
 * - Each group (same meters of a scope): number of requests, `settlementTerms`, total change of each counter, requests.
 * - Each request: its reservation, its changes if the reservation is open, its changes if it was returned.
 * The counters belong to the admission's window. If that window has ended, counters of the current window are included.
 * A missing counter of the admission's window was lost. The next admission restores it.
 * A reservation that is neither open nor returned was lost or already settled. Queueing its record again is idempotent.
 * All reservations share one command, because each command in a script costs time. `ZADD XX CH` changes their scores
 * and so returns the number of open ones. (`ZMSCORE` would need Redis 6.2.)
 */
export const settlement: Script<number> = {
  name: "settlement",
  lua: `
${standingLua}
local function closeAll(open, first, n)
  local members, scored = {}, {}
  for j = 1, n do
    members[j] = ARGV[first + 2 * j - 2]
    scored[2 * j - 1], scored[2 * j] = '-1', members[j]
  end
  return redis.call('ZADD', open, 'XX', 'CH', unpack(scored)) == n and redis.call('ZREM', open, unpack(members)) == n
end
local function begin(known, counter, change, keep, name, wanted)
  if name ~= '-' then
    local stand, since = standing(redis.call('HGET', known, name), wanted, false)
    if stand ~= 'begins' then return end
    redis.call('HSET', known, name, string.match(wanted, '^%d+') .. ' ' .. since)
    redis.call('EXPIRE', known, '${Meters.retentionSeconds.month}')
  end
  redis.call('SET', counter, string.format('%.0f', change), 'EX', keep)
end
local records = tonumber(ARGV[1])
local k, a = 2, 2 + records
while a <= #ARGV do
  local n, requests, changes, c = tonumber(ARGV[a]), a + 3, {}, 0
  for change in string.gmatch(ARGV[a + 2], '%S+') do
    c = c + 1
    changes[c] = tonumber(change)
  end
  if not closeAll(KEYS[k], requests, n) then
    for at = requests, requests + 2 * n - 2, 2 do
      local member = ARGV[at]
      if redis.call('ZREM', KEYS[k], member) ~= 1 then
        local givenBack = redis.call('DEL', KEYS[k] .. ':' .. string.match(member, '^%S+')) == 1
        local i = 1
        for amount in string.gmatch(ARGV[at + 1], '%S+') do
          if i <= c then
            changes[i] = changes[i] - tonumber(amount)
          elseif givenBack then
            changes[i - c] = changes[i - c] + tonumber(amount)
          end
          i = i + 1
        end
      end
    end
  end
  if redis.call('EXISTS', unpack(KEYS, k + 2, k + 1 + c)) == c then
    for i = 1, c do
      if changes[i] ~= 0 then redis.call('INCRBY', KEYS[k + 1 + i], string.format('%.0f', changes[i])) end
    end
  else
    local i = 0
    for keep, name, mark in string.gmatch(ARGV[a + 1], '(%S+) (%S+) (%d+ %d+)') do
      i = i + 1
      local counter = KEYS[k + 1 + i]
      if changes[i] ~= 0 and redis.call('EXISTS', counter) == 1 then
        redis.call('INCRBY', counter, string.format('%.0f', changes[i]))
      elseif changes[i] ~= 0 and keep ~= '-' then
        begin(KEYS[k + 1], counter, changes[i], keep, name, mark)
      end
    end
  end
  k = k + 2 + c
  a = requests + 2 * n
end
return redis.call('RPUSH', KEYS[1], unpack(ARGV, 2, 1 + records))`,
  step: (call, [queue = "", ...keys], [count = "", ...args]) => {
    const records = args.slice(0, Number(count))
    const rest = args.slice(Number(count))
    const names = [...keys]
    while (rest.length > 0) {
      const [n = "", terms = "", all = ""] = rest.splice(0, 3)
      const counterTerms = Arr.chunksOf(terms.split(" "), termsPerCounter)
      const changes = all.split(" ").map(Number)
      const c = changes.length
      const [open = "", known = "", ...counters] = names.splice(0, 2 + c)
      for (const [member = "", amounts = ""] of Arr.chunksOf(rest.splice(0, 2 * Number(n)), 2)) {
        if (call("ZREM", open, member) === 1) continue
        const givenBack = call("DEL", `${open}:${member.split(" ", 1)[0]}`) === 1
        for (const [i, amount] of amounts.split(" ").entries()) {
          if (i < c) changes[i]! -= Number(amount)
          else if (givenBack) changes[i - c]! += Number(amount)
        }
      }
      for (const [i, counter] of counters.entries()) {
        const [keep = "", name = "", window, since] = counterTerms[i] ?? []
        if (changes[i] === 0) continue
        if (call("EXISTS", counter) === 1) call("INCRBY", counter, changes[i]!)
        else if (keep !== absent) {
          beginCounter(call, { known, counter, change: changes[i]!, keep, name, wanted: `${window} ${since}` })
        }
      }
    }
    return call("RPUSH", queue, ...records)
  },
  decode: Number
}

interface CounterStart {
  readonly known: string
  readonly counter: string
  readonly change: number
  readonly keep: string
  readonly name: string
  readonly wanted: string
}

const beginCounter = (call: Call, { change, counter, keep, known, name, wanted }: CounterStart): void => {
  if (name !== absent) {
    const mark = call("HGET", known, name)
    if (markStanding(mark, wanted, false) !== "begins") return
    call("HSET", known, name, beginningMark(mark, wanted))
    call("EXPIRE", known, Meters.retentionSeconds.month)
  }
  call("SET", counter, change, "EX", keep)
}

/**
 * Sets each counter to the sum of the usage records plus the open reservations. A higher current value is kept, because
 * it includes requests that have no usage record yet.
 * KEYS: open reservations, marks, one counter per meter. ARGV, per meter: name, mark, retention, sum of the records.
 */
export const restoration: Script<void> = {
  name: "restoration",
  lua: `
${standingLua}
${rememberLua}
for i = 1, #KEYS - 2 do
  local name, wanted, keep, sum = ARGV[4 * i - 3], ARGV[4 * i - 2], ARGV[4 * i - 1], tonumber(ARGV[4 * i])
  local counter = KEYS[i + 2]
  local held = tonumber(redis.call('GET', counter) or '0')
  local mark = redis.call('HGET', KEYS[2], name)
  if standing(mark, wanted, redis.call('EXISTS', counter) == 1) == 'cold' then
    local place = ' ' .. name .. ':' .. string.match(wanted, '^%d+') .. ' '
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '+inf')) do
      local _, at = string.find(member, place, 1, true)
      if at then sum = sum + tonumber(string.match(member, '^%d+', at + 1)) end
    end
    if sum > held then held = sum end
    redis.call('SET', counter, string.format('%.0f', held), 'EX', keep)
    remember(KEYS[2], name, mark, wanted)
  end
end`,
  step: (call, [open = "", known = "", ...counters], args) => {
    for (const [i, [name = "", wanted = "", keep = "", recorded = ""]] of Arr.chunksOf(args, 4).entries()) {
      const counter = counters[i]!
      const mark = call("HGET", known, name)
      if (markStanding(mark, wanted, call("EXISTS", counter) === 1) !== "cold") continue
      const counterId = `${name}:${parseMark(wanted)?.window}`
      const reserved = items(call("ZRANGEBYSCORE", open, "-inf", "+inf")).flatMap((member) =>
        Arr.chunksOf(String(member).split(" ").slice(1), 2).flatMap(([at, amount]) =>
          at === counterId ? [Number(amount)] : []
        )
      )
      const sum = reserved.reduce((total, amount) => total + amount, Number(recorded))
      call("SET", counter, Math.max(sum, Number(call("GET", counter) ?? "0")), "EX", keep)
      remember(call, known, name, mark, wanted)
    }
    return null
  },
  decode: () => undefined
}

const items = (reply: Reply | undefined): ReadonlyArray<Reply> => (Array.isArray(reply) ? reply : [])
