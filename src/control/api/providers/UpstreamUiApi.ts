import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { refusals } from "../schema/Errors.ts"
import { Timestamp } from "../schema/Fields.ts"
import { requires } from "../schema/Security.ts"

/** `url` opens the upstream's UI in the browser that visits it first, until `expires_at`. */
export const UpstreamUiLink = Schema.Struct({
  url: Schema.RedactedFromValue(Schema.String),
  expires_at: Timestamp
})
export type UpstreamUiLink = typeof UpstreamUiLink.Type

export const UpstreamUiApi = HttpApiGroup.make("upstream-ui")
  .annotate(OpenApi.Description, "The upstream's own UI, in a browser on an origin of its own.")
  .add(
    HttpApiEndpoint.post("open", "/session", {
      success: UpstreamUiLink,
      error: refusals("upstream_ui_unconfigured")
    })
      .annotateMerge(
        OpenApi.annotations({
          summary: "Open the upstream's UI in a browser",
          description:
            "The url works once, for a minute. It begins a session of an hour that ends with the calling token. " +
            "Without GATEWAY_UPSTREAM_UI_BIND_ADDR the answer is 409."
        })
      )
      .annotateMerge(requires("providers:update"))
  )
  .prefix("/upstream-ui")
