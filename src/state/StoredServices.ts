import { Effect, Schema } from "effect"
import {
  CostMode,
  defaultRoutePattern,
  Endpoint,
  EndpointPricingRule,
  PricingRule,
  refusedRoutePattern,
  ServiceMethod,
  serviceNamePattern
} from "../policy/routes/Service.ts"
import { missing as missingCredential, originOf, sentTo } from "../policy/routes/StoredCredential.ts"
import * as ServicePricing from "../policy/ServicePricing.ts"
import { of, type Service } from "../policy/ServiceTable.ts"
import { Database } from "../services/Database.ts"
import { open as openCredential } from "./SealedCredential.ts"
import type { Columns, RowReader, Table } from "./StoredRows.ts"

const ServiceRow = Schema.Struct({
  name: Schema.String,
  route_pattern: Schema.String,
  upstream_base_url: Schema.NullOr(Schema.String),
  sealed_credential: Schema.NullOr(Schema.String),
  credential_origin: Schema.NullOr(Schema.String),
  enabled: Schema.Boolean,
  allowed_methods: Schema.Array(ServiceMethod),
  timeout_ms: Schema.Int,
  max_body_bytes: Schema.Int,
  cost_mode: CostMode,
  estimated_cost_usd: Schema.NullOr(Schema.Finite),
  pricing_rules: Schema.Array(PricingRule),
  openapi_endpoints: Schema.Array(Endpoint),
  endpoint_pricing_rules: Schema.Array(EndpointPricingRule)
})
const decodeRow = Schema.decodeUnknownSync(ServiceRow)

/** A registered service whose credential is still sealed. */
interface Registered {
  readonly service: Service
  readonly sealed: string | null
  readonly credentialOrigin: string | null
}

const registered = (columns: object): Registered => {
  const row = decodeRow(columns)
  return {
    service: {
      name: row.name,
      pattern: row.route_pattern,
      enabled: row.enabled,
      methods: row.allowed_methods,
      origin: row.upstream_base_url === null ? undefined : originOf(row.upstream_base_url),
      credential: missingCredential,
      config: {
        enabled: row.enabled,
        mode: "managed_by_gateway",
        timeoutMs: row.timeout_ms,
        maxRequestBodyBytes: row.max_body_bytes,
        // a service may answer as much as it likes; only a policy says how much
        maxResponseBodyBytes: Number.POSITIVE_INFINITY,
        limitsStreams: false,
        limitsSetBy: "the service",
        ownership: "shared"
      },
      pricing: ServicePricing.of(row)
    },
    sealed: row.sealed_credential,
    credentialOrigin: row.credential_origin
  }
}

/**
 * A service that cannot be decoded is disabled, and keeps its paths: without it the wildcard could take them, where
 * neither its policy nor its price hold.
 */
const unreadable = ({ name, route_pattern }: Columns): Registered | undefined => {
  if (typeof name !== "string" || !serviceNamePattern.test(name)) return undefined
  return {
    service: {
      name,
      pattern: typeof route_pattern === "string" ? route_pattern : defaultRoutePattern(name),
      enabled: false,
      methods: ServiceMethod.literals,
      origin: undefined,
      credential: missingCredential,
      config: {
        enabled: false,
        mode: "managed_by_gateway",
        timeoutMs: 1,
        maxRequestBodyBytes: 0,
        maxResponseBodyBytes: 0,
        limitsStreams: true,
        limitsSetBy: "the service",
        ownership: "shared"
      },
      pricing: ServicePricing.free
    },
    sealed: null,
    credentialOrigin: null
  }
}

const table: Table<Registered> = {
  name: "service_registrations",
  key: ["name"],
  decode: registered,
  substitute: unreadable
}

/** As the registry stands now. */
export const load = Effect.fnUntraced(function* (reader: RowReader) {
  const { sql } = yield* Database
  const rows =
    yield* sql<Columns>`SELECT name, route_pattern, upstream_base_url, sealed_credential, credential_origin, enabled,
    allowed_methods, timeout_ms, max_body_bytes, cost_mode, estimated_cost_usd, pricing_rules, openapi_endpoints,
    endpoint_pricing_rules FROM service_registrations`
  return of(yield* Effect.forEach(reader.read(table, rows), opened))
})

const opened = Effect.fnUntraced(function* ({ credentialOrigin, sealed, service }: Registered) {
  const secret = yield* openCredential(sealed, `service_registrations/${service.name}`)
  const complete: Service = {
    ...service,
    pattern: yield* patternOf(service),
    credential: service.origin === undefined ? secret : sentTo(service.origin, { secret, origin: credentialOrigin })
  }
  return complete
})

/**
 * A row may be older than a rule about patterns, or nobody's who knows them: what could not be saved today takes no
 * path from anybody, and the service is where it always is.
 */
const patternOf = Effect.fnUntraced(function* ({ name, pattern }: Service) {
  const refusal = refusedRoutePattern(pattern)
  if (refusal === undefined) return pattern
  const instead = defaultRoutePattern(name)
  yield* Effect.logWarning("a service's route_pattern is not in force", { service: name, why: refusal, instead })
  return instead
})
