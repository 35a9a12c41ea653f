import { Redacted, Result } from "effect"
import * as FrontDoor from "../../src/gateway/identity/FrontDoor.ts"
import { canonicalRoutes, type RouteConfig } from "../../src/gateway/model/CanonicalRoute.ts"
import { off } from "../../src/gateway/model/FrontDoor.ts"
import { defaults } from "../../src/gateway/model/Passthrough.ts"
import * as PolicyLayer from "../../src/gateway/model/PolicyLayer.ts"
import { PriceList } from "../../src/gateway/model/PriceList.ts"
import * as ServiceTable from "../../src/gateway/model/ServiceTable.ts"
import { missing } from "../../src/gateway/model/StoredCredential.ts"
import type { Snapshot } from "../../src/gateway/Snapshot.ts"
import * as Target from "../../src/gateway/Target.ts"

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
export const policed = (method: string, target: string, state = seededWith()): Target.Target => {
  const found = Result.getOrThrow(Target.find(method, target, state))
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
  frontDoor: FrontDoor.of(off, missing),
  passthrough: defaults,
  layers: PolicyLayer.none,
  guardrails: new Map(),
  bodyHashKey: Redacted.make(Buffer.alloc(32)),
  unreadable: []
})
