import { Context, Option } from "effect"

/** The origin at which browsers reach the upstream's web interface. It is `none` if no listener is configured. */
export const UpstreamUiOrigin = Context.Reference<Option.Option<string>>("svc/control/UpstreamUiOrigin", {
  defaultValue: () => Option.none()
})

/** This path exchanges the code of a link for a session. Requests to it are not forwarded to the upstream. */
export const openingPath = "/admin-ui/session"
