import { Layer } from "effect"
import { BodyAdmission } from "../../src/gateway/BodyAdmission.ts"
import { ControlState } from "../../src/gateway/ControlState.ts"
import { Destinations } from "../../src/gateway/Destination.ts"
import * as EvictionWarning from "../../src/gateway/EvictionWarning.ts"
import { GovernedRequests } from "../../src/gateway/GovernedRequests.ts"
import { Guarding } from "../../src/gateway/Guarding.ts"
import { Identities } from "../../src/gateway/identity/Identities.ts"
import { Limits } from "../../src/gateway/Limits.ts"
import { ObjectOwners } from "../../src/gateway/ObjectOwners.ts"
import { ProxyApp } from "../../src/gateway/ProxyApp.ts"
import { UsageLog } from "../../src/gateway/UsageLog.ts"
import * as UsageRollup from "../../src/gateway/UsageRollup.ts"
import * as UsageWriter from "../../src/gateway/UsageWriter.ts"

/**
 * The gateway's program, with the doors, the vault and the settings left open. What is provided later closes later:
 * when the listener on top has drained, the usage records are still written.
 */
export const layer = ProxyApp.layer.pipe(
  Layer.provide([GovernedRequests.layer, Identities.layer]),
  Layer.provide([Destinations.layer, BodyAdmission.layer, Guarding.layer, ObjectOwners.layer, UsageLog.layer]),
  Layer.provide([UsageWriter.layer, UsageRollup.layer, EvictionWarning.layer]),
  Layer.provide([Limits.layer, ControlState.layer])
)
