import { Effect, Option, Schema } from "effect"
import * as Definitions from "../guardrails/Definitions.ts"
import { Database } from "../services/Database.ts"
import * as FrontDoor from "./identity/FrontDoor.ts"
import { type RouteConfig, RouteId, RouteMode } from "./model/CanonicalRoute.ts"
import { readEpoch } from "./model/Changes.ts"
import { type CredentialStyle, styleColumns, styleOf } from "./model/CredentialStyle.ts"
import { defaults, Passthrough } from "./model/Passthrough.ts"
import * as PolicyLayer from "./model/PolicyLayer.ts"
import type { ModelPrice } from "./model/Price.ts"
import * as ServiceTable from "./model/ServiceTable.ts"
import { open as openCredential, type StoredCredential } from "./model/StoredCredential.ts"

/** The enabled `upstream` provider row. */
export interface UpstreamProvider {
  readonly origin: string
  readonly style: CredentialStyle
  readonly credential: StoredCredential
}

/** Everything an operator decided, except about single keys: replaced whole, never changed. */
export interface Snapshot {
  readonly epoch: number
  readonly routes: ReadonlyMap<RouteId, RouteConfig>
  readonly provider: Option.Option<UpstreamProvider>
  readonly prices: ReadonlyMap<string, ModelPrice>
  readonly services: ServiceTable.ServiceTable
  readonly frontDoor: FrontDoor.FrontDoor
  readonly passthrough: Passthrough
  readonly layers: PolicyLayer.PolicyLayers
  readonly guardrails: Definitions.Definitions
}

const RouteRow = Schema.Struct({
  route_id: RouteId,
  enabled: Schema.Boolean,
  mode: RouteMode,
  timeout_ms: Schema.Int,
  max_request_body_bytes: Schema.Int,
  max_response_body_bytes: Schema.Int
})

const ProviderRow = Schema.Struct({
  id: Schema.String,
  base_url: Schema.String,
  sealed_credential: Schema.NullOr(Schema.String),
  ...styleColumns
})

const PriceRow = Schema.Struct({
  model: Schema.String,
  input: Schema.FiniteFromString,
  output: Schema.FiniteFromString,
  cached_input: Schema.NullOr(Schema.FiniteFromString),
  cache_write: Schema.NullOr(Schema.FiniteFromString)
})

const decodeRoutes = Schema.decodeUnknownEffect(Schema.Array(RouteRow))
const decodeProviders = Schema.decodeUnknownEffect(Schema.Array(ProviderRow))
const decodeLayers = Schema.decodeUnknownEffect(Schema.Array(PolicyLayer.LayerRow))
const decodePrices = Schema.decodeUnknownEffect(Schema.Array(PriceRow))
const decodePassthrough = Schema.decodeUnknownEffect(Schema.Array(Passthrough))

/** Reads the epoch first: a change that commits meanwhile raises it, and is loaded again. */
export const load = Effect.gen(function* () {
  const { sql } = yield* Database
  const epoch = yield* readEpoch
  const routes = yield* Effect.flatMap(
    sql`SELECT route_id, enabled, mode, timeout_ms, max_request_body_bytes, max_response_body_bytes FROM canonical_routes`,
    decodeRoutes
  )
  const [provider] = yield* Effect.flatMap(
    sql`SELECT id::text AS id, base_url, sealed_credential, credential_header_mode, credential_header_name,
      credential_header_value_format FROM provider_configs WHERE provider = 'upstream' AND enabled`,
    decodeProviders
  )
  const prices = yield* Effect.flatMap(
    sql`SELECT model, input_nanos_per_million::text AS input, output_nanos_per_million::text AS output,
      cached_input_nanos_per_million::text AS cached_input, cache_write_nanos_per_million::text AS cache_write
      FROM model_prices`,
    decodePrices
  )
  const [passthrough] = yield* Effect.flatMap(
    sql`SELECT enabled, allowed_paths, allowed_methods, ui_exposure, admin_api_exposure, timeout_ms,
      max_request_body_bytes, max_response_body_bytes FROM upstream_passthrough_settings`,
    decodePassthrough
  )
  const layers = yield* Effect.flatMap(
    sql`SELECT layer_kind, scope_id, policy, guardrail_policy, policy_version::text AS policy_version FROM policy_layers`,
    decodeLayers
  )
  const snapshot: Snapshot = {
    epoch,
    routes: new Map(
      routes.map((row) => [
        row.route_id,
        {
          enabled: row.enabled,
          mode: row.mode,
          timeoutMs: row.timeout_ms,
          maxRequestBodyBytes: row.max_request_body_bytes,
          maxResponseBodyBytes: row.max_response_body_bytes
        }
      ])
    ),
    provider: provider === undefined ? Option.none() : Option.some(yield* upstreamProvider(provider)),
    prices: new Map(
      prices.map(({ cache_write, cached_input, input, model, output }) => [
        model,
        { input, output, cachedInput: cached_input, cacheWrite: cache_write }
      ])
    ),
    services: yield* ServiceTable.load,
    frontDoor: yield* FrontDoor.load,
    passthrough: passthrough ?? defaults,
    layers: PolicyLayer.indexed(layers.map(PolicyLayer.fromRow)),
    guardrails: yield* Definitions.load
  }
  return snapshot
})

const upstreamProvider = Effect.fnUntraced(function* (row: typeof ProviderRow.Type) {
  const provider: UpstreamProvider = {
    origin: new URL(row.base_url).origin,
    style: styleOf(row),
    credential: yield* openCredential(row.sealed_credential, `provider_configs/${row.id}`)
  }
  return provider
})
