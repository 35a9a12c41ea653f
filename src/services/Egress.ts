import { Context, type Effect, type Redacted, Schema } from "effect"

/**
 * The answer did not come whole, and `message` says why in words for an operator. The path, the headers and the body of
 * the request are never in it.
 *
 * - `invalid_url`: not an absolute http or https URL without user, password and fragment; nothing was sent.
 * - `refused_address`: the host is, or its name leads to, nothing but addresses that the gateway does not call.
 * - `unreachable`: no connection (refused, unknown host, TLS), or it was lost. `timeout`: not whole within `withinMs`.
 * - `redirect`: 301, 302, 303, 307 or 308; it is never followed.
 * - `too_large`: the body has more than `maxBytes`. `malformed`: what came is not HTTP.
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
  /** With `redirect` and `too_large`: the status of the answer. */
  status: Schema.optionalKey(Schema.Int),
  cause: Schema.optionalKey(Schema.Defect())
}) {}

export interface EgressRequest {
  readonly method: "GET" | "HEAD" | "POST"
  /** Absolute, http or https, without user, password and fragment. */
  readonly url: string
  /** `host`, `content-length` and `accept-encoding` are the door's. */
  readonly headers?: Readonly<Record<string, string>>
  /** Goes out as `Authorization: Bearer …`. */
  readonly bearer?: Redacted.Redacted
  readonly body?: Uint8Array
  /** The key whose request it serves: none has more than a share of the connections to one origin. */
  readonly caller?: string | undefined
  /** Milliseconds for everything: name, connection, headers, the last byte of the body. */
  readonly withinMs: number
  /** Bytes that the body of the answer may have. */
  readonly maxBytes: number
}

export interface EgressResponse {
  readonly status: number
  /** By lower-case name; of a repeated header, the values in order, joined by a comma. */
  readonly headers: Readonly<Record<string, string>>
  /** As they came: nothing is decompressed, and nothing but identity was asked for. */
  readonly body: Uint8Array
}

/**
 * The door for small requests to where an operator's input leads: studio, identity provider, OpenAPI documents,
 * guardrails, health checks. Any status but a redirect is an answer.
 *
 * The address is judged when the connection is made, on what the name resolves to at that moment. Link-local and
 * cloud-metadata, unspecified, multicast and broadcast addresses are always refused, also in IPv6 forms of them;
 * private and loopback ones where `GATEWAY_EGRESS_PRIVATE_ADDRESSES` says so.
 */
export class Egress extends Context.Service<
  Egress,
  { readonly fetch: (request: EgressRequest) => Effect.Effect<EgressResponse, EgressError> }
>()("svc/Egress") {}
