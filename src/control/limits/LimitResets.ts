import { Context, DateTime, Effect, Layer } from "effect"
import { toDollars } from "../../policy/Price.ts"
import { Database } from "../../services/Database.ts"
import type { Redis } from "../../services/Redis.ts"
import * as CounterReadings from "../../state/limits/CounterReadings.ts"
import * as CounterReset from "../../state/limits/CounterReset.ts"
import type * as Meters from "../../state/limits/Meters.ts"
import { LongQueue } from "../../state/limits/RecordedUsage.ts"
import { RestoredCounters } from "../../state/limits/RestoredCounters.ts"
import { ownerOf } from "../../state/StoredKeys.ts"
import { LimitReset, type NewLimitReset } from "../api/limits/LimitResets.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { isId } from "../api/schema/Fields.ts"
import { type Actor, Audit, Snapshots } from "../audit/Audit.ts"
import * as PolicyState from "../policies/PolicyState.ts"
import { type StoreFailure, toStoreFailures } from "../store/Rows.ts"
import * as BindingLimits from "./BindingLimits.ts"
import * as LimitedKeys from "./LimitedKeys.ts"

/** Sets what is used of a limit in its current day or month back to zero. */
export class LimitResets extends Context.Service<
  LimitResets,
  { readonly reset: (reset: NewLimitReset) => Effect.Effect<LimitReset, Refused<"not_found"> | StoreFailure, Actor> }
>()("svc/control/LimitResets") {
  static readonly layer = Layer.suspend(() => Layer.effect(LimitResets, make))
}

/** Adding up the usage records of a busy layer may take long. */
const timeout = "20 seconds"

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const keys = LimitedKeys.make(sql)
  const policies = PolicyState.make(sql)
  const { recordsOf } = yield* RestoredCounters
  const context = yield* Effect.context<Redis>()

  const limitsOfKey = Effect.fnUntraced(function* (id: string, now: DateTime.Utc) {
    const found = isId(id) ? yield* keys.find(id) : undefined
    if (found === undefined) return yield* new ControlError("not_found", "No key has this id.", { param: "scope_id" })
    const owners = yield* policies.layersForOwners([ownerOf(found.key)])
    const layers = LimitedKeys.withNarrowing(owners, yield* keys.narrowingLayers)
    const limits = BindingLimits.ofKeyAndLayers(layers, found.key, now).filter(({ scope }) => scope.scope.id === id)
    return { targetId: id, limits }
  })

  const limitsOfLayer = Effect.fnUntraced(function* (
    kind: Exclude<NewLimitReset["scope"], "key">,
    id: string | null,
    now: DateTime.Utc
  ) {
    const [layer] = yield* keys.layerOf(kind, id)
    const targetId = yield* keys.layerIdOf(kind, id)
    if (layer === undefined || targetId === undefined)
      return yield* new ControlError("not_found", "No policy layer in force has this scope.", { param: "scope_id" })
    return { targetId, limits: BindingLimits.ofLayer(layer, now) }
  })

  const meterOf = Effect.fnUntraced(function* ({ meter, scope, scope_id }: NewLimitReset) {
    const now = yield* DateTime.now
    const { limits, targetId } = yield* scope === "key"
      ? limitsOfKey(scope_id ?? "", now)
      : limitsOfLayer(scope, scope_id, now)
    const found = limits.flatMap(({ scope }) => scope.meters).find(({ field }) => field === meter)
    if (found === undefined)
      return yield* new ControlError("not_found", `No ${meter} is in force here, so nothing is counted for it.`, {
        param: "meter"
      })
    return { meter: found, targetId }
  })

  /** A sum of records that is too slow, or a Redis that is gone, ends the change before anything is written. */
  const orUnavailable = <A, E>(work: Effect.Effect<A, E, Redis>) =>
    work.pipe(
      Effect.timeout(timeout),
      Effect.provide(context),
      Effect.tapError((cause) => Effect.logWarning("a limit cannot be reset", { cause })),
      Effect.mapError((error) =>
        error instanceof LongQueue ? new ControlError("store_unavailable", error.message) : unavailable
      )
    )

  /** The sum replaces an earlier one, so that resetting twice forgives nothing twice. */
  const forgive = (meter: Meters.Meter, targetId: string, reset: LimitReset, forgiven: number) =>
    audit.mutate(function* ({ write }) {
      const { endsAt, name, scope, windowId } = meter
      yield* write`DELETE FROM limit_resets WHERE ends_at < now()`
      yield* write`INSERT INTO limit_resets (scope, counter, window_id, forgiven, ends_at)
        VALUES (${scope.id}, ${name}, ${windowId}, ${forgiven}, ${new Date(endsAt)})
        ON CONFLICT (scope, counter, window_id) DO UPDATE SET forgiven = excluded.forgiven`
      return {
        result: reset,
        auditAction: { target: reset.scope === "key" ? "key" : "policy_layer", action: "limits:reset" },
        targetId,
        snapshots: yield* snapshots(null, reset),
        changes: []
      }
    })

  return LimitResets.of({
    /**
     * Stores what is forgiven before it resets the counter. If the second step fails, the counter is too high, as it
     * was, and can be reset again.
     */
    reset: Effect.fn("LimitResets.reset")(function* (input) {
      const { meter, targetId } = yield* meterOf(input)
      const { reading, records } = yield* orUnavailable(
        Effect.gen(function* () {
          const now = DateTime.toEpochMillis(yield* DateTime.now)
          const [reading] = yield* CounterReadings.read([{ scope: meter.scope, meters: [meter] }], now)
          return { reading, records: yield* recordsOf(meter) }
        })
      )
      const recorded = records.sums[meter.unit]
      const restored = Math.max(0, recorded - (records.forgiven.get(meter.name) ?? 0))
      const used = reading?.known === true ? reading.used : restored
      const reset: LimitReset = {
        ...input,
        window: meter.window === "month" ? "month" : "day",
        used_before: meter.unit === "nanos" ? toDollars(used) : used,
        resets_at: DateTime.makeUnsafe(meter.endsAt)
      }
      yield* forgive(meter, targetId, reset, recorded)
      yield* orUnavailable(CounterReset.reset(meter))
      return reset
    }, toStoreFailures)
  })
})

const unavailable = new ControlError(
  "store_unavailable",
  "Redis, which counts the limits, or the sum of the usage records is unavailable. The limit may not be reset: try again later."
)

const snapshots = Snapshots.of(LimitReset)
