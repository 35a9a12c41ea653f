import { Context, type Effect, type Option, type Redacted, Schema } from "effect"
import { HttpApiMiddleware, HttpApiSecurity, OpenApi } from "effect/http-api"
import type { GuardrailPolicy } from "../../../policy/GuardrailPolicy.ts"
import { refusals } from "./Errors.ts"

/** The permissions of an operator token. `*` grants all permissions. */
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
  "tasks:read",
  "tasks:operate",
  "*"
])
export type Scope = typeof Scope.Type

/** What each scope allows, in a sentence for people. */
export const scopeHelp: Readonly<Record<Scope, string>> = {
  "keys:create": "Create keys, and move keys to another project.",
  "keys:disable": "Disable, enable and revoke keys.",
  "keys:rotate": "Give keys new secrets.",
  "policies:update": "Change the policies of keys and layers, limits and routes, and try policies out.",
  "guardrails:update": "Change the catalogue of guardrails.",
  "usage:read": "See requests, usage, limits, routes, upstreams and services.",
  "usage:export": "Export requests.",
  "providers:update": "Change upstreams and their credentials, and check their health.",
  "services:update": "Change and import services.",
  "settings:update": "Change projects, prices, the identity provider and other settings, and drain processes.",
  "operators:manage": "See keys, projects and operators, and make, rotate and revoke operator tokens.",
  "audit:read": "See who changed what, and verify the audit log.",
  "tasks:read": "See tasks, queues, workers and dead letters.",
  "tasks:operate": "Cancel tasks, pause queues, and edit, archive and replay dead letters.",
  "*": "Everything, also what no other scope allows: apply a whole configuration."
}

/** The caller needs at least one of these scopes. If the list is empty, the caller needs `*`. */
export const RequiredScopes = Context.Reference<ReadonlyArray<Scope>>("svc/control/RequiredScopes", {
  defaultValue: () => []
})

export const requires = (...scopes: ReadonlyArray<Scope>): Context.Context<never> =>
  Context.add(OpenApi.annotations({ override: { "x-required-scopes": scopes } }), RequiredScopes, scopes)

export const operation = (summary: string, ...scopes: ReadonlyArray<Scope>): Context.Context<never> =>
  Context.add(requires(...scopes), OpenApi.Summary, summary)

export const allows = (held: ReadonlyArray<Scope>, required: ReadonlyArray<Scope>): boolean =>
  held.includes("*") || required.some((scope) => held.includes(scope))

/** True if requests may omit the body. The payload of such a request is `null`. */
export const BodyOptional = Context.Reference<boolean>("svc/control/BodyOptional", { defaultValue: () => false })

export const bodyOptional: Context.Context<never> = Context.add(
  OpenApi.annotations({
    transform: ({ requestBody, ...operation }) => ({ ...operation, requestBody: { ...requestBody, required: false } })
  }),
  BodyOptional,
  true
)

/** True if the endpoint skips stored rows that this version cannot decode. Other endpoints fail. */
export const SkipsUnreadable = Context.Reference<boolean>("svc/control/SkipsUnreadable", { defaultValue: () => false })

export const unreadableRowsHeader = "x-unreadable-rows"

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
                "The ids or names of rows that this version cannot decode. They are missing from the response and were not changed. Percent-encoded and separated by commas; at most 100 names and 4,096 characters.",
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

/** The maximum size of a request body. It is 1 MiB by default. */
export const MaxBodyBytes = Context.Reference<number>("svc/control/MaxBodyBytes", { defaultValue: () => 1_048_576 })

/** The caller of an endpoint, as audit events record it. */
export class Operator extends Context.Service<
  Operator,
  {
    /** `null` when a command of the program makes the change. */
    readonly tokenId: string | null
    readonly scopes: ReadonlyArray<Scope>
    readonly ip: string | null
    readonly userAgent: string | null
  }
>()("svc/control/Operator") {}

/** Authenticates `Authorization: Bearer op_live_…`, or a session cookie, before the rest of the request is read. */
export class Authorization extends HttpApiMiddleware.Service<Authorization, { provides: Operator }>()(
  "svc/control/Authorization",
  {
    security: { operatorToken: HttpApiSecurity.bearer },
    error: refusals(
      "missing_authorization",
      "malformed_authorization",
      "invalid_operator_token",
      "disabled_operator_token",
      "invalid_session",
      "cross_origin_request",
      "missing_csrf_header",
      "insufficient_operator_scope",
      "invalid_request",
      "store_unavailable"
    )
  }
) {}

/** The gateway key that authenticated the request. */
export class KeyHolder extends Context.Service<
  KeyHolder,
  {
    readonly keyId: string
    /** The SHA-256 (hex) of the secret that was sent. */
    readonly secretDigest: string
    readonly projectId: Option.Option<string>
    readonly teamId: Option.Option<string>
    readonly guardrails: GuardrailPolicy
    /** The secret with which the holder came. A session keeps it sealed, and one of an older version does not have it. */
    readonly secret: Effect.Effect<Option.Option<Redacted.Redacted>>
  }
>()("svc/control/KeyHolder") {}

/**
 * Authenticates `Authorization: Bearer rk_live_…`, `x-api-key: rk_live_…` or a session cookie before the rest of the
 * request is read.
 */
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
      "invalid_session",
      "cross_origin_request",
      "missing_csrf_header",
      "invalid_request",
      "store_unavailable"
    )
  }
) {}

/** Decodes the request after authentication: content type, size, JSON syntax, and the schemas of the endpoint. */
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
