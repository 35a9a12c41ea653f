import { Option } from "effect"
import * as FrontDoor from "../../src/gateway/identity/FrontDoor.ts"
import { canonicalRoutes, type RouteConfig } from "../../src/gateway/model/CanonicalRoute.ts"
import { off } from "../../src/gateway/model/FrontDoor.ts"
import * as ServiceTable from "../../src/gateway/ServiceTable.ts"
import type { Snapshot } from "../../src/gateway/Snapshot.ts"
import { missing } from "../../src/gateway/StoredCredential.ts"

/** Reference §1.2. */
export const seeded: RouteConfig = {
  enabled: true,
  mode: "managed_by_gateway",
  timeoutMs: 120_000,
  maxRequestBodyBytes: 1_048_576,
  maxResponseBodyBytes: 1_048_576
}

/** What a gateway knows of a database on which no operator decided anything, with `config` for all of its routes. */
export const seededWith = (config: Partial<RouteConfig> = {}): Snapshot => ({
  epoch: 1,
  routes: new Map(canonicalRoutes.map(({ id }) => [id, { ...seeded, ...config }])),
  provider: Option.none(),
  prices: new Map(),
  services: ServiceTable.empty,
  frontDoor: FrontDoor.of(off, missing)
})
