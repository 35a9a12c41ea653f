import { Context, type Option, Schema } from "effect"
import { HttpApiMiddleware, HttpApiSecurity, OpenApi } from "effect/http-api"
import type { GuardrailPolicy } from "../../../policy/GuardrailPolicy.ts"
import { refusals } from "./Errors.ts"

/** What an operator token may be allowed; `*` is everything. */
export const Scope = Schema.Literals([
  "keys:create",
  "keys:disable",
  "keys:rotate",
  "policies:update",
  "guardrails:update",
  "usage:read",
  "usage:export",
  "providers:update",
  "services:update",
  "settings:update",
  "operators:manage",
  "audit:read",
  "*"
])
export type Scope = typeof Scope.Type

/** Any one of these opens the endpoint. An endpoint that declares none is open to `*` alone. */
export const RequiredScopes = Context.Reference<ReadonlyArray<Scope>>("svc/control/RequiredScopes", {
  defaultValue: () => []
})

/** Declares on the endpoint, and in the OpenAPI document, which scopes open it. */
export const requires = (...scopes: ReadonlyArray<Scope>): Context.Context<never> =>
  Context.add(OpenApi.annotations({ override: { "x-required-scopes": scopes } }), RequiredScopes, scopes)

export const allows = (held: ReadonlyArray<Scope>, required: ReadonlyArray<Scope>): boolean =>
  held.includes("*") || required.some((scope) => held.includes(scope))

/** Whether a call without a body is as good as one that says nothing: its payload is `null` then. */
export const BodyOptional = Context.Reference<boolean>("svc/control/BodyOptional", { defaultValue: () => false })

/** Declares it on the endpoint, and in the OpenAPI document. */
export const bodyOptional: Context.Context<never> = Context.add(
  OpenApi.annotations({
    transform: ({ requestBody, ...operation }) => ({ ...operation, requestBody: { ...requestBody, required: false } })
  }),
  BodyOptional,
  true
)

/** Whether a list, or a change of all rows, leaves out those that this version cannot decode. */
export const SkipsUnreadable = Context.Reference<boolean>("svc/control/SkipsUnreadable", { defaultValue: () => false })

/** The header of a list that names the rows which it leaves out. */
export const unreadableRowsHeader = "x-unreadable-rows"

/** Declares it on the endpoint, and in the OpenAPI document. */
export const skipsUnreadable: Context.Context<never> = Context.add(
  OpenApi.annotations({
    transform: ({ responses, ...operation }) => ({
      ...operation,
      responses: {
        ...responses,
        200: {
          ...responses[200],
          headers: {
            ...responses[200]?.headers,
            [unreadableRowsHeader]: {
              description:
                "The ids or names of rows that are not in the answer, and that nothing was done to, because this version cannot read them: percent-encoded, with commas between them, at most 100 of them and 4,096 characters.",
              schema: { type: "string" }
            }
          }
        }
      }
    })
  }),
  SkipsUnreadable,
  true
)

/** How much an endpoint reads. */
export const MaxBodyBytes = Context.Reference<number>("svc/control/MaxBodyBytes", { defaultValue: () => 1_048_576 })

/** Who calls, and from where: what an audit event says about its author. */
export class Operator extends Context.Service<
  Operator,
  {
    /** `null`: nobody over HTTP, but a command of the program itself. */
    readonly tokenId: string | null
    readonly scopes: ReadonlyArray<Scope>
    readonly ip: string | null
    readonly userAgent: string | null
  }
>()("svc/control/Operator") {}

/** `Authorization: Bearer op_live_…`, before anything of the request is looked at. */
export class Authorization extends HttpApiMiddleware.Service<Authorization, { provides: Operator }>()(
  "svc/control/Authorization",
  {
    security: { operatorToken: HttpApiSecurity.bearer },
    error: refusals(
      "missing_authorization",
      "malformed_authorization",
      "invalid_operator_token",
      "disabled_operator_token",
      "insufficient_operator_scope",
      "invalid_request",
      "store_unavailable"
    )
  }
) {}

/** Whose gateway key a call came with. */
export class KeyHolder extends Context.Service<
  KeyHolder,
  {
    readonly keyId: string
    readonly projectId: Option.Option<string>
    readonly teamId: Option.Option<string>
    readonly guardrails: GuardrailPolicy
  }
>()("svc/control/KeyHolder") {}

/** `Authorization: Bearer rk_live_…`, before anything of the request is looked at. */
export class KeyAuthorization extends HttpApiMiddleware.Service<KeyAuthorization, { provides: KeyHolder }>()(
  "svc/control/KeyAuthorization",
  {
    security: { gatewayKey: HttpApiSecurity.bearer },
    error: refusals(
      "missing_authorization",
      "malformed_authorization",
      "invalid_virtual_key",
      "disabled_virtual_key",
      "revoked_virtual_key",
      "expired_virtual_key",
      "invalid_request",
      "store_unavailable"
    )
  }
) {}

/** Reads the request, after `Authorization`: content type, size, syntax, then the schemas of the endpoint. */
export class RequestDecoding extends HttpApiMiddleware.Service<RequestDecoding>()("svc/control/RequestDecoding", {
  error: refusals(
    "invalid_json",
    "not_found",
    "request_body_too_large",
    "unsupported_media_type",
    "invalid_request",
    "gateway_overloaded"
  )
}) {}
