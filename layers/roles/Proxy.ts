import { Layer } from "effect"
import { IdentityVerifier } from "../../src/gateway/auth/IdentityVerifier.ts"
import { Destinations } from "../../src/gateway/forward/Destination.ts"
import { ObjectOwners } from "../../src/gateway/forward/objects/ObjectOwners.ts"
import { GovernedRequests } from "../../src/gateway/GovernedRequests.ts"
import * as EvictionWarning from "../../src/gateway/limits/EvictionWarning.ts"
import { UsageLimits } from "../../src/gateway/limits/UsageLimits.ts"
import { ProxyApp } from "../../src/gateway/ProxyApp.ts"
import { RequestGuardrails } from "../../src/gateway/RequestGuardrails.ts"
import { BodyAdmission } from "../../src/gateway/request/BodyAdmission.ts"
import { ControlState } from "../../src/gateway/snapshot/ControlState.ts"
import * as Retention from "../../src/gateway/usage/Retention.ts"
import { UsageLog } from "../../src/gateway/usage/UsageLog.ts"
import * as UsageRollup from "../../src/gateway/usage/UsageRollup.ts"
import * as UsageWriter from "../../src/gateway/usage/UsageWriter.ts"
import type { Settings } from "../Environment.ts"
import * as Observability from "../Observability.ts"
import * as ProxyListener from "../ProxyListener.ts"

/** Layers that are provided later close later. So usage records are still written after the listener has drained. */
const gateway = ProxyApp.layer.pipe(
  Layer.provide([GovernedRequests.layer, IdentityVerifier.layer]),
  Layer.provide([Destinations.layer, BodyAdmission.layer, RequestGuardrails.layer, ObjectOwners.layer, UsageLog.layer]),
  Layer.provide([UsageWriter.layer, UsageRollup.layer, EvictionWarning.layer]),
  Layer.provide([UsageLimits.layer, ControlState.layer])
)

/** The caller provides the database, Redis, the upstream, the secret vault and the settings. */
export const layer = (settings: Settings) =>
  ProxyListener.layer(
    settings.proxyAddress,
    drainTimeout(settings),
    settings.connectionLimits,
    settings.corsOrigins
  ).pipe(
    Layer.provide([gateway, Retention.layer(settings.retention)]),
    Layer.provide(Observability.minimumLevel(settings.logLevels.gateway_proxy))
  )

const drainTimeout = ({ drainSeconds }: Settings) => `${drainSeconds} seconds` as const
