import { Schema } from "effect"
import type { Family } from "../policy/routes/CanonicalRoute.ts"

export const statusOf = {
  missing_authorization: 401,
  malformed_authorization: 401,
  invalid_virtual_key: 401,
  disabled_virtual_key: 401,
  revoked_virtual_key: 401,
  expired_virtual_key: 401,
  missing_identity_authorization: 401,
  malformed_identity_authorization: 401,
  invalid_identity_token: 401,
  expired_identity_token: 401,
  invalid_identity_audience: 401,
  invalid_identity_issuer: 401,
  untrusted_gateway_identity: 401,
  insufficient_identity_authorization: 403,
  unsupported_route: 404,
  object_not_found: 404,
  missing_service: 404,
  disabled_service: 403,
  incomplete_service: 409,
  invalid_service_payload: 400,
  disabled_route: 403,
  malformed_request: 400,
  invalid_request_body: 400,
  invalid_guardrail_request: 400,
  guardrail_blocked: 403,
  guardrail_forbidden: 403,
  guardrail_unavailable: 502,
  request_body_timeout: 408,
  request_body_too_large: 413,
  response_body_too_large: 413,
  unsupported_media_type: 415,
  policy_denied: 403,
  budget_exceeded: 402,
  rate_limit_exceeded: 429,
  token_rate_limit_exceeded: 429,
  concurrency_limit_exceeded: 429,
  gateway_overloaded: 503,
  control_state_unavailable: 503,
  upstream_connection: 502,
  upstream_timeout: 504,
  invalid_configuration: 500,
  internal_error: 500
} as const

export type ErrorCode = keyof typeof statusOf

/** An error for the client. `message` says what was wrong and how to fix it. It never contains a secret. */
export class GatewayError extends Schema.TaggedError<GatewayError>()("GatewayError", {
  code: Schema.Literals(Object.keys(statusOf) as ReadonlyArray<ErrorCode>),
  message: Schema.String,
  param: Schema.optionalKey(Schema.String),
  retryAfterSeconds: Schema.optionalKey(Schema.Int)
}) {
  get status(): number {
    return statusOf[this.code]
  }
}

/** The error `type` for OpenAI clients. It may be coarse, because OpenAI SDKs use the status and `code` instead. */
const typeA = (status: number): string =>
  status === 401
    ? "authentication_error"
    : status === 402
      ? "insufficient_quota"
      : status === 403
        ? "permission_error"
        : status === 429
          ? "rate_limit_error"
          : status >= 500
            ? "api_error"
            : "invalid_request_error"

const typesB: Readonly<Record<number, string>> = {
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  503: "overloaded_error",
  504: "timeout_error"
}
const typeB = (status: number): string => typesB[status] ?? (status >= 500 ? "api_error" : "invalid_request_error")

export const errorBody = (error: GatewayError, family: Family, requestId: string): string => {
  const retry = error.retryAfterSeconds === undefined ? {} : { retry_after_seconds: error.retryAfterSeconds }
  return JSON.stringify(
    family === "a"
      ? {
          error: {
            message: error.message,
            type: typeA(error.status),
            param: error.param ?? null,
            code: error.code,
            request_id: requestId,
            ...retry
          }
        }
      : {
          type: "error",
          error: {
            type: typeB(error.status),
            message: error.message,
            code: error.code,
            ...(error.param === undefined ? {} : { param: error.param }),
            ...retry
          },
          request_id: requestId
        }
  )
}

/** Returns the last event of a stream that failed after its start. OpenAI and Anthropic SDKs raise it as an error. */
export const errorEvent = (error: GatewayError, family: Family, requestId: string): string =>
  `${family === "b" ? "event: error\n" : ""}data: ${errorBody(error, family, requestId)}\n\n`

export const controlStateUnavailable = new GatewayError({
  code: "control_state_unavailable",
  message: "The gateway cannot check limits or keys at the moment. Try again shortly.",
  retryAfterSeconds: 1
})

export const queueFull = new GatewayError({
  code: "control_state_unavailable",
  message: "The queue of usage records is full, so the gateway accepts no requests. Try again shortly.",
  retryAfterSeconds: 5
})

export const internalError = new GatewayError({
  code: "internal_error",
  message: "The gateway failed. Give the operator the request id."
})
