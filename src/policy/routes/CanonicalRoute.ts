import { Schema } from "effect"
import type { Ownership } from "./Ownership.ts"

/** The protocol family of a route: `a` is OpenAI's, `b` Anthropic's. It decides the format of errors and usage. */
export type Family = "a" | "b"

export const RouteId = Schema.Literals([
  "chat-completions",
  "responses",
  "embeddings",
  "messages",
  "messages-count-tokens",
  "message-batches",
  "message-batch",
  "message-batch-results",
  "message-batch-cancel",
  "models"
])
export type RouteId = typeof RouteId.Type

/** The route that defines the format of a body. */
export type BodyRoute = RouteId | "compat" | "service"

export interface CanonicalRoute {
  readonly id: RouteId
  readonly family: Family
  readonly methods: ReadonlyArray<"GET" | "POST">
  /** The path of the route, and its name in policies and usage records. `*` matches one non-empty segment. */
  readonly pattern: PolicyRoute
}

export const modelsRoute: CanonicalRoute = { id: "models", family: "a", methods: ["GET"], pattern: "/v1/models" }

export const canonicalRoutes: ReadonlyArray<CanonicalRoute> = [
  { id: "chat-completions", family: "a", methods: ["POST"], pattern: "/v1/chat/completions" },
  { id: "responses", family: "a", methods: ["POST"], pattern: "/v1/responses" },
  { id: "embeddings", family: "a", methods: ["POST"], pattern: "/v1/embeddings" },
  { id: "messages", family: "b", methods: ["POST"], pattern: "/v1/messages" },
  { id: "messages-count-tokens", family: "b", methods: ["POST"], pattern: "/v1/messages/count_tokens" },
  { id: "message-batches", family: "b", methods: ["GET", "POST"], pattern: "/v1/messages/batches" },
  { id: "message-batch", family: "b", methods: ["GET"], pattern: "/v1/messages/batches/*" },
  { id: "message-batch-results", family: "b", methods: ["GET"], pattern: "/v1/messages/batches/*/results" },
  { id: "message-batch-cancel", family: "b", methods: ["POST"], pattern: "/v1/messages/batches/*/cancel" },
  modelsRoute
]

/** `/services/*` and four built-in paths belong to registered services. `/upstream/*` is passthrough on other paths. */
export const PolicyRoute = Schema.Literals([
  "/v1/chat/completions",
  "/v1/responses",
  "/v1/embeddings",
  "/v1/messages",
  "/v1/messages/count_tokens",
  "/v1/messages/batches",
  "/v1/messages/batches/*",
  "/v1/messages/batches/*/results",
  "/v1/messages/batches/*/cancel",
  "/v1/models",
  "/providers/compat/*",
  "/services/*",
  "/summary",
  "/translation",
  "/ocr",
  "/embeddings",
  "/upstream/*"
])
export type PolicyRoute = typeof PolicyRoute.Type

export const Provider = Schema.Literals(["upstream", "compat", "internal-service"])
export type Provider = typeof Provider.Type

export const RouteMode = Schema.Literals(["managed_by_gateway", "direct_upstream_passthrough"])
export type RouteMode = typeof RouteMode.Type

export const maxTimeoutMs = 600_000
export const maxBodyBytes = 104_857_600

export const TimeoutMs = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: maxTimeoutMs }))
export const BodyBytes = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: maxBodyBytes }))

export interface RouteLimits {
  readonly timeoutMs: number
  readonly maxRequestBodyBytes: number
  readonly maxResponseBodyBytes: number
}

export const seededLimits: RouteLimits = {
  timeoutMs: 120_000,
  maxRequestBodyBytes: 1_048_576,
  maxResponseBodyBytes: 1_048_576
}

/** The limits of the direct compatible upstream (`DIRECT_COMPAT_*`). Only variables configure it, no database row. */
export const compatLimits: RouteLimits = { ...seededLimits, timeoutMs: 60_000 }

export type LimitSetter = "the route" | "the wildcard" | "the service" | "the environment" | "this key's policy"

export interface RouteConfig extends RouteLimits {
  readonly enabled: boolean
  readonly mode: RouteMode
  /** True once an operator has set `maxResponseBodyBytes`. The limit then applies to event streams too. */
  readonly limitsStreams: boolean
  readonly limitsSetBy: Exclude<LimitSetter, "this key's policy">
  readonly ownership: Ownership
}

export const compatConfig = (limits: RouteLimits, ownership: Ownership): RouteConfig => ({
  ...limits,
  enabled: true,
  mode: "managed_by_gateway",
  limitsStreams: false,
  limitsSetBy: "the environment",
  ownership
})
