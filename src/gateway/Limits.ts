import { Cause, Clock, Context, Data, DateTime, Effect, Exit, Layer } from "effect"
import { Database } from "../services/Database.ts"
import { Redis, type RedisError } from "../services/Redis.ts"
import { FullWindows } from "./FullWindows.ts"
import { gathering, turn } from "./Gathering.ts"
import * as Scripts from "./LimitsScripts.ts"
import * as Meters from "./Meters.ts"
import type { Wanted } from "./model/Estimate.ts"
import type { Counted } from "./model/PolicyLayer.ts"

/** What a request holds on its meters until it is settled. */
export interface Reservation {
  /**
   * Its entry among the key's open reservations: `<request id> <counter>:<window> <amount> …`, to give back what it
   * holds.
   */
  readonly member: string
  readonly keyId: string
  readonly meters: ReadonlyArray<Meters.Meter>
  /** What is held on each. */
  readonly amounts: ReadonlyArray<number>
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

/**
 * Redis, or the database that a cold counter is restored from, did not answer: nobody can say whether the request fits.
 */
export class LimitsUnavailable extends Data.TaggedError("LimitsUnavailable")<{
  readonly cause: unknown
  /** Redis may hold it, or come to hold it, all the same: it is to be settled with the refusal. */
  readonly reservation: Reservation
}> {}

/** What a settlement says of a request. */
export interface Settled {
  readonly tokens: number
  readonly nanos: number
}

/**
 * RPM, TPM, daily caps and budgets of a key. All meters of a request are checked and raised together by one script, so
 * that no number of concurrent requests, in any number of processes, passes a limit; the reservation is replaced by
 * what was really used, once. Requests of one moment share a call.
 */
export class Limits extends Context.Service<
  Limits,
  {
    /**
     * Tells `done` once; so does `settle`. Callbacks, because both are on the path of every request. `counted`: which
     * of the key's requests a meter counts, asked only when it has to be read from the records.
     */
    readonly admit: (
      requestId: string,
      keyId: string,
      meters: ReadonlyArray<Meters.Meter>,
      wanted: Wanted,
      counted: (field: Meters.Meter["field"]) => Counted,
      done: (exit: Exit.Exit<Admission, LimitsUnavailable>) => void
    ) => void
    /** A meter that is known to have no room for another request: asks nobody, and counts nothing. */
    readonly full: (meters: ReadonlyArray<Meters.Meter>) => Reading | undefined
    /**
     * In one step: replaces the reservation by what was used and appends `record` to the usage queue. Doing it twice is
     * doing it once. Answers the queue's length.
     */
    readonly settle: (
      reservation: Reservation | undefined,
      used: Settled,
      record: string,
      done: (exit: Exit.Exit<number, RedisError>) => void
    ) => void
  }
>()("svc/gateway/Limits") {
  static readonly layer = Layer.effect(
    Limits,
    Effect.gen(function* () {
      const redis = yield* Redis
      const database = yield* Database
      const queue = redis.key(usageQueue)
      const fork = Effect.runForkWith(yield* Effect.context<never>())

      const fullWindows = new FullWindows()

      const placesOf = remembered((keyId: string, meters: ReadonlyArray<Meters.Meter>): Places => {
        const counters = meters.map(({ key }) => redis.key(key))
        return {
          open: redis.key(`limits:open:${keyId}`),
          known: redis.key(`limits:known:${keyId}`),
          counters,
          terms: meters.map((meter) => [
            meter.limit,
            Meters.keptSeconds[meter.window],
            durable(meter) ? meter.field : ""
          ])
        }
      })

      /** What the key has used in the window according to its usage records. */
      const recorded = (keyId: string, meter: Meters.Meter, counted: Counted) => {
        const { endsAt, startsAt } = Meters.windowAt(meter.window, DateTime.makeUnsafe(meter.endsAt - 1))
        const { sql } = database
        const column =
          meter.unit === "nanos"
            ? sql`coalesce(sum(cost_nanos), 0)`
            : meter.unit === "tokens"
              ? sql`coalesce(sum(total_tokens), 0)`
              : sql`count(*) FILTER (WHERE error_code IS NULL OR error_code LIKE 'upstream_%' OR error_code IN ('response_body_too_large', 'guardrail_blocked'))`
        const among =
          counted === "all" ? sql`` : sql`AND (route = ANY(${counted.routes}) OR model = ANY(${counted.models}))`
        return sql<{ used: string }>`SELECT (${column})::text AS used FROM usage_events WHERE key_id = ${keyId} ${among}
          AND created_at >= ${new Date(startsAt)} AND created_at < ${new Date(endsAt)}`.pipe(
          Effect.map((rows) => Number(rows[0]?.used ?? 0)),
          Effect.timeout(restoredWithin),
          Effect.interruptible
        )
      }

      const atEnd = turn()
      const ask = yield* gathering(atEnd, atOnce, (questions: ReadonlyArray<Question>) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          const groups = groupedBy(questions, ({ reservation: { meters }, seeds }) => seeds ?? meters)
          const keys: Array<string> = []
          const args: Array<string | number> = [now, now + leaseMs]
          for (const group of groups) {
            const { reservation, seeds } = group[0]!.value
            const { counters, known, open, terms } = placesOf(reservation.keyId, reservation.meters)
            keys.push(open, known, ...counters)
            args.push(terms.length, group.length, seeds === undefined ? 0 : 1)
            for (const [index, [limit, keep, name]] of terms.entries()) {
              let sum = 0
              for (const { value } of group) sum += value.reservation.amounts[index]!
              args.push(limit, keep, name, seeds?.[index] ?? 0, sum)
            }
            for (const { value } of group) args.push(value.reservation.member, value.reservation.amounts.join(" "))
          }
          return Effect.map(redis.run(Scripts.admission, keys, args), (answers) => {
            const said = new Array<Said>(questions.length)
            for (const [index, group] of groups.entries()) tell(group, answers[index], said)
            return said
          })
        })
      )

      /**
       * A limit that Redis knows nothing of: new, or Redis lost its memory. The spend is on record, so the strict start
       * is to read it there once; the script takes the numbers only where it still has none.
       */
      const admitCold = (reservation: Reservation, counted: (field: Meters.Meter["field"]) => Counted) =>
        Effect.forEach(reservation.meters, (meter) =>
          durable(meter) ? recorded(reservation.keyId, meter, counted(meter.field)) : Effect.succeed(0)
        ).pipe(
          Effect.flatMap((seeds) => Effect.callback<Said, RedisError>((resume) => ask({ reservation, seeds }, resume))),
          Effect.flatMap((said) =>
            said._tag === "Cold"
              ? Effect.die(new Error("a seeded admission was answered as cold"))
              : Effect.succeed(said)
          ),
          Effect.mapError((cause) => new LimitsUnavailable({ cause, reservation }))
        )

      const admit: Limits["Service"]["admit"] = (requestId, keyId, meters, wanted, counted, done) => {
        if (meters.length === 0) return done(unlimited)
        const full = fullWindows.among(meters)
        if (full !== undefined) return done(Exit.succeed({ _tag: "Refused", reading: full, wanted: 1 }))
        const amounts = meters.map((meter) => amountFor(meter, wanted))
        const reservation = { member: memberOf(requestId, meters, amounts), keyId, meters, amounts }
        ask({ reservation, seeds: undefined }, (exit) => {
          if (Exit.isFailure(exit))
            done(Exit.fail(new LimitsUnavailable({ cause: Cause.squash(exit.cause), reservation })))
          else if (exit.value._tag === "Cold") fork(admitCold(reservation, counted)).addObserver(done)
          else {
            if (exit.value._tag === "Refused") fullWindows.note(exit.value.reading)
            done(Exit.succeed(exit.value))
          }
        })
      }

      const settle = yield* gathering(atEnd, atOnce, (settlements: ReadonlyArray<Settlement>) => {
        const groups = groupedBy(settlements, ({ reservation }) => reservation?.meters ?? noMeters)
        const keys: Array<string> = [queue]
        const args: Array<string | number> = []
        for (const group of groups) {
          const { reservation } = group[0]!.value
          const meters = reservation?.meters ?? noMeters
          args.push(meters.length, group.length)
          for (const [index, meter] of meters.entries()) {
            let change = 0
            for (const { value } of group) {
              change += settledFor(meter, value.used) - (value.reservation?.amounts[index] ?? 0)
            }
            args.push(change)
          }
          for (const { value } of group) {
            args.push(value.record)
            if (value.reservation === undefined || meters.length === 0) continue
            const { amounts, member } = value.reservation
            let heldAndUsed = amounts.join(" ")
            for (const meter of meters) heldAndUsed += ` ${settledFor(meter, value.used)}`
            args.push(member, heldAndUsed)
          }
          if (reservation === undefined || meters.length === 0) continue
          const { counters, open } = placesOf(reservation.keyId, meters)
          keys.push(open, ...counters)
        }
        return Effect.map(redis.run(Scripts.settlement, keys, args), (length) => settlements.map(() => length))
      })

      return Limits.of({
        admit,
        full: (meters) => fullWindows.among(meters),
        settle: (reservation, used, record, done) => settle({ reservation, used, record }, done)
      })
    })
  )
}

/** The list that usage records wait in for the database, oldest first. */
export const usageQueue = "usage:queue"

/** The client is waiting while a counter is restored. */
const restoredWithin = "2 seconds"

/** How long a reservation outlives a gateway that died with it. A request that runs longer still settles exactly. */
const leaseMs = 15 * 60_000

/** So many requests in one script take Redis less than a millisecond: nobody else waits for longer. */
const atOnce = 64

const noMeters: ReadonlyArray<Meters.Meter> = []
const unlimited: Exit.Exit<Admission> = Exit.succeed({
  _tag: "Admitted",
  reservation: { member: "", keyId: "", meters: noMeters, amounts: [] },
  readings: []
})

/** Where the state of a key's meters stands in Redis, and what the script is told of each. */
interface Places {
  readonly open: string
  readonly known: string
  readonly counters: ReadonlyArray<string>
  /** Limit, seconds to keep, name of a durable limit. */
  readonly terms: ReadonlyArray<readonly [number, number, string]>
}

/** Made once for a key's meters, which change with the minute. */
const remembered = (make: (keyId: string, meters: ReadonlyArray<Meters.Meter>) => Places): typeof make => {
  const places = new WeakMap<ReadonlyArray<Meters.Meter>, Places>()
  return (keyId, meters) => {
    const known = places.get(meters)
    if (known !== undefined) return known
    const made = make(keyId, meters)
    places.set(meters, made)
    return made
  }
}

interface Question {
  readonly reservation: Reservation
  /** What each durable counter starts from, where Redis has none. */
  readonly seeds: ReadonlyArray<number> | undefined
}

type Said = Admission | { readonly _tag: "Cold" }
const cold: Said = { _tag: "Cold" }

interface Settlement {
  readonly reservation: Reservation | undefined
  readonly used: Settled
  readonly record: string
}

interface Placed<A> {
  readonly index: number
  readonly value: A
}

/** In the order of the first of each group; `index` is the place among all. */
const groupedBy = <A>(values: ReadonlyArray<A>, by: (value: A) => object): ReadonlyArray<ReadonlyArray<Placed<A>>> => {
  const groups = new Map<object, Array<Placed<A>>>()
  for (const [index, value] of values.entries()) {
    const group = groups.get(by(value))
    if (group === undefined) groups.set(by(value), [{ index, value }])
    else group.push({ index, value })
  }
  return [...groups.values()]
}

/** What the script did with a group, said to each of its requests. */
const tell = (
  group: ReadonlyArray<Placed<Question>>,
  answer: Scripts.AdmissionAnswer | undefined,
  said: Array<Said>
): void => {
  if (answer?._tag !== "Decided") {
    for (const { index } of group) said[index] = cold
    return
  }
  const used = [...answer.before]
  for (const [place, { index, value }] of group.entries()) {
    const { reservation } = value
    const { amounts, meters } = reservation
    const refusing = (answer.refusedBy[place] ?? 0) - 1
    if (refusing >= 0) {
      const reading = { meter: meters[refusing]!, used: used[refusing]! }
      said[index] = { _tag: "Refused", reading, wanted: amounts[refusing]! }
    } else {
      for (const [i, amount] of amounts.entries()) used[i]! += amount
      const readings = meters.map((meter, i) => ({ meter, used: used[i]! }))
      said[index] = { _tag: "Admitted", reservation, readings }
    }
  }
}

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

const memberOf = (requestId: string, meters: ReadonlyArray<Meters.Meter>, amounts: ReadonlyArray<number>): string => {
  let member = requestId
  for (let i = 0; i < meters.length; i++) {
    const { name, unit, windowId } = meters[i]!
    // the request was made, whatever becomes of it
    if (unit !== "requests") member += ` ${name}:${windowId} ${amounts[i]}`
  }
  return member
}
