import { Array, Clock, Context, DateTime, Effect, Layer, Schema } from "effect"
import { Database } from "../services/Database.ts"
import { type Call, Redis, type RedisError, type Reply, type Script } from "../services/Redis.ts"
import * as Meters from "./Meters.ts"

/** What a request holds on its meters until it is settled. */
export interface Reservation {
  /** Its entry among the key's open reservations. */
  readonly member: string
  readonly keyId: string
  readonly held: ReadonlyArray<{ readonly meter: Meters.Meter; readonly amount: number }>
}

/** What a request will use at the most, as far as one can tell. */
export interface Wanted {
  readonly inputTokens: number
  /** Input, and the output that the request allows. */
  readonly tokens: number
  readonly nanos: number
  /** No price is known for the request: `nanos` is a guess. */
  readonly nanosGuessed: boolean
}

/** `used`: what the meter holds after the admission. */
export interface Reading {
  readonly meter: Meters.Meter
  readonly used: number
}

export type Admission =
  | { readonly _tag: "Admitted"; readonly reservation: Reservation; readonly readings: ReadonlyArray<Reading> }
  /** Nothing was counted, on no meter. */
  | { readonly _tag: "Refused"; readonly reading: Reading; readonly wanted: number }

/** Redis, or the database that a cold counter is restored from, did not answer: nobody can say whether the request fits. */
export class LimitsUnavailable extends Schema.TaggedError<LimitsUnavailable>()("LimitsUnavailable", {
  cause: Schema.Defect()
}) {}

/** What a settlement says of a request. */
export interface Settled {
  readonly tokens: number
  readonly nanos: number
}

/**
 * RPM, TPM, daily caps and budgets of a key. All meters of a request are checked and raised together by one script, so
 * that no number of concurrent requests, in any number of processes, passes a limit; the reservation is replaced by what
 * was really used, once.
 */
export class Limits extends Context.Service<
  Limits,
  {
    readonly admit: (
      requestId: string,
      keyId: string,
      meters: ReadonlyArray<Meters.Meter>,
      wanted: Wanted
    ) => Effect.Effect<Admission, LimitsUnavailable>
    /**
     * In one step: replaces the reservation by what was used and appends `record` to the usage queue. Doing it twice is
     * doing it once. Answers the queue's length.
     */
    readonly settle: (
      reservation: Reservation | undefined,
      used: Settled,
      record: string
    ) => Effect.Effect<number, RedisError>
  }
>()("svc/gateway/Limits") {
  static readonly layer = Layer.effect(
    Limits,
    Effect.gen(function* () {
      const redis = yield* Redis
      const database = yield* Database

      /** What the key has used in the window according to its usage records. */
      const recorded = (keyId: string, meter: Meters.Meter) => {
        const { endsAt, startsAt } = Meters.windowAt(meter.window, DateTime.makeUnsafe(meter.endsAt - 1))
        const { sql } = database
        const column =
          meter.unit === "nanos"
            ? sql`coalesce(sum(cost_nanos), 0)`
            : meter.unit === "tokens"
              ? sql`coalesce(sum(total_tokens), 0)`
              : sql`count(*) FILTER (WHERE error_code IS NULL OR error_code LIKE 'upstream_%' OR error_code = 'response_body_too_large')`
        return sql<{ used: string }>`SELECT (${column})::text AS used FROM usage_events WHERE key_id = ${keyId}
          AND created_at >= ${new Date(startsAt)} AND created_at < ${new Date(endsAt)}`.pipe(
          Effect.map((rows) => Number(rows[0]?.used ?? 0)),
          Effect.timeout(restoredWithin),
          Effect.interruptible
        )
      }

      const admit = Effect.fnUntraced(
        function* (requestId: string, keyId: string, meters: ReadonlyArray<Meters.Meter>, wanted: Wanted) {
          const held = meters.map((meter) => ({ meter, amount: amountFor(meter, wanted) }))
          if (held.length === 0) {
            return { _tag: "Admitted" as const, reservation: { member: "", keyId, held }, readings: [] }
          }
          const now = yield* Clock.currentTimeMillis
          const reservation: Reservation = { member: memberOf(requestId, now + leaseMs, held, redis.key), keyId, held }
          const attempt = (seeds: ReadonlyArray<number> | undefined) =>
            redis.run(
              admission,
              [
                redis.key(`limits:open:${keyId}`),
                redis.key(`limits:known:${keyId}`),
                ...held.map(({ meter }) => redis.key(meter.key))
              ],
              [
                now,
                reservation.member,
                seeds === undefined ? 0 : 1,
                ...held.flatMap(({ amount, meter }, index) => [
                  amount,
                  meter.limit,
                  Meters.keptSeconds[meter.window],
                  durable(meter) ? meter.field : "",
                  seeds?.[index] ?? 0
                ])
              ]
            )
          let answer = yield* attempt(undefined)
          if (answer._tag === "Cold") {
            // A limit that Redis knows nothing of: new, or Redis lost its memory. The spend is on record, so the strict
            // start is to read it there once; the script takes the numbers only where it still has none.
            const seeds = yield* Effect.forEach(held, ({ meter }) =>
              durable(meter) ? recorded(keyId, meter) : Effect.succeed(0)
            )
            answer = yield* attempt(seeds)
          }
          if (answer._tag === "Cold") return yield* Effect.die(new Error("a seeded admission was answered as cold"))
          if (answer._tag === "Refused") {
            const { amount, meter } = held[answer.index]!
            return { _tag: "Refused" as const, reading: { meter, used: answer.used }, wanted: amount }
          }
          const { used } = answer
          return {
            _tag: "Admitted" as const,
            reservation,
            readings: held.map(({ meter }, index) => ({ meter, used: used[index] ?? 0 }))
          }
        },
        Effect.mapError((cause) => new LimitsUnavailable({ cause }))
      )

      const queue = redis.key(usageQueue)
      const settle = Effect.fnUntraced(function* (reservation: Reservation | undefined, used: Settled, record: string) {
        const held = reservation?.held ?? []
        if (reservation === undefined || held.length === 0) {
          return yield* redis.run(appending, [queue], [record])
        }
        return yield* redis.run(
          settlement,
          [
            redis.key(`limits:open:${reservation.keyId}`),
            redis.key(`limits:open:${reservation.keyId}:${reservation.member.split(" ", 1)[0]}`),
            queue,
            ...held.map(({ meter }) => redis.key(meter.key))
          ],
          [reservation.member, record, ...held.flatMap(({ amount, meter }) => [amount, settledFor(meter, used)])]
        )
      })

      return Limits.of({ admit, settle })
    })
  )
}

/** The stream that usage records wait in for the database. */
export const usageQueue = "usage:queue"

/** The client is waiting while a counter is restored. */
const restoredWithin = "2 seconds"

/** How long a reservation outlives a gateway that died with it. A request that runs longer still settles exactly. */
const leaseMs = 15 * 60_000
/** A key's open reservations are remembered for as long as the longest counter that they are held on. */
const openSeconds = Meters.keptSeconds.month
/** That a reservation was given back is remembered for a day, for a request that runs longer than its lease. */
const givenBackSeconds = 86_400

/**
 * An estimate never locks a key out: allowed output and guessed costs count at most as much as the limit holds. What is
 * known (the input, a price) counts in full, and is refused as "can never fit" when it does not.
 */
export const amountFor = (meter: Meters.Meter, wanted: Wanted): number => {
  if (meter.unit === "requests") return 1
  if (meter.unit === "tokens") return Math.max(wanted.inputTokens, Math.min(wanted.tokens, meter.limit))
  return wanted.nanosGuessed ? Math.max(1, Math.min(wanted.nanos, meter.limit)) : wanted.nanos
}

const settledFor = (meter: Meters.Meter, used: Settled): number =>
  meter.unit === "requests" ? 1 : meter.unit === "tokens" ? used.tokens : used.nanos

/** Counters that outlive a minute are restored from the usage records when Redis has lost them. */
const durable = (meter: Meters.Meter): boolean => meter.window !== "minute"

/** `<request id> <lease end> <counter> <amount> …`: enough to give back what a dead gateway held. */
const memberOf = (
  requestId: string,
  leaseEnd: number,
  held: Reservation["held"],
  key: (name: string) => string
): string =>
  [
    requestId,
    leaseEnd,
    ...held.flatMap(({ amount, meter }) => (meter.unit === "requests" ? [] : [key(meter.key), amount]))
  ].join(" ")

type AdmissionAnswer =
  | { readonly _tag: "Admitted"; readonly used: ReadonlyArray<number> }
  | { readonly _tag: "Refused"; readonly index: number; readonly used: number }
  | { readonly _tag: "Cold" }

/** At most so many dead reservations are given back on the way of one admission. */
const sweepLimit = 16

/**
 * KEYS: open reservations, names of the durable limits that were counted before, one counter per meter. ARGV: now,
 * reservation, seeded (0/1), then per meter: amount, limit, seconds to keep, name of a durable limit (or nothing), seed.
 * What takes nothing of a meter is not held up by it: a list of models costs no money. A reservation whose lease has
 * ended is given back, and a mark for its settlement left behind.
 */
export const admission: Script<AdmissionAnswer> = {
  name: "admission",
  lua: `
local now, member, seeded = tonumber(ARGV[1]), ARGV[2], ARGV[3] == '1'
local meters = {}
for i = 3, #KEYS do
  local at = 4 + (i - 3) * 5
  meters[#meters + 1] = { key = KEYS[i], amount = tonumber(ARGV[at]), limit = tonumber(ARGV[at + 1]),
    keep = ARGV[at + 2], name = ARGV[at + 3], seed = ARGV[at + 4] }
end
for _, m in ipairs(meters) do
  if m.name ~= '' then
    if not redis.call('HGET', KEYS[2], m.name) then
      if not seeded then return { 'cold' } end
      redis.call('SET', m.key, m.seed, 'NX', 'EX', m.keep)
      redis.call('HSET', KEYS[2], m.name, '1')
    end
    redis.call('EXPIRE', KEYS[2], '${Meters.keptSeconds.month}')
  end
end
for _, dead in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', '0', '${sweepLimit}')) do
  redis.call('ZREM', KEYS[1], dead)
  local words = {}
  for word in string.gmatch(dead, '%S+') do words[#words + 1] = word end
  for i = 3, #words, 2 do
    if redis.call('EXISTS', words[i]) == 1 then redis.call('DECRBY', words[i], words[i + 1]) end
  end
  redis.call('SET', KEYS[1] .. ':' .. words[1], '1', 'EX', '${givenBackSeconds}')
end
local used = {}
for i, m in ipairs(meters) do
  local current = tonumber(redis.call('GET', m.key) or '0')
  if m.amount > 0 and current + m.amount > m.limit then return { 'refused', i - 1, string.format('%.0f', current) } end
  used[i] = string.format('%.0f', current + m.amount)
end
for _, m in ipairs(meters) do
  if redis.call('INCRBY', m.key, string.format('%.0f', m.amount)) == m.amount then redis.call('EXPIRE', m.key, m.keep) end
end
redis.call('ZADD', KEYS[1], string.match(member, '^%S+ (%d+)'), member)
redis.call('EXPIRE', KEYS[1], '${openSeconds}')
return { 'admitted', unpack(used) }`,
  step: (call, keys, args) => {
    const [open = "", known = "", ...counters] = keys
    const [now = "", member = "", seeded] = args
    const meters = counters.map((key, index) => {
      const at = 3 + index * 5
      return {
        key,
        amount: Number(args[at]),
        limit: Number(args[at + 1]),
        keep: args[at + 2] ?? "",
        name: args[at + 3] ?? "",
        seed: args[at + 4] ?? ""
      }
    })
    for (const meter of meters.filter(({ name }) => name !== "")) {
      if (call("HGET", known, meter.name) === null) {
        if (seeded !== "1") return ["cold"]
        call("SET", meter.key, meter.seed, "NX", "EX", meter.keep)
        call("HSET", known, meter.name, "1")
      }
      call("EXPIRE", known, Meters.keptSeconds.month)
    }
    for (const dead of texts(call("ZRANGEBYSCORE", open, "-inf", now, "LIMIT", "0", String(sweepLimit)))) {
      call("ZREM", open, dead)
      const [requestId, , ...given] = dead.split(" ")
      for (const [counter = "", amount = ""] of Array.chunksOf(given, 2)) {
        if (call("EXISTS", counter) === 1) call("DECRBY", counter, amount)
      }
      call("SET", `${open}:${requestId}`, "1", "EX", givenBackSeconds)
    }
    const used: Array<string> = []
    for (const [index, meter] of meters.entries()) {
      const current = Number(call("GET", meter.key) ?? "0")
      if (meter.amount > 0 && current + meter.amount > meter.limit) return ["refused", index, String(current)]
      used.push(String(current + meter.amount))
    }
    for (const meter of meters) {
      if (call("INCRBY", meter.key, meter.amount) === meter.amount) call("EXPIRE", meter.key, meter.keep)
    }
    call("ZADD", open, member.split(" ")[1] ?? "", member)
    call("EXPIRE", open, openSeconds)
    return ["admitted", ...used]
  },
  decode: (reply) => {
    const [tag, ...rest] = Array.isArray(reply) ? reply : []
    if (tag === "cold") return { _tag: "Cold" }
    if (tag === "refused") return { _tag: "Refused", index: Number(rest[0]), used: Number(rest[1]) }
    return { _tag: "Admitted", used: rest.map(Number) }
  }
}

/**
 * KEYS: open reservations, mark of this one having been given back, usage queue, one counter per meter. ARGV:
 * reservation, record, then per meter: reserved, used. What was given back is counted in full, once. A reservation that
 * is neither open nor given back was settled before, or Redis has lost it: nothing is counted, but the record is queued
 * again, because the table takes it once.
 */
export const settlement: Script<number> = {
  name: "settlement",
  lua: `
local member, record = ARGV[1], ARGV[2]
local open = redis.call('ZREM', KEYS[1], member) == 1
if open or redis.call('DEL', KEYS[2]) == 1 then
  for i = 4, #KEYS do
    local at = 3 + (i - 4) * 2
    local change = tonumber(ARGV[at + 1])
    if open then change = change - tonumber(ARGV[at]) end
    if change ~= 0 and redis.call('EXISTS', KEYS[i]) == 1 then redis.call('INCRBY', KEYS[i], string.format('%.0f', change)) end
  end
end
redis.call('XADD', KEYS[3], '*', 'record', record)
return redis.call('XLEN', KEYS[3])`,
  step: (call, keys, args) => {
    const [reservations = "", givenBack = "", queue = "", ...counters] = keys
    const [member = "", record = "", ...amounts] = args
    const open = call("ZREM", reservations, member) === 1
    if (open || call("DEL", givenBack) === 1) {
      for (const [index, counter] of counters.entries()) {
        const change = Number(amounts[index * 2 + 1]) - (open ? Number(amounts[index * 2]) : 0)
        if (change !== 0 && call("EXISTS", counter) === 1) call("INCRBY", counter, change)
      }
    }
    return append(call, queue, record)
  },
  decode: Number
}

/** KEYS: usage queue. ARGV: record. For requests that held nothing. */
export const appending: Script<number> = {
  name: "appending",
  lua: `redis.call('XADD', KEYS[1], '*', 'record', ARGV[1])
return redis.call('XLEN', KEYS[1])`,
  step: (call, [queue = ""], [record = ""]) => append(call, queue, record),
  decode: Number
}

const append = (call: Call, queue: string, record: string): Reply => {
  call("XADD", queue, "*", "record", record)
  return call("XLEN", queue)
}

const texts = (reply: Reply): ReadonlyArray<string> =>
  Array.isArray(reply) ? reply.filter((item) => typeof item === "string") : []
