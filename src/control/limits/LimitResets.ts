import { Context, DateTime, Effect, Layer } from "effect"
import { toDollars } from "../../policy/Price.ts"
import { Database } from "../../services/Database.ts"
import type { Redis } from "../../services/Redis.ts"
import * as CounterReadings from "../../state/limits/CounterReadings.ts"
import * as CounterReset from "../../state/limits/CounterReset.ts"
import type * as Meters from "../../state/limits/Meters.ts"
import * as RecordedUsage from "../../state/limits/RecordedUsage.ts"
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
  const context = yield* Effect.context<Database | Redis>()

  const scopesOfKey = Effect.fnUntraced(function* (id: string, now: DateTime.Utc) {
    const found = isId(id) ? yield* keys.find(id) : undefined
    if (found === undefined) return yield* new ControlError("not_found", "No key has this id.", { param: "scope_id" })
    const owners = yield* policies.layersForOwners([ownerOf(found.key)])
    const layers = LimitedKeys.withNarrowing(owners, yield* keys.narrowingLayers)
    return BindingLimits.ofKeyAndLayers(layers, found.key, now).filter(({ scope }) => scope.scope.id === id)
  })

  const scopesOfLayer = Effect.fnUntraced(function* (
    kind: Exclude<NewLimitReset["scope"], "key">,
    id: string | null,
    now: DateTime.Utc
  ) {
    const [layer] = yield* keys.layerOf(kind, id)
    if (layer === undefined)
      return yield* new ControlError("not_found", "No policy layer in force has this scope.", { param: "scope_id" })
    return BindingLimits.ofLayer(layer, now)
  })

  const meterOf = Effect.fnUntraced(function* ({ meter, scope, scope_id }: NewLimitReset) {
    const now = yield* DateTime.now
    const scopes = yield* scope === "key" ? scopesOfKey(scope_id ?? "", now) : scopesOfLayer(scope, scope_id, now)
    const found = scopes.flatMap(({ scope }) => scope.meters).find(({ field }) => field === meter)
    return (
      found ??
      (yield* new ControlError("not_found", `No ${meter} is in force here, so nothing is counted for it.`, {
        param: "meter"
      }))
    )
  })

  /** A sum of records that is too slow, or a Redis that is gone, ends the change before anything is written. */
  const orUnavailable = <A, E>(work: Effect.Effect<A, E, Database | Redis>) =>
    work.pipe(
      Effect.timeout(timeout),
      Effect.provide(context),
      Effect.mapError(() => unavailable)
    )

  /** The sum replaces an earlier one, so that resetting twice forgives nothing twice. */
  const forgive = (meter: Meters.Meter, input: NewLimitReset, reset: LimitReset, forgiven: number) =>
    audit.mutate(function* ({ write }) {
      const { endsAt, name, scope, windowId } = meter
      yield* write`DELETE FROM limit_resets WHERE ends_at < now()`
      yield* write`INSERT INTO limit_resets (scope, counter, window_id, forgiven, ends_at)
        VALUES (${scope.id}, ${name}, ${windowId}, ${forgiven}, ${new Date(endsAt)})
        ON CONFLICT (scope, counter, window_id) DO UPDATE SET forgiven = excluded.forgiven`
      return {
        result: reset,
        auditAction: { target: input.scope === "key" ? "key" : "policy_layer", action: "limits:reset" },
        targetId: input.scope === "key" ? scope.id : (scope.layer ?? scope.id),
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
      const meter = yield* meterOf(input)
      const { reading, records } = yield* orUnavailable(
        Effect.gen(function* () {
          const now = DateTime.toEpochMillis(yield* DateTime.now)
          const [reading] = yield* CounterReadings.read([{ scope: meter.scope, meters: [meter] }], now)
          return { reading, records: yield* RecordedUsage.readRecords(meter) }
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
      yield* forgive(meter, input, reset, recorded)
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
