import { Effect } from "effect"
import { HttpEffect, HttpServerResponse } from "effect/http"

/**
 * Changes the answer to a request just before it is sent. A change that throws would leave the request without any
 * answer; the client gets a bare 500 in its place.
 */
export const transformResponse = (
  transform: (response: HttpServerResponse.HttpServerResponse) => HttpServerResponse.HttpServerResponse
) =>
  HttpEffect.appendPreResponseHandler((_, response) =>
    Effect.sync(() => transform(response)).pipe(
      Effect.catchCause((cause) =>
        Effect.as(Effect.logError("An answer could not be finished", cause), HttpServerResponse.empty({ status: 500 }))
      )
    )
  )
