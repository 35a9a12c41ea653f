import { Effect, Schema } from "effect"
import { Database } from "../services/Database.ts"
import {
  missing as missingCredential,
  open as openCredential,
  originOf,
  type StoredCredential,
  sentTo
} from "../state/StoredCredential.ts"
import type { Columns, RowReader, Table } from "../state/StoredRows.ts"
import type { RouteConfig } from "./routes/CanonicalRoute.ts"
import {
  CostMode,
  defaultRoutePattern,
  Endpoint,
  EndpointPricingRule,
  missingRuntimeFields,
  PricingRule,
  type RuntimeField,
  refusedRoutePattern,
  ServiceMethod,
  serviceNamePattern
} from "./routes/Service.ts"
import * as ServicePricing from "./ServicePricing.ts"

/** A registered service as the request path needs it. */
export interface Service {
  readonly name: string
  /** `X/*` stands for `X` and everything below it; any other pattern for itself. */
  readonly pattern: string
  readonly enabled: boolean
  /** Upper case. */
  readonly methods: ReadonlyArray<string>
  /** Scheme, host and port. */
  readonly origin: string | undefined
  readonly credential: StoredCredential
  readonly config: RouteConfig
  readonly pricing: ServicePricing.Pricing
}

/** All of them, found by name and by path in time that does not grow with their number. */
export interface ServiceTable {
  readonly byName: ReadonlyMap<string, Service>
  /** Several of one pattern differ in their methods; the first by name that has the method answers. */
  readonly byPattern: ReadonlyMap<string, ReadonlyArray<Service>>
}

export const of = (services: ReadonlyArray<Service>): ServiceTable => {
  const inOrder = services.toSorted((a, b) => (a.name < b.name ? -1 : 1))
  return {
    byName: new Map(inOrder.map((service) => [service.name, service])),
    byPattern: Map.groupBy(inOrder, ({ pattern }) => pattern)
  }
}

/**
 * The service whose pattern fits a canonical path, the longest pattern first (reference §1.1), of two as long (`/a/b`
 * and `/a/*`) the exact one. One that does not have the method is passed over.
 */
export const match = ({ byPattern }: ServiceTable, method: string, path: string): Service | undefined => {
  if (byPattern.size === 0) return undefined
  const of = (pattern: string) => byPattern.get(pattern)?.find(({ methods }) => methods.includes(method))
  const exact = of(`${path}/*`) ?? of(path)
  if (exact !== undefined) return exact
  for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1)) {
    const found = of(`${path.slice(0, end)}/*`)
    if (found !== undefined) return found
  }
  return undefined
}

/** What keeps a service from being called. A credential that cannot be read is there: that is told when it is used. */
export const missing = ({ credential, origin }: Service): ReadonlyArray<RuntimeField> =>
  missingRuntimeFields({ upstream: origin !== undefined, credential: credential._tag !== "Missing" })

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
        // a service may answer as much as it likes; only a policy says how much (reference §1.2)
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
