import type { RouteConfig } from "./routes/CanonicalRoute.ts"
import { missingRuntimeFields, type RuntimeField } from "./routes/Service.ts"
import type { StoredCredential } from "./routes/StoredCredential.ts"
import type * as ServicePricing from "./ServicePricing.ts"

export interface RegisteredService {
  readonly name: string
  /** `/x/*` matches `/x` and every path below. A pattern without `/*` matches one path. */
  readonly pattern: string
  readonly enabled: boolean
  readonly methods: ReadonlyArray<string>
  readonly origin: string | undefined
  readonly credential: StoredCredential
  readonly config: RouteConfig
  readonly pricing: ServicePricing.Pricing
}

export interface ServiceTable {
  readonly byName: ReadonlyMap<string, RegisteredService>
  /** Services may share a pattern if their methods differ. The services of a pattern are sorted by name. */
  readonly byPattern: ReadonlyMap<string, ReadonlyArray<RegisteredService>>
}

export const of = (services: ReadonlyArray<RegisteredService>): ServiceTable => {
  const inOrder = services.toSorted((a, b) => (a.name < b.name ? -1 : 1))
  return {
    byName: new Map(inOrder.map((service) => [service.name, service])),
    byPattern: Map.groupBy(inOrder, ({ pattern }) => pattern)
  }
}

/** Finds the longest pattern with a service that accepts the method. For `/x`, the pattern `/x/*` wins over `/x`. */
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

/** A credential that cannot be decrypted does not count as missing. The request then fails with a separate error. */
export const missingFields = ({ credential, origin }: RegisteredService): ReadonlyArray<RuntimeField> =>
  missingRuntimeFields({ upstream: origin !== undefined, credential: credential._tag !== "Missing" })
