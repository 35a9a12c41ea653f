import { Layer } from "effect"
import * as Gateway from "../../src/gateway/Gateway.ts"
import * as Retention from "../../src/gateway/usage/Retention.ts"
import type { Settings } from "../Environment.ts"
import * as Observability from "../Observability.ts"
import * as ProxyListener from "../ProxyListener.ts"

/** The caller provides the database, Redis, the upstream, the secret vault and the settings. */
export const layer = (settings: Settings) =>
  ProxyListener.layer(
    settings.proxyAddress,
    drainTimeout(settings),
    settings.connectionLimits,
    settings.corsOrigins
  ).pipe(
    Layer.provide([Gateway.layer, Retention.layer(settings.retention)]),
    Layer.provide(Observability.minimumLevel(settings.logLevels.gateway_proxy))
  )

const drainTimeout = ({ drainSeconds }: Settings) => `${drainSeconds} seconds` as const
