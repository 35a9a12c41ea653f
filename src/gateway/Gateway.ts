import { Layer } from "effect"
import { IdentityVerifier } from "./auth/IdentityVerifier.ts"
import { Destinations } from "./forward/Destination.ts"
import { ObjectOwners } from "./forward/objects/ObjectOwners.ts"
import { GovernedRequests } from "./GovernedRequests.ts"
import * as LateIndexes from "./LateIndexes.ts"
import * as EvictionWarning from "./limits/EvictionWarning.ts"
import { UsageLimits } from "./limits/UsageLimits.ts"
import { ProxyApp } from "./ProxyApp.ts"
import { RequestGuardrails } from "./RequestGuardrails.ts"
import { BodyAdmission } from "./request/BodyAdmission.ts"
import { ControlState } from "./snapshot/ControlState.ts"
import { UsageLog } from "./usage/UsageLog.ts"
import * as UsageRollup from "./usage/UsageRollup.ts"
import * as UsageWriter from "./usage/UsageWriter.ts"

/**
 * The gateway without its listener. It needs the doors `Database`, `Redis`, `Upstream` and `Egress`, the vault, and the
 * settings of the process. Layers that are provided later close later, so that usage records are still written after
 * the last request.
 */
export const layer = ProxyApp.layer.pipe(
  Layer.provide([GovernedRequests.layer, IdentityVerifier.layer]),
  Layer.provide([Destinations.layer, BodyAdmission.layer, RequestGuardrails.layer, ObjectOwners.layer, UsageLog.layer]),
  Layer.provide([UsageWriter.layer, UsageRollup.layer, LateIndexes.layer, EvictionWarning.layer]),
  Layer.provide([UsageLimits.layer, ControlState.layer])
)
