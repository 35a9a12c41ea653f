import { type Effect, Redacted } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { HttpApiClient } from "effect/http-api"
import { ControlApi } from "./ControlApi.ts"

export interface ControlClientOptions {
  /** The origin of the control listener, such as `http://127.0.0.1:8081`. */
  readonly baseUrl: string
  /** An operator token. A gateway key can only call the endpoints for holders of keys. */
  readonly token: Redacted.Redacted
}

/**
 * Returns the typed client of the operator API: a function for each endpoint, grouped as in the API. Each call needs an
 * `HttpClient`, and fails with the endpoint's errors.
 *
 * ```ts
 * const control = yield* ControlClient.make({ baseUrl: "http://127.0.0.1:8081", token: Redacted.make("op_live_…") })
 * const { key, raw_key } = yield* control.keys.create({ payload: { owner_type: "individual" } })
 * ```
 */
export const make = ({
  baseUrl,
  token
}: ControlClientOptions): Effect.Effect<ControlClient, never, HttpClient.HttpClient> =>
  HttpApiClient.make(ControlApi, {
    baseUrl,
    transformClient: HttpClient.mapRequest(HttpClientRequest.bearerToken(Redacted.value(token)))
  })

export type ControlClient = HttpApiClient.ForApi<typeof ControlApi>
