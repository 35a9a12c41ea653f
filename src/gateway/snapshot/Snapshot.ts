import { Effect, Schema } from "effect"
import * as Definitions from "../../guardrails/Definitions.ts"
import * as PolicyLayer from "../../policy/PolicyLayer.ts"
import type { ModelPrice } from "../../policy/Price.ts"
import { PriceList } from "../../policy/PriceList.ts"
import type { RouteConfig, RouteId } from "../../policy/routes/CanonicalRoute.ts"
import { type CredentialStyle, styleColumns, styleOf } from "../../policy/routes/CredentialStyle.ts"
import { defaults, Passthrough } from "../../policy/routes/Passthrough.ts"
import type { ServedFamilies } from "../../policy/routes/StartupUpstreams.ts"
import { type BoundCredential, missing } from "../../policy/routes/StoredCredential.ts"
import * as UpstreamBase from "../../policy/routes/UpstreamBase.ts"
import { isVendor, servedFamilies, Vendor } from "../../policy/routes/Vendor.ts"
import type * as ServiceTable from "../../policy/ServiceTable.ts"
import { Database } from "../../services/Database.ts"
import * as BodyHashKey from "../../state/BodyHashKey.ts"
import { readEpoch } from "../../state/Changes.ts"
import { open as openCredential } from "../../state/SealedCredential.ts"
import * as StoredLayers from "../../state/StoredLayers.ts"
import * as StoredRoutes from "../../state/StoredRoutes.ts"
import { type RowColumns, RowReader, type TableReader, type UnreadableRow } from "../../state/StoredRows.ts"
import * as StoredServices from "../../state/StoredServices.ts"
import * as CallerAuth from "../auth/CallerAuth.ts"

interface UpstreamProvider {
  readonly name: string
  readonly base: UpstreamBase.UpstreamBase
  readonly style: CredentialStyle
  readonly credential: BoundCredential
}

/** The operators' configuration without the keys. It is immutable: a change replaces the whole snapshot. */
export interface Snapshot {
  readonly epoch: number
  readonly routes: ReadonlyMap<RouteId, RouteConfig>
  /** Families without an entry use the startup upstream. Requests of a family with an `unreadable` row are refused. */
  readonly providers: ReadonlyMap<ServedFamilies, UpstreamProvider | "unreadable">
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

const ProviderRow = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  base_url: Schema.String,
  family: Schema.NullOr(Vendor),
  sealed_credential: Schema.NullOr(Schema.String),
  credential_origin: Schema.NullOr(Schema.String),
  ...styleColumns
})

const PriceRow = Schema.Struct({
  model: Schema.String,
  input: Schema.FiniteFromString,
  output: Schema.FiniteFromString,
  cached_input: Schema.NullOr(Schema.FiniteFromString),
  cache_write: Schema.NullOr(Schema.FiniteFromString)
})

const decodeProvider = Schema.decodeUnknownSync(ProviderRow)
const decodePrice = Schema.decodeUnknownSync(PriceRow)

interface SealedProvider extends UpstreamProvider {
  readonly sealed: string | null
  readonly context: string
}

interface StoredProvider {
  readonly serves: ServedFamilies
  readonly provider: SealedProvider | "unreadable"
}

/** If a provider row cannot be decoded, its requests are refused. They must not go to another upstream. */
const providerTable: TableReader<StoredProvider> = {
  name: "provider_configs",
  key: ["id"],
  decode: (columns) => {
    const row = decodeProvider(columns)
    return {
      serves: servedFamilies(row.family),
      provider: {
        name: row.name,
        base: UpstreamBase.of(row.base_url),
        style: styleOf(row),
        credential: { secret: missing, origin: row.credential_origin },
        sealed: row.sealed_credential,
        context: `provider_configs/${row.id}`
      }
    }
  },
  // A row for an unknown family is skipped, because this version has no requests of that family.
  substitute: ({ family }) =>
    isVendor(family) || family === null ? { serves: servedFamilies(family), provider: "unreadable" } : undefined
}

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
  const providers =
    yield* sql<RowColumns>`SELECT id::text AS id, name, base_url, family, sealed_credential, credential_origin, credential_header_mode, credential_header_name,
      credential_header_value_format FROM provider_configs WHERE provider = 'upstream' AND enabled`
  const prices =
    yield* sql<RowColumns>`SELECT model, input_nanos_per_million::text AS input, output_nanos_per_million::text AS output,
      cached_input_nanos_per_million::text AS cached_input, cache_write_nanos_per_million::text AS cache_write
      FROM model_prices`
  const wildcards =
    yield* sql<RowColumns>`SELECT enabled, allowed_paths, allowed_methods, ui_exposure, admin_api_exposure, guardrails,
      body_policies, ownership, timeout_ms, max_request_body_bytes, max_response_body_bytes, limits_streams
      FROM upstream_passthrough_settings`
  const layers = yield* sql<RowColumns>`SELECT ${sql.literal(StoredLayers.columns)} FROM policy_layers WHERE enabled`
  const upstreams = new Map<ServedFamilies, UpstreamProvider | "unreadable">()
  for (const { provider, serves } of reader.read(providerTable, providers)) {
    upstreams.set(serves, provider === "unreadable" ? provider : yield* unseal(provider))
  }
  const [passthrough = defaults] = reader.read(passthroughTable, wildcards)
  const snapshot: Snapshot = {
    epoch,
    routes,
    providers: upstreams,
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

const unseal = Effect.fnUntraced(function* ({ context, sealed, ...provider }: SealedProvider) {
  const complete: UpstreamProvider = {
    ...provider,
    credential: { ...provider.credential, secret: yield* openCredential(sealed, context) }
  }
  return complete
})
