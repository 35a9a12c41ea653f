import { Effect, Schema } from "effect"
import * as Definitions from "../../guardrails/Definitions.ts"
import * as PolicyLayer from "../../policy/PolicyLayer.ts"
import type { ModelPrice } from "../../policy/Price.ts"
import { PriceList } from "../../policy/PriceList.ts"
import type { RouteConfig, RouteId } from "../../policy/routes/CanonicalRoute.ts"
import { defaults, Passthrough } from "../../policy/routes/Passthrough.ts"
import type { ProviderUpstreams } from "../../policy/routes/UpstreamChoice.ts"
import type * as ServiceTable from "../../policy/ServiceTable.ts"
import { Database } from "../../services/Database.ts"
import * as BodyHashKey from "../../state/BodyHashKey.ts"
import { readEpoch } from "../../state/Changes.ts"
import * as StoredLayers from "../../state/StoredLayers.ts"
import * as StoredProviders from "../../state/StoredProviders.ts"
import * as StoredRoutes from "../../state/StoredRoutes.ts"
import { type RowColumns, RowReader, type TableReader, type UnreadableRow } from "../../state/StoredRows.ts"
import * as StoredServices from "../../state/StoredServices.ts"
import * as CallerAuth from "../auth/CallerAuth.ts"

/** The operators' configuration without the keys. It is immutable: a change replaces the whole snapshot. */
export interface Snapshot {
  readonly epoch: number
  readonly routes: ReadonlyMap<RouteId, RouteConfig>
  readonly providers: ProviderUpstreams
  readonly prices: PriceList
  readonly services: ServiceTable.ServiceTable
  readonly callerAuth: CallerAuth.CallerAuth
  readonly passthrough: Passthrough
  readonly layers: PolicyLayer.PolicyLayers
  readonly guardrails: Definitions.GuardrailCatalogue
  readonly bodyHashKey: BodyHashKey.BodyHashKey
  /** Rows that this version cannot decode. Each disables only what it configures. */
  readonly unreadableRows: ReadonlyArray<UnreadableRow>
}

const PriceRow = Schema.Struct({
  model: Schema.String,
  input: Schema.FiniteFromString,
  output: Schema.FiniteFromString,
  cached_input: Schema.NullOr(Schema.FiniteFromString),
  cache_write: Schema.NullOr(Schema.FiniteFromString)
})

const decodePrice = Schema.decodeUnknownSync(PriceRow)

const priceTable: TableReader<readonly [string, ModelPrice]> = {
  name: "model_prices",
  key: ["model"],
  decode: (columns) => {
    const { cache_write, cached_input, input, model, output } = decodePrice(columns)
    return [model, { input, output, cachedInput: cached_input, cacheWrite: cache_write }]
  }
}

/** If the settings cannot be decoded, the defaults apply. The defaults refuse all passthrough requests. */
const passthroughTable: TableReader<Passthrough> = {
  name: "upstream_passthrough_settings",
  key: [],
  decode: Schema.decodeUnknownSync(Passthrough),
  substitute: () => defaults
}

/** Reads the epoch first. A change committed during the load then has a higher epoch and causes another load. */
export const load = Effect.gen(function* () {
  const { sql } = yield* Database
  const reader = new RowReader()
  const epoch = yield* readEpoch
  const routes = yield* StoredRoutes.load(reader)
  const prices =
    yield* sql<RowColumns>`SELECT model, input_nanos_per_million::text AS input, output_nanos_per_million::text AS output,
      cached_input_nanos_per_million::text AS cached_input, cache_write_nanos_per_million::text AS cache_write
      FROM model_prices`
  const wildcards =
    yield* sql<RowColumns>`SELECT enabled, allowed_paths, allowed_methods, ui_exposure, admin_api_exposure, guardrails,
      body_policies, ownership, timeout_ms, max_request_body_bytes, max_response_body_bytes, limits_streams
      FROM upstream_passthrough_settings`
  const layers = yield* sql<RowColumns>`SELECT ${sql.literal(StoredLayers.columns)} FROM policy_layers WHERE enabled`
  const [passthrough = defaults] = reader.read(passthroughTable, wildcards)
  const snapshot: Snapshot = {
    epoch,
    routes,
    providers: yield* StoredProviders.load(reader),
    prices: new PriceList(reader.read(priceTable, prices)),
    services: yield* StoredServices.load(reader),
    callerAuth: yield* CallerAuth.load(reader),
    passthrough,
    layers: PolicyLayer.indexLayers(reader.read(StoredLayers.table, layers)),
    guardrails: yield* Definitions.load(reader),
    bodyHashKey: yield* BodyHashKey.load,
    unreadableRows: reader.unreadable
  }
  return snapshot
}).pipe(Effect.withSpan("Snapshot.load"))
