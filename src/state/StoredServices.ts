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
import { credentialFor, missing as missingCredential, originOf } from "../policy/routes/StoredCredential.ts"
import * as ServicePricing from "../policy/ServicePricing.ts"
import { of, type RegisteredService } from "../policy/ServiceTable.ts"
import { Database } from "../services/Database.ts"
import { open as openCredential } from "./SealedCredential.ts"
import type { RowColumns, RowReader, TableReader } from "./StoredRows.ts"

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

interface SealedService {
  readonly service: RegisteredService
  readonly sealed: string | null
  readonly credentialOrigin: string | null
}

const decodeService = (columns: object): SealedService => {
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
        // Services have no setting for the response size. Only policies limit it.
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

/** Keeps the paths of an unreadable service closed. Passthrough would otherwise serve them without policy and price. */
const disabledSubstitute = ({ name, route_pattern }: RowColumns): SealedService | undefined => {
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
      pricing: ServicePricing.freePricing
    },
    sealed: null,
    credentialOrigin: null
  }
}

const table: TableReader<SealedService> = {
  name: "service_registrations",
  key: ["name"],
  decode: decodeService,
  substitute: disabledSubstitute
}

export const load = Effect.fnUntraced(function* (reader: RowReader) {
  const { sql } = yield* Database
  const rows =
    yield* sql<RowColumns>`SELECT name, route_pattern, upstream_base_url, sealed_credential, credential_origin, enabled,
    allowed_methods, timeout_ms, max_body_bytes, cost_mode, estimated_cost_usd, pricing_rules, openapi_endpoints,
    endpoint_pricing_rules FROM service_registrations`
  return of(yield* Effect.forEach(reader.read(table, rows), openService))
})

const openService = Effect.fnUntraced(function* ({ credentialOrigin, sealed, service }: SealedService) {
  const secret = yield* openCredential(sealed, `service_registrations/${service.name}`)
  const complete: RegisteredService = {
    ...service,
    pattern: yield* patternOf(service),
    credential:
      service.origin === undefined ? secret : credentialFor(service.origin, { secret, origin: credentialOrigin })
  }
  return complete
})

/** An older version may have stored a route pattern that a newer rule forbids. Such a service uses its default path. */
const patternOf = Effect.fnUntraced(function* ({ name, pattern }: RegisteredService) {
  const refusal = refusedRoutePattern(pattern)
  if (refusal === undefined) return pattern
  const instead = defaultRoutePattern(name)
  yield* Effect.logWarning("a service's route_pattern is invalid; the service uses its default path", {
    service: name,
    why: refusal,
    instead
  })
  return instead
})
