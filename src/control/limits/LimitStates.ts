import { Array as Arr, Context, DateTime, Effect, Layer } from "effect"
import { layerName, type PolicyLayer } from "../../policy/PolicyLayer.ts"
import { Database } from "../../services/Database.ts"
import type { Redis, RedisError } from "../../services/Redis.ts"
import * as CounterReadings from "../../state/limits/CounterReadings.ts"
import * as Meters from "../../state/limits/Meters.ts"
import { RestoredCounters } from "../../state/limits/RestoredCounters.ts"
import { ownerOf } from "../../state/StoredKeys.ts"
import type { KeysQuery, ListedKey } from "../api/keys/KeysApi.ts"
import type { LimitScopeName, LimitState, LimitStatePage, LimitStateQuery } from "../api/limits/LimitsApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { isId, type SortedCursor } from "../api/schema/Fields.ts"
import { Keys } from "../keys/Keys.ts"
import * as PolicyState from "../policies/PolicyState.ts"
import type { Page } from "../store/Paging.ts"
import { type StoreFailure, toStoreFailures } from "../store/Rows.ts"
import * as BindingLimits from "./BindingLimits.ts"
import * as LimitedKeys from "./LimitedKeys.ts"
import { byNearness, type NamedLimits, toLimitState } from "./ShownLimits.ts"

type Failure = Refused<"not_found"> | StoreFailure

interface StatePage {
  readonly page: LimitStatePage
  readonly next: SortedCursor | undefined
}

/** Shows how far limits are used. Reads the counters that admit requests, by their names and in bounded batches. */
export class LimitStates extends Context.Service<
  LimitStates,
  {
    readonly read: (query: LimitStateQuery) => Effect.Effect<StatePage, Failure>
    /** A page of keys, without those that are far from their limits. It looks at as many keys as `limit` says. */
    readonly keysNearLimit: (
      query: Omit<KeysQuery, "near_limit">
    ) => Effect.Effect<Page<ListedKey, SortedCursor>, StoreFailure>
    /** All limits that a request of the key may meet, the nearest to its maximum first. */
    readonly ofKey: (id: string) => Effect.Effect<ReadonlyArray<LimitState>, Failure>
  }
>()("svc/control/LimitStates") {
  static readonly layer = Layer.suspend(() => Layer.effect(LimitStates, make))
}

const defaultLimit = 100

/**
 * A counter begins with the first request after its limit was set. So many counters of the keys of a page are restored
 * until then: more would take the list too long.
 */
const mostRestored = 10

/** A key is near a limit from this share on. */
const nearShare = 0.8

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const allKeys = yield* Keys
  const keys = LimitedKeys.make(sql)
  const policies = PolicyState.make(sql)
  const { restore } = yield* RestoredCounters
  const context = yield* Effect.context<Redis>()

  /** Reads the counters, and restores at most `most` of the lost ones from the usage records. */
  const statesOf = Effect.fnUntraced(function* (limits: ReadonlyArray<NamedLimits>, most: number) {
    const now = yield* DateTime.now
    const millis = DateTime.toEpochMillis(now)
    const counting = limits.filter(({ scope }) => scope.meters.length > 0)
    const readings = yield* CounterReadings.read(
      counting.map(({ scope }) => scope),
      millis
    ).pipe(Effect.provide(context), orUnavailable)
    const lost = readings.filter(({ known }) => !known).slice(0, most)
    const restored = lost.length === 0 ? new Map<string, number>() : yield* restore(lost)
    const owners = counting.flatMap((one) => one.scope.meters.map(() => one))
    return Arr.zipWith(owners, readings, (owner, reading) =>
      toLimitState(owner, reading, restored.get(reading.meter.key), millis)
    ).sort(byNearness)
  })

  const shared = (layers: ReadonlyArray<PolicyLayer>, now: DateTime.Utc) =>
    Effect.map(keys.ownersOf(layers), (ownersOf) =>
      layers.flatMap((layer) =>
        BindingLimits.ofLayer(layer, now).map((limits): NamedLimits => {
          const owners = ownersOf(layer)
          return { ...limits, name: shownName(layerName(layer), owners), owners }
        })
      )
    )

  const ofKey = Effect.fn("LimitStates.ofKey")(function* (id: string) {
    const found = yield* keys.find(id)
    if (found === undefined) return yield* new ControlError("not_found", "No key has this id.", { param: "id" })
    const owners = yield* policies.layersForOwners([ownerOf(found.key)])
    const layers = LimitedKeys.withNarrowing(owners, yield* keys.narrowingLayers)
    const limits = BindingLimits.ofKeyAndLayers(layers, found.key, yield* DateTime.now)
    const ownersOf = yield* keys.ownersOf(Object.values(owners.of).flatMap((of) => [...of.values()]))
    return yield* statesOf(
      limits.map((one) => {
        const { layer, owner } = one.scope.scope
        if (layer === undefined || owner._tag === "Key") return { ...one, name: found.name, owners: found.owners }
        const ofLayer = ownersOf(owner)
        return { ...one, name: shownName(layer, ofLayer), owners: ofLayer }
      }),
      Number.POSITIVE_INFINITY
    )
  }, toStoreFailures)

  const ofLayer = Effect.fnUntraced(function* (id: string) {
    const layer = yield* keys.layer(id)
    if (layer === undefined)
      return yield* new ControlError("not_found", "No policy layer has this id.", { param: "id" })
    return yield* statesOf(yield* shared([layer], yield* DateTime.now), Number.POSITIVE_INFINITY)
  })

  const ofGlobalLayer = Effect.fnUntraced(function* () {
    const layers = yield* keys.layerOf("global", null)
    return yield* statesOf(yield* shared(layers, yield* DateTime.now), Number.POSITIVE_INFINITY)
  })

  const sharedOf = ({ id = "", scope }: LimitStateQuery) =>
    scope === "project" || scope === "team" ? keys.layerOf(scope, id) : keys.sharingLayers

  /** Reads the limits of a page of keys. The first page begins with the limits that layers share. */
  const ofManyKeys = Effect.fnUntraced(function* (query: LimitStateQuery) {
    const { cursor, id = "", limit = defaultLimit, scope } = query
    const now = yield* DateTime.now
    const filter = { ...(scope === "project" && { project_id: id }), ...(scope === "team" && { team_id: id }) }
    const since = new Date(Meters.windowAt("month", now).startsAt)
    const { next, rows } = yield* keys.page(filter, since, cursor)
    const layers = yield* policies.layersForOwners(rows.map(({ key }) => ownerOf(key)))
    const ofLayers = cursor === undefined ? yield* shared(yield* sharedOf(query), now) : []
    const ofKeys = rows.map(({ key, name, owners }) => ({ ...BindingLimits.ofKey(layers, key, now), name, owners }))
    const ofAllLayers = yield* statesOf(ofLayers, scope === "all" ? 0 : Number.POSITIVE_INFINITY)
    const states = [...ofAllLayers, ...(yield* statesOf(ofKeys, mostRestored))].sort(byNearness)
    const oldest = rows.at(-1)?.lastUsedAt
    const page: LimitStatePage = {
      limits: states.slice(0, limit),
      keys_looked_at: rows.length,
      looked_back_to: oldest ? DateTime.fromDateUnsafe(oldest) : null,
      left_out: Math.max(0, states.length - limit)
    }
    return { page, next }
  })

  /** Returns the ids of the keys that have used most of a limit of a day or month. */
  const nearLimit = Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
    const found = yield* keys.findAll(ids)
    const now = yield* DateTime.now
    const layers = yield* policies.layersForOwners(found.map(({ key }) => ownerOf(key)))
    const limits = found.map(({ key, name, owners }) => ({ ...BindingLimits.ofKey(layers, key, now), name, owners }))
    const near = (yield* statesOf(limits, 0)).filter(
      ({ share, window }) => window !== "minute" && share !== null && share >= nearShare
    )
    return new Set(near.map(({ scope_id }) => scope_id))
  })

  const onOnePage = { key: ofKey, layer: ofLayer, global: ofGlobalLayer }

  return LimitStates.of({
    ofKey,
    keysNearLimit: Effect.fn("LimitStates.keysNearLimit")(function* (query) {
      const page = yield* allKeys.list({ limit: defaultLimit, ...query })
      const near = yield* nearLimit(page.rows.map(({ id }) => id))
      return { ...page, rows: page.rows.filter(({ id }) => near.has(id)) }
    }, toStoreFailures),
    read: Effect.fn("LimitStates.read")(function* (query) {
      yield* checkQuery(query)
      const { id = "", scope } = query
      if (!isOnOnePage(scope)) return yield* ofManyKeys(query)
      return wholePage(yield* onOnePage[scope](id), query.limit ?? defaultLimit, scope)
    }, toStoreFailures)
  })
})

/** People know a project by its name, and the name of its layer has the id. Of all layers, only those of projects have one. */
const shownName = (layer: string, { project_name }: LimitedKeys.Owners): string =>
  project_name === null ? layer : `project:${project_name}`

/** The limits of these scopes are few. */
const isOnOnePage = (scope: LimitScopeName) => scope === "key" || scope === "layer" || scope === "global"

const wholePage = (states: ReadonlyArray<LimitState>, limit: number, scope: LimitScopeName): StatePage => ({
  page: {
    limits: states.slice(0, limit),
    keys_looked_at: scope === "key" ? 1 : 0,
    looked_back_to: null,
    left_out: Math.max(0, states.length - limit)
  },
  next: undefined
})

const checkQuery = ({ cursor, id, scope }: LimitStateQuery): Effect.Effect<void, Refused<"invalid_request">> => {
  const isOfAll = scope === "all" || scope === "global"
  if (isOfAll ? id !== undefined : id === undefined) {
    return invalid("id", isOfAll ? `must be left out with scope ${scope}` : `is required with scope ${scope}`)
  }
  if (!isOfAll && scope !== "team" && !isId(id)) return invalid("id", `must be the id (UUID) of a ${scope}`)
  if (cursor !== undefined && isOnOnePage(scope)) {
    return invalid("cursor", `must be left out with scope ${scope}, which has one page`)
  }
  return Effect.void
}

const invalid = (param: string, violation: string) =>
  Effect.fail(new ControlError("invalid_request", `${param} ${violation}.`, { param }))

const orUnavailable = <A, R>(work: Effect.Effect<A, RedisError, R>) =>
  Effect.mapError(
    work,
    () => new ControlError("store_unavailable", "Redis, which counts the limits, is unavailable; try again later.")
  )
