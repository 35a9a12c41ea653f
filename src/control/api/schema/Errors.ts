import { Context, Data, Effect, ErrorReporter, Schema, SchemaGetter } from "effect"
import { HttpApiSchema } from "effect/http-api"

export const statusOf = {
  invalid_json: 400,
  invalid_bulk_key_change: 400,
  invalid_configuration: 400,
  invalid_configuration_document: 400,
  invalid_guardrail_request: 400,
  invalid_policy_payload: 400,
  invalid_project_payload: 400,
  invalid_provider_config_payload: 400,
  invalid_service_openapi: 400,
  invalid_service_payload: 400,
  invalid_service_upstream: 400,
  invalid_studio_connection_payload: 400,
  invalid_usage_query: 400,
  invalid_sign_in: 400,
  missing_authorization: 401,
  malformed_authorization: 401,
  invalid_operator_token: 401,
  disabled_operator_token: 401,
  invalid_virtual_key: 401,
  disabled_virtual_key: 401,
  revoked_virtual_key: 401,
  expired_virtual_key: 401,
  invalid_upstream_ui_session: 401,
  invalid_session: 401,
  insufficient_operator_scope: 403,
  cross_origin_request: 403,
  insecure_origin: 403,
  missing_csrf_header: 403,
  service_worker_refused: 403,
  unknown_host: 403,
  invalid_identity_token: 403,
  sign_in_refused: 403,
  guardrail_blocked: 403,
  guardrail_forbidden: 403,
  rotation_forbidden: 403,
  not_found: 404,
  debug_bundle_not_found: 404,
  unsupported_route: 404,
  missing_project: 404,
  missing_provider_config: 404,
  missing_service: 404,
  method_not_allowed: 405,
  duplicate_project: 409,
  project_in_use: 409,
  duplicate_provider_config: 409,
  duplicate_service: 409,
  service_in_use: 409,
  key_revoked: 409,
  bulk_key_change_running: 409,
  raise_request_answered: 409,
  operator_token_not_active: 409,
  last_operator_token: 409,
  too_many_operator_tokens: 409,
  changed_since_read: 409,
  configuration_changed: 409,
  configuration_too_large: 409,
  incomplete_service: 409,
  service_openapi_changed: 409,
  studio_unconfigured: 409,
  upstream_unconfigured: 409,
  upstream_ui_unconfigured: 409,
  request_body_too_large: 413,
  unsupported_media_type: 415,
  invalid_request: 422,
  guardrail_test_busy: 429,
  too_many_live_streams: 429,
  too_many_sign_ins: 429,
  too_many_raise_requests: 429,
  too_many_bulk_key_changes: 429,
  key_test_busy: 429,
  internal_error: 500,
  guardrail_unavailable: 502,
  service_openapi_unavailable: 502,
  studio_unavailable: 502,
  identity_provider_unavailable: 502,
  upstream_connection: 502,
  store_unavailable: 503,
  gateway_overloaded: 503,
  upstream_timeout: 504
} as const

export type ErrorCode = keyof typeof statusOf

/** The id of the request, from the client or generated. Responses, logs and audit events contain it. */
export class RequestId extends Context.Service<RequestId, string>()("svc/control/RequestId") {}

/**
 * An error response. `message` never contains a secret. `param` is the path of the invalid field. Clients read the
 * request's id from `requestId`. The server omits this field, because encoding adds the id.
 */
export class ControlError<out Code extends ErrorCode = ErrorCode> extends Data.TaggedError("ControlError")<{
  readonly message: string
  readonly param?: string
  readonly requestId?: string
}> {
  readonly code: Code

  constructor(code: Code, message: string, details: { readonly param?: string; readonly requestId?: string } = {}) {
    super({ message, ...details })
    this.code = code
  }

  /** Prevents Effect from logging refusals, because they are normal responses. */
  override readonly [ErrorReporter.ignore] = true
}

const typeOf = (status: number): string =>
  status === 401
    ? "authentication_error"
    : status === 403
      ? "permission_error"
      : status >= 500
        ? "api_error"
        : "invalid_request_error"

const envelopeOf = <Code extends ErrorCode>(codes: ReadonlyArray<Code>) =>
  Schema.Struct({
    error: Schema.Struct({
      message: Schema.String,
      type: Schema.String,
      param: Schema.NullOr(Schema.String),
      code: Schema.Literals(codes),
      request_id: Schema.String
    })
    // Endpoints that list the same codes share one schema in the OpenAPI document.
  }).annotate({ identifier: `Refusal.${codes.join(".")}` })

/** Builds the error body, which has the shape of OpenAI's errors. */
export const envelope = <Code extends ErrorCode>(error: ControlError<Code>, requestId: string) => ({
  error: {
    message: error.message,
    type: typeOf(statusOf[error.code]),
    param: error.param ?? null,
    code: error.code,
    request_id: requestId
  }
})

type Envelope<Code extends ErrorCode> = ReturnType<typeof envelopeOf<Code>>

/** The schema of an error response with one of these codes. */
export interface RefusalSchema<Code extends ErrorCode>
  extends Schema.decodeTo<Schema.declare<ControlError<Code>>, Envelope<Code>, never, RequestId> {}

/** Returns one error schema for each HTTP status. A handler that fails with another code does not compile. */
export const refusals = <Code extends ErrorCode>(...codes: ReadonlyArray<Code>): ReadonlyArray<RefusalSchema<Code>> =>
  [...Map.groupBy(codes, (code) => statusOf[code])].map(([status, same]) => refusal(same, status))

const refusal = <Code extends ErrorCode>(codes: ReadonlyArray<Code>, status: number): RefusalSchema<Code> => {
  const known = new Set<ErrorCode>(codes)
  return Schema.declare((u: unknown): u is ControlError<Code> => u instanceof ControlError && known.has(u.code)).pipe(
    Schema.encodeTo(envelopeOf(codes), {
      decode: SchemaGetter.transform(
        ({ error }) =>
          new ControlError(error.code, error.message, {
            requestId: error.request_id,
            ...(error.param !== null && { param: error.param })
          })
      ),
      encode: SchemaGetter.transformEffect((error: ControlError<Code>) =>
        Effect.map(RequestId, (requestId) => envelope(error, requestId))
      )
    }),
    HttpApiSchema.status(status)
  )
}

/** A union with one member per code, so that one code can be handled and removed from the error type. */
export type Refused<Code extends ErrorCode> = Code extends ErrorCode ? ControlError<Code> : never
