import { Array as Arr } from "effect"
import type { Call, Reply, Script } from "../services/Redis.ts"
import * as Meters from "./Meters.ts"

/** A key's open reservations are remembered for as long as the longest counter that they are held on. */
const openSeconds = Meters.keptSeconds.month
/** That a reservation was given back is remembered for a day, for a request that runs longer than its lease. */
const givenBackSeconds = 86_400

/** At most so many dead reservations are given back on the way of one admission. */
const sweepLimit = 16

/** What the admission of one group answers: nothing was done (`cold`), or what became of each request. */
export type AdmissionAnswer =
  | { readonly _tag: "Cold" }
  | {
      readonly _tag: "Decided"
      /** For each request: 0, or which of its meters (from 1) refused it. Empty: all are admitted. */
      readonly refusedBy: ReadonlyArray<number>
      /** What each meter held before the first of them. */
      readonly before: ReadonlyArray<number>
    }

/**
 * Requests in groups that share a key and its meters, in the order of their arrival.
 *
 * KEYS, per group: open reservations, names of the durable limits that were counted before, one counter per meter.
 * ARGV: now, end of the leases; per group: number of meters, number of requests, seeded (0/1); per meter: limit,
 * seconds to keep, name of a durable limit (or nothing), seed, amount of all requests together; per request:
 * reservation, its amount on each meter, with blanks between. A group that fits as a whole is not looked at one by one.
 *
 * What takes nothing of a meter is not held up by it: a list of models costs no money. A reservation whose lease has
 * ended is given back to the counters that it names (the key's id is in the name of the set), and a mark for its
 * settlement left behind.
 */
export const admission: Script<ReadonlyArray<AdmissionAnswer>> = {
  name: "admission",
  lua: `
local now, leaseEnd = ARGV[1], ARGV[2]
local function admit(k, a, m, n)
  local open, known, seeded = KEYS[k], KEYS[k + 1], ARGV[a + 2] == '1'
  local names, places = {}, {}
  for i = 1, m do
    local name = ARGV[a + 5 * i]
    if name ~= '' then
      names[#names + 1] = name
      places[#places + 1] = i
    end
  end
  if #names > 0 then
    for d, before in ipairs(redis.call('HMGET', known, unpack(names))) do
      if not before then
        if not seeded then return 'cold' end
        local i = places[d]
        redis.call('SET', KEYS[k + 1 + i], ARGV[a + 5 * i + 1], 'NX', 'EX', ARGV[a + 5 * i - 1])
        redis.call('HSET', known, names[d], '1')
        redis.call('EXPIRE', known, '${Meters.keptSeconds.month}')
      end
    end
  end
  for _, dead in ipairs(redis.call('ZRANGEBYSCORE', open, '-inf', now, 'LIMIT', '0', '${sweepLimit}')) do
    redis.call('ZREM', open, dead)
    local prefix, id = string.match(open, '^(.*)limits:open:(.*)$')
    for name, window, amount in string.gmatch(dead, ' (%S+):(%d+) (%d+)') do
      local counter = prefix .. name .. ':' .. id .. ':' .. window
      if redis.call('EXISTS', counter) == 1 then redis.call('DECRBY', counter, amount) end
    end
    redis.call('SET', open .. ':' .. string.match(dead, '^%S+'), '1', 'EX', '${givenBackSeconds}')
  end
  local before, sums, fits = redis.call('MGET', unpack(KEYS, k + 2, k + 1 + m)), {}, true
  for i = 1, m do
    before[i] = tonumber(before[i] or '0')
    sums[i] = tonumber(ARGV[a + 5 * i + 2])
    if sums[i] > 0 and before[i] + sums[i] > tonumber(ARGV[a + 5 * i - 2]) then fits = false end
  end
  local answer, reserved, first = {}, {}, a + 3 + 5 * m
  if not fits then
    for i = 1, m do sums[i] = 0 end
  end
  for at = first, first + 2 * n - 2, 2 do
    local refusedBy = 0
    if not fits then
      local amounts = {}
      for amount in string.gmatch(ARGV[at + 1], '%S+') do amounts[#amounts + 1] = tonumber(amount) end
      for i = m, 1, -1 do
        if amounts[i] > 0 and before[i] + sums[i] + amounts[i] > tonumber(ARGV[a + 5 * i - 2]) then refusedBy = i end
      end
      answer[#answer + 1] = refusedBy
      if refusedBy == 0 then
        for i = 1, m do sums[i] = sums[i] + amounts[i] end
      end
    end
    if refusedBy == 0 then
      reserved[#reserved + 1] = leaseEnd
      reserved[#reserved + 1] = ARGV[at]
    end
  end
  if #reserved > 0 then
    for i = 1, m do
      if redis.call('INCRBY', KEYS[k + 1 + i], string.format('%.0f', sums[i])) == sums[i] then
        redis.call('EXPIRE', KEYS[k + 1 + i], ARGV[a + 5 * i - 1])
      end
    end
    redis.call('ZADD', open, unpack(reserved))
    redis.call('EXPIRE', open, '${openSeconds}')
  end
  for i = 1, m do answer[#answer + 1] = string.format('%.0f', before[i]) end
  return answer
end
local answers, k, a = {}, 1, 3
while a <= #ARGV do
  local m, n = tonumber(ARGV[a]), tonumber(ARGV[a + 1])
  answers[#answers + 1] = admit(k, a, m, n)
  k = k + 2 + m
  a = a + 3 + 5 * m + 2 * n
end
return answers`,
  step: (call, keys, args) => {
    const [now = "", leaseEnd = ""] = args
    const rest = args.slice(2)
    const names = [...keys]
    const answers: Array<Reply> = []
    while (rest.length > 0) {
      const [m = 0, n = 0, seeded] = rest.splice(0, 3).map(Number)
      const meters = Arr.chunksOf(rest.splice(0, 5 * m), 5)
      const requests = Arr.chunksOf(rest.splice(0, 2 * n), 2)
      const [open = "", known = "", ...counters] = names.splice(0, 2 + m)
      answers.push(admitGroup(call, { now, leaseEnd, seeded: seeded === 1, open, known, counters, meters, requests }))
    }
    return answers
  },
  decode: (reply) =>
    (Array.isArray(reply) ? reply : []).map((answer: Reply): AdmissionAnswer => {
      if (!Array.isArray(answer)) return { _tag: "Cold" }
      const refusedBy = answer.filter((item) => typeof item === "number")
      return { _tag: "Decided", refusedBy, before: answer.slice(refusedBy.length).map(Number) }
    })
}

interface Group {
  readonly now: string
  readonly leaseEnd: string
  readonly seeded: boolean
  readonly open: string
  readonly known: string
  readonly counters: ReadonlyArray<string>
  readonly meters: ReadonlyArray<ReadonlyArray<string>>
  readonly requests: ReadonlyArray<ReadonlyArray<string>>
}

const admitGroup = (call: Call, group: Group): Reply => {
  const { counters, known, leaseEnd, meters, now, open, requests, seeded } = group
  const durable = meters.flatMap(([, keep = "", name = "", seed = ""], index) =>
    name === "" ? [] : [{ counter: counters[index]!, keep, name, seed }]
  )
  const counted = durable.length === 0 ? [] : items(call("HMGET", known, ...durable.map(({ name }) => name)))
  for (const [index, { counter, keep, name, seed }] of durable.entries()) {
    if (counted[index] !== null) continue
    if (!seeded) return "cold"
    call("SET", counter, seed, "NX", "EX", keep)
    call("HSET", known, name, "1")
    call("EXPIRE", known, Meters.keptSeconds.month)
  }
  for (const dead of items(call("ZRANGEBYSCORE", open, "-inf", now, "LIMIT", "0", String(sweepLimit))).map(String)) {
    call("ZREM", open, dead)
    const [requestId, ...given] = dead.split(" ")
    const [, prefix, id] = /^(.*)limits:open:(.*)$/.exec(open) ?? []
    for (const [place = "", amount = ""] of Arr.chunksOf(given, 2)) {
      const [, name, window] = /^(.*):(\d+)$/.exec(place) ?? []
      const counter = `${prefix}${name}:${id}:${window}`
      if (call("EXISTS", counter) === 1) call("DECRBY", counter, amount)
    }
    call("SET", `${open}:${requestId}`, "1", "EX", givenBackSeconds)
  }
  const before = items(call("MGET", ...counters)).map((value) => Number(value ?? "0"))
  const limits = meters.map(([limit]) => Number(limit))
  const sums = meters.map(([, , , , sum]) => Number(sum))
  const fits = sums.every((sum, i) => sum === 0 || before[i]! + sum <= limits[i]!)
  if (!fits) sums.fill(0)
  const reserved: Array<string> = []
  const refusedBy = requests.flatMap(([member = "", held = ""]) => {
    if (fits) {
      reserved.push(leaseEnd, member)
      return []
    }
    const amounts = held.split(" ").map(Number)
    const full = amounts.findIndex((amount, i) => amount > 0 && before[i]! + sums[i]! + amount > limits[i]!)
    if (full === -1) {
      for (const [i, amount] of amounts.entries()) sums[i]! += amount
      reserved.push(leaseEnd, member)
    }
    return [full + 1]
  })
  if (reserved.length > 0) {
    for (const [i, counter] of counters.entries()) {
      if (call("INCRBY", counter, sums[i]!) === sums[i]) call("EXPIRE", counter, meters[i]?.[1] ?? "")
    }
    call("ZADD", open, ...reserved)
    call("EXPIRE", open, openSeconds)
  }
  return [...refusedBy, ...before.map(String)]
}

/**
 * KEYS: usage queue; per group of requests that held the same meters: open reservations, one counter per meter. ARGV,
 * per group: number of meters, number of requests; per meter: what was used less what was reserved, of all requests
 * together; per request: record, reservation, and with blanks between what was reserved on each meter, then what was
 * used. Without meters there is neither a key nor a reservation: the record is all.
 *
 * What was given back is counted in full, once. A reservation that is neither open nor given back was settled before,
 * or Redis has lost it: nothing is counted, but the record is queued again, because the table takes it once.
 *
 * On the server, reservations that are all open are closed by one command, and all records queued by one: a call from
 * Lua costs it more than the work.
 */
export const settlement: Script<number> = {
  name: "settlement",
  lua: `
local function closeAll(open, first, n)
  local members, seen = {}, {}
  for j = 1, n do
    local member = ARGV[first + 3 * j - 2]
    if seen[member] or not redis.call('ZSCORE', open, member) then return false end
    members[j], seen[member] = member, true
  end
  return redis.call('ZREM', open, unpack(members)) == n
end
local records, k, a = {}, 2, 1
while a <= #ARGV do
  local m, n = tonumber(ARGV[a]), tonumber(ARGV[a + 1])
  a = a + 2
  local changes = {}
  for i = 1, m do changes[i] = tonumber(ARGV[a + i - 1]) end
  a = a + m
  local closed = m > 0 and closeAll(KEYS[k], a, n)
  for _ = 1, n do
    records[#records + 1] = ARGV[a]
    a = a + 1
    if m > 0 then
      local member = ARGV[a]
      if not closed and redis.call('ZREM', KEYS[k], member) ~= 1 then
        local givenBack = redis.call('DEL', KEYS[k] .. ':' .. string.match(member, '^%S+')) == 1
        local i = 1
        for amount in string.gmatch(ARGV[a + 1], '%S+') do
          if i <= m then
            changes[i] = changes[i] + tonumber(amount)
          elseif not givenBack then
            changes[i - m] = changes[i - m] - tonumber(amount)
          end
          i = i + 1
        end
      end
      a = a + 2
    end
  end
  local whole = m > 0 and redis.call('EXISTS', unpack(KEYS, k + 1, k + m)) == m
  for i = 1, m do
    if changes[i] ~= 0 and (whole or redis.call('EXISTS', KEYS[k + i]) == 1) then
      redis.call('INCRBY', KEYS[k + i], string.format('%.0f', changes[i]))
    end
  end
  if m > 0 then k = k + 1 + m end
end
return redis.call('RPUSH', KEYS[1], unpack(records))`,
  step: (call, [queue = "", ...keys], args) => {
    const rest = [...args]
    const names = [...keys]
    const records: Array<string> = []
    while (rest.length > 0) {
      const [m = 0, n = 0] = rest.splice(0, 2).map(Number)
      const [reservations = "", ...counters] = m === 0 ? [] : names.splice(0, 1 + m)
      const changes = rest.splice(0, m).map(Number)
      for (let request = 0; request < n; request++) {
        records.push(rest.shift() ?? "")
        if (m === 0) continue
        const [member = "", amounts = ""] = rest.splice(0, 2)
        if (call("ZREM", reservations, member) === 1) continue
        const givenBack = call("DEL", `${reservations}:${member.split(" ", 1)[0]}`) === 1
        for (const [i, amount] of amounts.split(" ").entries()) {
          if (i < m) changes[i]! += Number(amount)
          else if (!givenBack) changes[i - m]! -= Number(amount)
        }
      }
      for (const [i, counter] of counters.entries()) {
        if (changes[i] !== 0 && call("EXISTS", counter) === 1) call("INCRBY", counter, changes[i]!)
      }
    }
    return call("RPUSH", queue, ...records)
  },
  decode: Number
}

const items = (reply: Reply): ReadonlyArray<Reply> => (Array.isArray(reply) ? reply : [])
