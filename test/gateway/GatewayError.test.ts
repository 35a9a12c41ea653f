import { assert, describe, it } from "@effect/vitest"
import { errorBody, GatewayError, statusOf } from "../../src/gateway/GatewayError.ts"

describe("GatewayError", () => {
  it("has the reference's status for each of its codes", () => {
    assert.deepInclude(statusOf, {
      missing_authorization: 401,
      malformed_authorization: 401,
      invalid_virtual_key: 401,
      disabled_virtual_key: 401,
      revoked_virtual_key: 401,
      expired_virtual_key: 401,
      unsupported_route: 404,
      missing_service: 404,
      disabled_service: 403,
      incomplete_service: 409,
      invalid_service_payload: 400,
      disabled_route: 403,
      policy_denied: 403,
      guardrail_blocked: 403,
      guardrail_forbidden: 403,
      guardrail_unavailable: 502,
      invalid_guardrail_request: 400,
      request_body_too_large: 413,
      response_body_too_large: 413,
      budget_exceeded: 402,
      rate_limit_exceeded: 429,
      token_rate_limit_exceeded: 429,
      gateway_overloaded: 503,
      control_state_unavailable: 503,
      upstream_connection: 502,
      upstream_timeout: 504,
      invalid_configuration: 500
    })
  })

  const error = new GatewayError({
    code: "rate_limit_exceeded",
    message: 'says "why" ☃',
    param: "model",
    retryAfterSeconds: 7
  })

  it("speaks family A", () => {
    assert.deepStrictEqual(JSON.parse(errorBody(error, "a", "r-1")), {
      error: {
        message: 'says "why" ☃',
        type: "rate_limit_error",
        param: "model",
        code: "rate_limit_exceeded",
        request_id: "r-1",
        retry_after_seconds: 7
      }
    })
  })

  it("speaks family B", () => {
    assert.deepStrictEqual(JSON.parse(errorBody(error, "b", "r-1")), {
      type: "error",
      error: {
        type: "rate_limit_error",
        message: 'says "why" ☃',
        code: "rate_limit_exceeded",
        param: "model",
        retry_after_seconds: 7
      },
      request_id: "r-1"
    })
  })

  it("leaves out what does not apply", () => {
    const plain = new GatewayError({ code: "internal_error", message: "m" })
    assert.deepStrictEqual(JSON.parse(errorBody(plain, "a", "r")), {
      error: { message: "m", type: "api_error", param: null, code: "internal_error", request_id: "r" }
    })
    assert.deepStrictEqual(JSON.parse(errorBody(plain, "b", "r")), {
      type: "error",
      error: { type: "api_error", message: "m", code: "internal_error" },
      request_id: "r"
    })
  })

  it.each([
    ["invalid_request_body", "invalid_request_error", "invalid_request_error"],
    ["invalid_virtual_key", "authentication_error", "authentication_error"],
    ["budget_exceeded", "insufficient_quota", "billing_error"],
    ["policy_denied", "permission_error", "permission_error"],
    ["unsupported_route", "invalid_request_error", "not_found_error"],
    ["request_body_timeout", "invalid_request_error", "invalid_request_error"],
    ["request_body_too_large", "invalid_request_error", "request_too_large"],
    ["token_rate_limit_exceeded", "rate_limit_error", "rate_limit_error"],
    ["invalid_configuration", "api_error", "api_error"],
    ["upstream_connection", "api_error", "api_error"],
    ["gateway_overloaded", "api_error", "overloaded_error"],
    ["upstream_timeout", "api_error", "timeout_error"]
  ] as const)("%s is a %s to family A and a %s to family B", (code, a, b) => {
    const error = new GatewayError({ code, message: "m" })
    assert.deepStrictEqual(
      [JSON.parse(errorBody(error, "a", "r")).error.type, JSON.parse(errorBody(error, "b", "r")).error.type],
      [a, b]
    )
  })
})
