import type { Endpoint, Service } from "./service.tsx"

export type Price = Service["endpoint_pricing_rules"][number]

export interface Row extends Endpoint {
  /** A price of its own. Without one, the endpoint has that of the service. */
  readonly price: Price | undefined
  /** The document of the service no longer has the endpoint. */
  readonly isStale: boolean
}

type Named = Pick<Endpoint, "method" | "path_template">

export const nameOf = ({ method, path_template }: Named): string => `${method} ${path_template}`

/** Says whether both are the same endpoint. The names of parameters do not make it another one. */
export const isSame = (one: Named, other: Named): boolean => shapeOf(one) === shapeOf(other)

const shapeOf = (endpoint: Named): string => nameOf(endpoint).replace(/\{[^{}]*\}/g, "{}")

/** The endpoints of the document, and below them those that it no longer has but that still have a price. */
export const rowsOf = ({
  endpoint_pricing_rules: prices,
  openapi_endpoints: endpoints
}: Pick<Service, "endpoint_pricing_rules" | "openapi_endpoints">): ReadonlyArray<Row> => {
  const priceOf = new Map(prices.map((price) => [shapeOf(price), price]))
  const known = new Set(endpoints.map(shapeOf))
  return [
    ...endpoints.map((endpoint) => ({ ...endpoint, price: priceOf.get(shapeOf(endpoint)), isStale: false })),
    ...prices
      .filter((price) => !known.has(shapeOf(price)))
      .map((price) => ({ ...price, summary: null, svc_default: false, price, isStale: true }))
  ]
}
