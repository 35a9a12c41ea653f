import { Redacted, Result } from "effect"
import * as CallerAuth from "../../src/gateway/auth/CallerAuth.ts"
import type { Snapshot } from "../../src/gateway/snapshot/Snapshot.ts"
import { disabledAuth } from "../../src/policy/AuthSettings.ts"
import * as PolicyLayer from "../../src/policy/PolicyLayer.ts"
import { PriceList } from "../../src/policy/PriceList.ts"
import * as Routing from "../../src/policy/Routing.ts"
import { canonicalRoutes, type RouteConfig } from "../../src/policy/routes/CanonicalRoute.ts"
import { defaults } from "../../src/policy/routes/Passthrough.ts"
import { missing } from "../../src/policy/routes/StoredCredential.ts"
import * as ServiceTable from "../../src/policy/ServiceTable.ts"

/** Reference §1.2. */
export const seeded: RouteConfig = {
  enabled: true,
  mode: "managed_by_gateway",
  timeoutMs: 120_000,
  maxRequestBodyBytes: 1_048_576,
  maxResponseBodyBytes: 1_048_576,
  limitsStreams: false,
  limitsSetBy: "the route",
  ownership: "project"
}

/** The target of a route that policies know. */
export const policed = (method: string, target: string, state = seededWith()): Routing.Target => {
  const found = Result.getOrThrow(Routing.find(method, target, state))
  if (found.routeId === "wildcard") throw new Error(`${method} ${target} went to the wildcard`)
  return found
}

/** What a gateway knows of a database on which no operator decided anything, with `config` for all of its routes. */
export const seededWith = (config: Partial<RouteConfig> = {}): Snapshot => ({
  epoch: 1,
  routes: new Map(canonicalRoutes.map(({ id }) => [id, { ...seeded, ...config }])),
  providers: new Map(),
  prices: PriceList.empty,
  services: ServiceTable.of([]),
  callerAuth: CallerAuth.of(disabledAuth, missing),
  passthrough: defaults,
  layers: PolicyLayer.indexLayers([]),
  guardrails: new Map(),
  bodyHashKey: Redacted.make(Buffer.alloc(32)),
  unreadableRows: []
})
