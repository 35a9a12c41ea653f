import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { refusals } from "../schema/Errors.ts"
import { Timestamp } from "../schema/Fields.ts"
import { operation } from "../schema/Security.ts"

/** Only the first browser that visits `url` before `expires_at` gets access to the upstream's web interface. */
export const UpstreamUiLink = Schema.Struct({
  url: Schema.RedactedFromValue(Schema.String),
  expires_at: Timestamp
})
export type UpstreamUiLink = typeof UpstreamUiLink.Type

export const UpstreamUiApi = HttpApiGroup.make("upstream-ui")
  .annotate(OpenApi.Description, "Opens the upstream's own UI in a browser, on a separate origin.")
  .add(
    HttpApiEndpoint.post("open", "/session", {
      success: UpstreamUiLink,
      error: refusals("upstream_ui_unconfigured")
    })
      .annotateMerge(operation("Open the upstream's UI in a browser", "providers:update"))
      .annotate(
        OpenApi.Description,
        "The url works once, within a minute. It starts a session of at most an hour. The session also ends when the calling token becomes invalid. " +
          "Without GATEWAY_UPSTREAM_UI_BIND_ADDR the response is 409."
      )
  )
  .prefix("/upstream-ui")
