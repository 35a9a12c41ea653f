import { Context, Option } from "effect"

/** The origin of the upstream's UI for browsers; `none` if no listener is configured for it. */
export const UpstreamUiOrigin = Context.Reference<Option.Option<string>>("svc/control/UpstreamUiOrigin", {
  defaultValue: () => Option.none()
})

/** The path on that origin that exchanges a link's code for a session. The upstream does not get it. */
export const openingPath = "/admin-ui/session"
