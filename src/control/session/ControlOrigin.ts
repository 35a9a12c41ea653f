import { Context, Option } from "effect"

/**
 * The origin at which browsers reach the control listener (`GATEWAY_CONTROL_ORIGIN`). Without it the request's own host
 * is taken, and the session cookie is not restricted to TLS.
 */
export const ControlOrigin = Context.Reference<Option.Option<string>>("svc/control/ControlOrigin", {
  defaultValue: () => Option.none()
})
