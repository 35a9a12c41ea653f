import type { RouteConfig } from "./routes/CanonicalRoute.ts"
import { missingRuntimeFields, type RuntimeField } from "./routes/Service.ts"
import type { StoredCredential } from "./routes/StoredCredential.ts"
import type * as ServicePricing from "./ServicePricing.ts"

/** A registered service as the request path needs it. */
export interface RegisteredService {
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
  readonly byName: ReadonlyMap<string, RegisteredService>
  /** Several of one pattern differ in their methods; the first by name that has the method answers. */
  readonly byPattern: ReadonlyMap<string, ReadonlyArray<RegisteredService>>
}

export const of = (services: ReadonlyArray<RegisteredService>): ServiceTable => {
  const inOrder = services.toSorted((a, b) => (a.name < b.name ? -1 : 1))
  return {
    byName: new Map(inOrder.map((service) => [service.name, service])),
    byPattern: Map.groupBy(inOrder, ({ pattern }) => pattern)
  }
}

/**
 * The service whose pattern fits a canonical path, the longest pattern first, of two as long (`/a/b`
 * and `/a/*`) the exact one. One that does not have the method is passed over.
 */
export const match = ({ byPattern }: ServiceTable, method: string, path: string): RegisteredService | undefined => {
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
export const missingFields = ({ credential, origin }: RegisteredService): ReadonlyArray<RuntimeField> =>
  missingRuntimeFields({ upstream: origin !== undefined, credential: credential._tag !== "Missing" })
