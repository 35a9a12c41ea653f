import { Effect, Option } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApiBuilder, HttpApiSchema } from "effect/http-api"
import { ControlApi } from "../api/ControlApi.ts"
import { Operator } from "../api/schema/Security.ts"
import { LiveStreams } from "../live/LiveStreams.ts"
import * as LiveTopics from "../live/LiveTopics.ts"
import * as CredentialWatch from "../operators/CredentialWatch.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "live",
  Effect.fn(function* (handlers) {
    const streams = yield* LiveStreams
    const credentialsOfRequest = yield* CredentialWatch.credentialsOfRequest

    return handlers.handle("follow", ({ headers, query }) =>
      Effect.gen(function* () {
        const request = yield* HttpServerRequest.HttpServerRequest
        const { scopes, tokenId } = yield* Operator
        const body = yield* streams.open({
          topics: yield* LiveTopics.read(query.topics, scopes),
          lastEventId: headers["last-event-id"] || query.last_event_id || undefined,
          address: Option.getOrUndefined(request.remoteAddress),
          tokenId,
          credentials: yield* credentialsOfRequest
        })
        return HttpApiSchema.withHeaders({ body, headers: { "x-accel-buffering": "no" } })
      })
    )
  })
)
