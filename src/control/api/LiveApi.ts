import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { refusals } from "./schema/Errors.ts"
import { operation } from "./schema/Security.ts"

const maxTopicsLength = 256
const maxEventIdLength = 128

const eventId = Schema.optionalKey(Schema.String.check(Schema.isMaxLength(maxEventIdLength)))

export const LiveApi = HttpApiGroup.make("live")
  .annotate(OpenApi.Description, "What happens in all processes, while it happens.")
  .add(
    HttpApiEndpoint.get("follow", "/live", {
      query: {
        topics: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(maxTopicsLength))),
        last_event_id: eventId
      },
      headers: { "last-event-id": eventId },
      success: HttpApiSchema.WithHeaders(
        HttpApiSchema.StreamUint8Array({ contentType: "text/event-stream; charset=utf-8" }),
        { "x-accel-buffering": Schema.String }
      ),
      error: refusals("invalid_request", "insufficient_operator_scope", "too_many_live_streams", "gateway_overloaded")
    })
      .annotateMerge(
        operation(
          "Follow what happens as server-sent events",
          "usage:read",
          "audit:read",
          "tasks:read",
          "tasks:operate"
        )
      )
      .annotate(
        OpenApi.Description,
        "`topics` is a list such as `requests,tasks`; by default all that the scopes of the token show. Each topic needs its own scope. `Last-Event-ID` or `last_event_id` resumes after that event."
      )
  )
