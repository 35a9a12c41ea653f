import { Effect } from "effect"
import { HttpEffect, HttpServerResponse } from "effect/http"

/** Changes the response just before it is sent. If `transform` throws, the client receives an empty 500. */
export const transformResponse = (
  transform: (response: HttpServerResponse.HttpServerResponse) => HttpServerResponse.HttpServerResponse
) =>
  HttpEffect.appendPreResponseHandler((_, response) =>
    Effect.sync(() => transform(response)).pipe(
      Effect.catchCause((cause) =>
        Effect.as(
          Effect.logError("The response headers could not be set; the client receives an empty 500 instead", cause),
          HttpServerResponse.empty({ status: 500 })
        )
      )
    )
  )
