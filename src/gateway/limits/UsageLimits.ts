import { Cause, Clock, Context, Data, Effect, Exit, Layer, Result } from "effect"
import type { UsageEstimate } from "../../policy/Estimate.ts"
import { Redis, type RedisError } from "../../services/Redis.ts"
import { redisKeysOf } from "../../state/limits/CounterKeys.ts"
import * as Meters from "../../state/limits/Meters.ts"
import { usageQueue } from "../../state/UsageQueue.ts"
import { makeBatcher, perTick } from "./Batcher.ts"
import * as CounterRestoration from "./CounterRestoration.ts"
import { FullWindows } from "./FullWindows.ts"
import * as Scripts from "./LimitsScripts.ts"
import * as LiveLimits from "./LiveLimits.ts"
import type { SettledUsage } from "./SettlementCounters.ts"
import * as SettlementCounters from "./SettlementCounters.ts"

/** The amounts that an admitted request adds to its counters. The settlement replaces them by the actual usage. */
export interface Reservation {
  /** One entry per scope: `<request ID> <counter>:<window> <amount> …`. Empty if the scope counts only requests. */
  readonly scopeMembers: ReadonlyArray<string>
  readonly meters: Meters.RequestMeters
  readonly amounts: ReadonlyArray<number>
}

export type Admission =
  | {
      readonly _tag: "Admitted"
      readonly reservation: Reservation
      readonly readings: ReadonlyArray<Meters.MeterReading>
    }
  /** No counter was raised. `wanted` is the amount that did not fit the meter. */
  | { readonly _tag: "Refused"; readonly reading: Meters.MeterReading; readonly wanted: number }

/** Redis did not respond, or the database did not respond while a lost counter was being restored. */
export class LimitsUnavailable extends Data.TaggedError("LimitsUnavailable")<{
  readonly cause: unknown
  /** Redis may have stored the reservation before it failed, so the refusal must settle it. */
  readonly reservation: Reservation
}> {}

export const reservationOf = (exit: Exit.Exit<Admission, LimitsUnavailable>): Reservation | undefined => {
  if (Exit.isFailure(exit)) return Result.getOrUndefined(Cause.findError(exit.cause))?.reservation
  return exit.value._tag === "Admitted" ? exit.value.reservation : undefined
}

/**
 * One Redis script checks and raises all counters of a request, so that concurrent requests never exceed a limit. The
 * settlement replaces the reservation by the actual usage exactly once. Requests of the same event loop tick share one
 * script call.
 */
export class UsageLimits extends Context.Service<
  UsageLimits,
  {
    /** Calls `done` once. It takes a callback, because an effect per request would cost too much. */
    readonly admitUnsafe: (
      requestId: string,
      meters: Meters.RequestMeters,
      wanted: UsageEstimate,
      done: (exit: Exit.Exit<Admission, LimitsUnavailable>) => void
    ) => void
    /** Returns a limit counter that this process already knows to be full. Does not call Redis. */
    readonly fullMeter: (meters: () => Meters.RequestMeters) => Meters.MeterReading | undefined
    /**
     * Atomically and idempotently replaces the reservation by the usage and queues `record`. Unused amounts are
     * subtracted in the reservation's window. Usage beyond the reservation counts in the current window. Returns the
     * queue's length.
     */
    readonly settleUnsafe: (
      reservation: Reservation | undefined,
      used: SettledUsage,
      record: string,
      done: (exit: Exit.Exit<number, RedisError>) => void
    ) => void
  }
>()("svc/gateway/UsageLimits") {
  static readonly layer = Layer.effect(
    UsageLimits,
    Effect.gen(function* () {
      const redis = yield* Redis
      const restore = yield* CounterRestoration.make
      const queue = redis.key(usageQueue)
      const fork = Effect.runForkWith(yield* Effect.context<never>())

      const live = yield* LiveLimits.make
      const fullWindows = new FullWindows()
      const clock = yield* Clock.Clock
      const currentMillis = () => clock.currentTimeMillisUnsafe()

      const settlementOf = ({ meters }: Meters.ScopeMeters, now: number): ScopeSettlement => {
        const counters = SettlementCounters.countersOf(meters, now)
        return {
          counters,
          keys: counters.map(({ meter }) => redis.key(meter.key)),
          terms: Scripts.settlementTerms(counters)
        }
      }

      const scopeStateOf = memoized((meters: Meters.ScopeMeters): ScopeState => {
        const { counters, known, open } = redisKeysOf(redis, meters)
        return {
          open,
          known,
          keys: [open, known, ...counters],
          endsAt: Math.min(...meters.meters.map(({ endsAt }) => endsAt)),
          settlement: settlementOf(meters, Number.NEGATIVE_INFINITY),
          terms: Scripts.admissionTerms(meters.meters)
        }
      })

      const onTick = perTick()
      const requestAdmission = yield* makeBatcher(onTick, maxBatchSize, (reservations: ReadonlyArray<Reservation>) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          const groups = groupedBy(reservations, ({ meters }) => meters)
          const keys: Array<string> = []
          const args: Array<string | number> = [now, now + leaseMs]
          for (const group of groups) {
            const { all, scopes } = group[0]!.value.meters
            args.push(scopes.length, group.length)
            for (const scope of scopes) {
              const state = scopeStateOf(scope)
              for (const key of state.keys) keys.push(key)
              args.push(state.terms)
            }
            const sums = all.map(() => 0)
            for (const { value } of group) add(sums, value.amounts)
            args.push(sums.join(" "))
            for (const { value } of group) args.push(...value.scopeMembers, value.amounts.join(" "))
          }
          return Effect.map(redis.run(Scripts.admission, keys, args), (replies) => {
            const admissions = new Array<AdmissionOrCold>(reservations.length)
            for (const [index, group] of groups.entries()) distribute(group, replies[index], admissions)
            return admissions
          })
        })
      )

      const admitRestored = (
        reservation: Reservation,
        coldMeters: ReadonlyArray<number>,
        attemptsLeft: number
      ): Effect.Effect<Admission, unknown> =>
        restore(coldMeters.map((index) => reservation.meters.all[index]!)).pipe(
          Effect.andThen(
            Effect.callback<AdmissionOrCold, RedisError>((resume) => requestAdmission(reservation, resume))
          ),
          Effect.flatMap((admission) => {
            if (admission._tag !== "Cold") return Effect.succeed(admission)
            if (attemptsLeft > 1) return admitRestored(reservation, admission.meters, attemptsLeft - 1)
            return Effect.fail(new Error("Redis loses restored counters at once; check its memory and eviction policy"))
          })
        )

      const admitUnsafe: UsageLimits["Service"]["admitUnsafe"] = (requestId, meters, wanted, done) => {
        if (meters.all.length === 0) return done(admittedWithoutMeters)
        const full = fullWindows.findFull(() => meters.all, currentMillis)
        if (full !== undefined) return done(Exit.succeed({ _tag: "Refused", reading: full, wanted: 1 }))
        const amounts = meters.all.map((meter) => Meters.amountFor(meter, wanted))
        const reservation = { scopeMembers: membersOf(requestId, meters, amounts), meters, amounts }
        requestAdmission(reservation, (exit) => {
          if (Exit.isFailure(exit))
            done(Exit.fail(new LimitsUnavailable({ cause: Cause.squash(exit.cause), reservation })))
          else if (exit.value._tag === "Cold")
            fork(
              admitRestored(reservation, exit.value.meters, maxRestorationAttempts).pipe(
                Effect.timeout(restorationTimeout),
                Effect.mapError((cause) => new LimitsUnavailable({ cause, reservation }))
              )
            ).addObserver(done)
          else {
            if (exit.value._tag === "Refused") fullWindows.remember(exit.value.reading, currentMillis())
            if (live.isFollowed) {
              if (exit.value._tag === "Refused") live.refused(exit.value)
              else live.admitted(exit.value.readings, amounts)
            }
            done(Exit.succeed(exit.value))
          }
        })
      }

      const settle = yield* makeBatcher(onTick, maxBatchSize, (settlements: ReadonlyArray<PendingSettlement>) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          const keys: Array<string> = [queue]
          const args: Array<string | number> = [settlements.length]
          for (const { record } of settlements) args.push(record)
          for (const { held, meters } of heldByScope(settlements)) {
            const { endsAt, known, open, settlement } = scopeStateOf(meters)
            const { counters, keys: counterKeys, terms } = now < endsAt ? settlement : settlementOf(meters, now)
            const changes = held.map(({ amounts, used }) => SettlementCounters.changesOf(counters, amounts, used))
            keys.push(open, known)
            keys.push(...counterKeys)
            const sums = counters.map(() => 0)
            for (const { open } of changes) add(sums, open)
            args.push(held.length, terms, sums.join(" "))
            for (const [index, { member }] of held.entries()) {
              const { givenBack, open } = changes[index]!
              args.push(member, `${open.join(" ")} ${givenBack.join(" ")}`)
            }
          }
          return Effect.map(redis.run(Scripts.settlement, keys, args), (length) => settlements.map(() => length))
        })
      )

      return UsageLimits.of({
        admitUnsafe,
        fullMeter: (meters) => fullWindows.findFull(() => meters().all, currentMillis),
        settleUnsafe: (reservation, used, record, done) => settle({ reservation, used, record }, done)
      })
    })
  )
}

const restorationTimeout = "2 seconds"

const maxRestorationAttempts = 3

/** After this time, reservations of a crashed gateway are returned. Longer requests are still settled exactly. */
const leaseMs = 15 * 60_000

/** Redis runs a script with this many requests in less than a millisecond. */
const maxBatchSize = 64

const admittedWithoutMeters: Exit.Exit<Admission> = Exit.succeed({
  _tag: "Admitted",
  reservation: { scopeMembers: [], meters: { scopes: [], all: [] }, amounts: [] },
  readings: []
})

interface ScopeState {
  readonly open: string
  readonly known: string
  /** The Redis keys of `open`, `known` and the scope's counters, in the order of the scripts. */
  readonly keys: ReadonlyArray<string>
  readonly endsAt: number
  readonly settlement: ScopeSettlement
  readonly terms: string
}

interface ScopeSettlement {
  readonly counters: ReadonlyArray<SettlementCounters.SettlementCounter>
  readonly keys: ReadonlyArray<string>
  readonly terms: string
}

const add = (sums: Array<number>, amounts: ReadonlyArray<number>): void => {
  for (let i = 0; i < sums.length; i++) sums[i]! += amounts[i]!
}

const memoized = (make: (meters: Meters.ScopeMeters) => ScopeState): typeof make => {
  const states = new WeakMap<Meters.ScopeMeters, ScopeState>()
  return (meters) => {
    const cached = states.get(meters)
    if (cached !== undefined) return cached
    const state = make(meters)
    states.set(meters, state)
    return state
  }
}

type AdmissionOrCold = Admission | Extract<Scripts.GroupAdmission, { readonly _tag: "Cold" }>

interface PendingSettlement {
  readonly reservation: Reservation | undefined
  readonly used: SettledUsage
  readonly record: string
}

interface HeldReservation {
  readonly member: string
  readonly amounts: ReadonlyArray<number>
  readonly used: SettledUsage
}

/** Groups settlements by scope and by the minute in which their requests were admitted. */
const heldByScope = (
  settlements: ReadonlyArray<PendingSettlement>
): Iterable<{ readonly meters: Meters.ScopeMeters; readonly held: Array<HeldReservation> }> => {
  const groups = new Map<
    Meters.ScopeMeters,
    { readonly meters: Meters.ScopeMeters; readonly held: Array<HeldReservation> }
  >()
  for (const { reservation, used } of settlements) {
    if (reservation === undefined) continue
    let meterIndex = 0
    for (const [index, meters] of reservation.meters.scopes.entries()) {
      const from = meterIndex
      meterIndex += meters.meters.length
      const member = reservation.scopeMembers[index]!
      if (member === "") continue
      const held = { member, amounts: reservation.amounts.slice(from, meterIndex), used }
      const group = groups.get(meters)
      if (group === undefined) groups.set(meters, { meters, held: [held] })
      else group.held.push(held)
    }
  }
  return groups.values()
}

interface Indexed<A> {
  readonly index: number
  readonly value: A
}

const groupedBy = <A>(values: ReadonlyArray<A>, by: (value: A) => object): ReadonlyArray<ReadonlyArray<Indexed<A>>> => {
  const groups = new Map<object, Array<Indexed<A>>>()
  for (const [index, value] of values.entries()) {
    const group = groups.get(by(value))
    if (group === undefined) groups.set(by(value), [{ index, value }])
    else group.push({ index, value })
  }
  return [...groups.values()]
}

const distribute = (
  group: ReadonlyArray<Indexed<Reservation>>,
  reply: Scripts.GroupAdmission | undefined,
  admissions: Array<AdmissionOrCold>
): void => {
  if (reply === undefined) throw new Error("the Redis admission script returned no result for a group of requests")
  if (reply._tag === "Cold") {
    for (const { index } of group) admissions[index] = reply
    return
  }
  const used = [...reply.usedBefore]
  for (const [position, { index, value: reservation }] of group.entries()) {
    const { amounts, meters } = reservation
    const refusingIndex = (reply.refusedBy[position] ?? 0) - 1
    if (refusingIndex >= 0) {
      const reading = { meter: meters.all[refusingIndex]!, used: used[refusingIndex]! }
      admissions[index] = { _tag: "Refused", reading, wanted: amounts[refusingIndex]! }
    } else {
      for (const [i, amount] of amounts.entries()) used[i]! += amount
      const readings = meters.all.map((meter, i) => ({ meter, used: used[i]! }))
      admissions[index] = { _tag: "Admitted", reservation, readings }
    }
  }
}

const membersOf = (
  requestId: string,
  { scopes }: Meters.RequestMeters,
  amounts: ReadonlyArray<number>
): ReadonlyArray<string> => {
  let meterIndex = 0
  return scopes.map(({ meters }) => {
    let held = ""
    for (const { name, unit, windowId } of meters) {
      if (unit !== "requests") held += ` ${name}:${windowId} ${amounts[meterIndex]}`
      meterIndex++
    }
    return held === "" ? "" : requestId + held
  })
}
