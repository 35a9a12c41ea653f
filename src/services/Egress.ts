import { Context, type Effect, type Redacted, Schema } from "effect"

/**
 * The request got no complete response. `message` is for operators and never contains the request's path, headers or
 * body.
 *
 * - `invalid_url`: the URL is not an absolute http or https URL, or has a user, password or fragment. Nothing was sent.
 * - `refused_address`: the gateway is not allowed to call any address of the host.
 * - `unreachable`: the connection failed (refused, unknown host, TLS) or was lost.
 * - `timeout`: the response was not complete within `withinMs`.
 * - `redirect`: the status is 301, 302, 303, 307 or 308. Redirects are never followed.
 * - `too_large`: the body exceeds `maxBytes`. `malformed`: the response is not valid HTTP.
 */
export class EgressError extends Schema.TaggedError<EgressError>()("EgressError", {
  reason: Schema.Literals([
    "invalid_url",
    "refused_address",
    "unreachable",
    "timeout",
    "redirect",
    "too_large",
    "malformed"
  ]),
  message: Schema.String,
  /** The status of the response. Set only if the reason is `redirect` or `too_large`. */
  status: Schema.optionalKey(Schema.Int),
  cause: Schema.optionalKey(Schema.Defect())
}) {}

export interface EgressRequest {
  readonly method: "GET" | "HEAD" | "POST"
  /** An absolute http or https URL without user, password and fragment. */
  readonly url: string
  /** The HTTP client sets `host`, `content-length` and `accept-encoding`. */
  readonly headers?: Readonly<Record<string, string>>
  /** The token that is sent as `Authorization: Bearer …`. */
  readonly bearer?: Redacted.Redacted
  readonly body?: Uint8Array
  /** The gateway key that caused the request. One key may use only a share of the connections to an origin. */
  readonly caller?: string | undefined
  /** The deadline in milliseconds for the whole exchange: name lookup, connection, headers and body. */
  readonly withinMs: number
  /** The maximum size of the response body in bytes. */
  readonly maxBytes: number
}

export interface EgressResponse {
  readonly status: number
  /** Headers by lower-case name. The values of a repeated header are joined by commas, in order. */
  readonly headers: Readonly<Record<string, string>>
  /** The body as received. The HTTP client requests no compression and decompresses nothing. */
  readonly body: Uint8Array
}

/**
 * Sends small requests to addresses that operators configure: studio backend, identity provider, OpenAPI documents,
 * guardrails, health checks. Any status other than a redirect is a response, not a failure.
 *
 * The client checks the resolved IP address when it connects. Link-local, cloud-metadata, unspecified, multicast and
 * broadcast addresses are always refused, also in their IPv6 forms. `GATEWAY_EGRESS_PRIVATE_ADDRESSES` decides whether
 * private and loopback addresses are refused.
 */
export class Egress extends Context.Service<
  Egress,
  { readonly fetch: (request: EgressRequest) => Effect.Effect<EgressResponse, EgressError> }
>()("svc/Egress") {}
