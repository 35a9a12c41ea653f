import { Context, DateTime, Effect, Layer, Schema } from "effect"
import * as EffectivePolicy from "../../policy/EffectivePolicy.ts"
import type { KeyPolicy } from "../../policy/KeyPolicy.ts"
import * as LimitRaise from "../../policy/LimitRaise.ts"
import { allowsModel } from "../../policy/ModelPattern.ts"
import { toDollars } from "../../policy/Price.ts"
import * as Refusals from "../../policy/Refusals.ts"
import * as ConcurrencyLimit from "../../services/ConcurrencyLimit.ts"
import { Database } from "../../services/Database.ts"
import { ownerOf } from "../../state/StoredKeys.ts"
import * as UsageSums from "../../state/UsageSums.ts"
import type {
  HeldKey,
  HeldLimits,
  HeldModels,
  HeldRequest,
  HeldRequestsQuery,
  HeldUsageQuery
} from "../api/holder/HolderApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import type { Cursor } from "../api/schema/Fields.ts"
import { KeyHolder, Operator } from "../api/schema/Security.ts"
import type { TimeseriesBucket, UsageTotal } from "../api/usage/UsageApi.ts"
import { Keys } from "../keys/Keys.ts"
import { LimitStates } from "../limits/LimitStates.ts"
import { limitOfCheck } from "../policies/LimitSentences.ts"
import * as PolicyState from "../policies/PolicyState.ts"
import { sentenceOf } from "../policies/RefusalSentences.ts"
import { StoredDenial } from "../policies/StoredDenial.ts"
import * as PriceBook from "../providers/PriceBook.ts"
import { Count, computedRows, type StoreFailure, toStoreFailures } from "../store/Rows.ts"
import { Usage } from "../usage/Usage.ts"
import { UsageEvents } from "../usage/UsageEvents.ts"
import { UsageSeries } from "../usage/UsageSeries.ts"

type Failure = StoreFailure | Refused<"not_found">
type UsageFailure = StoreFailure | Refused<"invalid_usage_query">

/**
 * Reads for the holder of a gateway key what concerns this key. The key of every query is the one that authenticated the request, and no
 * parameter names another one.
 */
export class HeldKeys extends Context.Service<
  HeldKeys,
  {
    readonly show: Effect.Effect<HeldKey, Failure, KeyHolder>
    readonly limits: Effect.Effect<HeldLimits, Failure, KeyHolder>
    readonly models: Effect.Effect<HeldModels, Failure, KeyHolder>
    readonly usage: (
      query: HeldUsageQuery
    ) => Effect.Effect<
      { readonly summary: UsageTotal; readonly buckets: ReadonlyArray<TimeseriesBucket> },
      UsageFailure,
      KeyHolder
    >
    readonly requests: (
      query: HeldRequestsQuery
    ) => Effect.Effect<
      { readonly rows: ReadonlyArray<HeldRequest>; readonly next_cursor: Cursor | null },
      UsageFailure,
      KeyHolder
    >
  }
>()("svc/control/HeldKeys") {
  static readonly layer = Layer.suspend(() => Layer.effect(HeldKeys, make))
}

const maxModels = 1000
const maxUsedModels = 100
const usedDays = 30

/** Leaves operators one of the places for usage queries, and one of those in which lost counters are restored. */
const reads = { maxTotal: 2, maxPerCaller: 1, maxWait: "5 seconds" } as const

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const keys = yield* Keys
  const states = yield* LimitStates
  const usage = yield* Usage
  const events = yield* UsageEvents
  const series = yield* UsageSeries
  const policies = PolicyState.make(sql)
  const limit = yield* ConcurrencyLimit.make(reads)

  const oneAtATime = <A, E, R>(keyId: string, read: Effect.Effect<A, E, R>) =>
    limit.acquire(keyId).pipe(Effect.mapError(busy), Effect.andThen(read), Effect.scoped)

  const policyOf = Effect.fnUntraced(function* (id: string) {
    const key = yield* policies.key(id)
    if (key === undefined) return yield* goneKey
    const now = yield* DateTime.now
    const layers = yield* policies.layersForOwner(ownerOf(key))
    const raises = LimitRaise.inForce(key.raises, DateTime.toEpochMillis(now))
    return EffectivePolicy.of([...layers, key.ownLayer], raises).policy
  })

  const show = Effect.gen(function* () {
    const { keyId } = yield* KeyHolder
    const key = yield* keys.get(keyId)
    const [project] = yield* projectRows.all(sql`SELECT name FROM projects WHERE id = ${key.project_id}`)
    return { ...key, project_name: project?.name ?? null, policy: yield* policyOf(keyId) }
  }).pipe(toStoreFailures, Effect.withSpan("HeldKeys.show"))

  const limits = Effect.gen(function* () {
    const { keyId } = yield* KeyHolder
    const all = yield* oneAtATime(keyId, states.ofKey(keyId))
    return {
      limits: all.filter(({ scope }) => scope === "key"),
      shared: all
        .filter(({ scope }) => scope !== "key")
        .map((limit) => ({ ...limit, full: limit.share === null ? null : limit.share >= 1 }))
    }
  }).pipe(Effect.withSpan("HeldKeys.limits"))

  /** Refused requests count too, so a model is shown only if the key may use it now. */
  const usedModels = Effect.fnUntraced(function* (keyId: string, policy: KeyPolicy) {
    const from = DateTime.startOf(DateTime.subtract(yield* DateTime.now, { days: usedDays }), "day")
    const query = { key_id: keyId, from, breakdown_limit: maxUsedModels, sort_by: "requests" } as const
    // The prices are shown also while another read of the key holds its place, and if the usage takes too long to add up.
    const groups = yield* oneAtATime(keyId, usage.breakdown("models", query).pipe(asCaller(keyId))).pipe(
      Effect.catch((error) => Effect.as(Effect.logDebug("the models that a key has used are left out", error), []))
    )
    const names = groups.map(({ name }) => name).filter((name) => !UsageSums.isWithoutModel(name))
    const prices = yield* policies.prices(names)
    const layers = yield* policies.layers
    return names
      .filter((model) => Refusals.isModelAllowed(policy, layers.of.model, model))
      .map((model) => ({ model, price: prices.priceOf(model) }))
      .filter(({ price }) => price !== undefined || policy.unpriced_models !== "refuse")
      .map(({ model, price }) => ({
        model,
        input_usd_per_million: price === undefined ? null : toDollars(price.input),
        output_usd_per_million: price === undefined ? null : toDollars(price.output),
        note: PriceBook.noteOf(model)
      }))
  })

  const models = Effect.gen(function* () {
    const { keyId } = yield* KeyHolder
    const policy = yield* policyOf(keyId)
    const { allowed_models: allowed } = policy
    const priced = yield* priceRows.all(sql`
      SELECT model, input_nanos_per_million AS input, output_nanos_per_million AS output FROM model_prices
      WHERE right(model, 1) <> '*' AND NOT EXISTS (SELECT 1 FROM policy_layers
        WHERE enabled AND layer_kind = 'model' AND scope_id = model AND policy->>'deny' = 'true')
      ORDER BY model LIMIT ${maxModels}`)
    return {
      allowed: allowed._tag === "AllowAll" ? null : allowed.values,
      priced: priced
        .filter(({ model }) => allowsModel(allowed, model))
        .map(({ input, model, output }) => ({
          model,
          input_usd_per_million: toDollars(input),
          output_usd_per_million: toDollars(output),
          note: PriceBook.noteOf(model)
        })),
      used: yield* usedModels(keyId, policy)
    }
  }).pipe(toStoreFailures, Effect.withSpan("HeldKeys.models"))

  const denialsOf = (
    keyId: string,
    rows: ReadonlyArray<{ readonly id: string; readonly created_at: DateTime.Utc }>
  ) => {
    const times = rows.map(({ created_at }) => DateTime.toEpochMillis(created_at))
    // The bounds choose the partitions. Stored times have microseconds.
    return denialRows.all(sql`SELECT id::text AS id, denial FROM usage_events
      WHERE key_id = ${keyId} AND id = ANY(${rows.map(({ id }) => id)}::uuid[])
        AND created_at BETWEEN ${new Date(Math.min(...times))} AND ${new Date(Math.max(...times) + 1)}`)
  }

  const requests = Effect.fn("HeldKeys.requests")(function* (query: HeldRequestsQuery) {
    const { keyId } = yield* KeyHolder
    const page = yield* oneAtATime(keyId, events.page({ ...query, key_id: keyId }).pipe(asCaller(keyId)))
    const failed = page.rows.filter(({ status }) => status === "failure")
    const denials = failed.length === 0 ? [] : yield* toStoreFailures(denialsOf(keyId, failed))
    const denialOf = new Map(denials.map(({ denial, id }) => [id, denial]))
    return {
      rows: page.rows.map((event) => {
        const { amounts, check = null } = denialOf.get(event.id) ?? {}
        const refusal = sentenceOf({
          ...{ check, amounts, isOfService: event.service_name !== null },
          ...{ statusCode: event.status_code, errorCode: event.error_code }
        })
        const refused_model = check === "model" ? event.model : null
        return { ...event, refusal, meter: ownLimitOf(check), refused_model }
      }),
      next_cursor: page.next_cursor
    }
  })

  return HeldKeys.of({
    show,
    limits,
    models,
    requests,
    usage: Effect.fn("HeldKeys.usage")(function* ({ interval, split, ...filter }: HeldUsageQuery) {
      const { keyId } = yield* KeyHolder
      const query = { ...filter, key_id: keyId }
      const read = Effect.all({
        summary: usage.summary(query),
        buckets:
          interval === undefined
            ? Effect.succeed([])
            : series.read({ ...query, interval, ...(split !== undefined && { split }) })
      })
      return yield* oneAtATime(keyId, read.pipe(asCaller(keyId)))
    })
  })
})

const ownLimitOf = (check: string | null) => {
  const limit = check === null ? undefined : limitOfCheck(check)
  return limit === undefined || limit.isShared ? null : limit.field
}

/** Usage queries are bounded by caller, which is an operator token or a key. */
const asCaller = (keyId: string) =>
  Effect.provideService(Operator, Operator.of({ tokenId: keyId, scopes: [], ip: null, userAgent: null }))

const busy = ({ whose }: ConcurrencyLimit.ConcurrencyLimitReached): Refused<"store_unavailable"> =>
  new ControlError(
    "store_unavailable",
    whose === "caller"
      ? "The limits or the usage of this key are still being read for another request. Send one at a time."
      : "The limits and the usage of too many keys are being read. Try again shortly."
  )

const goneKey = new ControlError("not_found", "The key does not exist any more.")
const projectRows = computedRows(Schema.Struct({ name: Schema.String }))
const priceRows = computedRows(Schema.Struct({ model: Schema.String, input: Count, output: Count }))
const denialRows = computedRows(Schema.Struct({ id: Schema.String, denial: Schema.NullOr(StoredDenial) }))
