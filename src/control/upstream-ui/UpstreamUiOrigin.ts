import { Context, Option } from "effect"

/** The origin at which browsers find the upstream's UI; `none` while the environment opens no listener for it. */
export const UpstreamUiOrigin = Context.Reference<Option.Option<string>>("svc/control/UpstreamUiOrigin", {
  defaultValue: () => Option.none()
})

/** On that origin, this path is not the upstream's: it exchanges the code of a link for a session. */
export const openingPath = "/admin-ui/session"
