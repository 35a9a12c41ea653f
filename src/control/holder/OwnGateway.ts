import { Context, Effect, type Option } from "effect"
import type { EgressError, EgressRequest, EgressResponse } from "../../services/Egress.ts"

/** A request to a path of the gateway. It names no address, so it reaches the gateway of this installation or nothing. */
export type GatewayRequest = Omit<EgressRequest, "url"> & { readonly path: `/v1/${string}` }

export type SendToGateway = (request: GatewayRequest) => Effect.Effect<EgressResponse, EgressError>

/** Returns what sends a request to the gateway as an application would, or `none` while its address is not known. */
export const OwnGateway = Context.Reference<Effect.Effect<Option.Option<SendToGateway>>>("svc/control/OwnGateway", {
  defaultValue: () => Effect.succeedNone
})
