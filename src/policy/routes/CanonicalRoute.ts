import { Schema } from "effect"
import type { Ownership } from "./Ownership.ts"

/** Family A: chat-style wire protocol. Family B: messages-style. It decides the shape of errors and of usage. */
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

export interface CanonicalRoute {
  readonly id: RouteId
  readonly family: Family
  readonly methods: ReadonlyArray<"GET" | "POST">
  /** Segments of the path; `*` stands for one non-empty segment. Also the name in policies and usage records. */
  readonly pattern: PolicyRoute
}

/** The list of models, and what it says of a single one. */
export const modelsRoute: CanonicalRoute = { id: "models", family: "a", methods: ["GET"], pattern: "/v1/models" }

/** The ten canonical routes, in the specification's order: family A, family B, models. */
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

/**
 * A route as policies and usage records name it. `/providers/compat/*` is the direct compatible upstream; behind
 * `/services/*`, and the four with a path of their own, stand registered services; `/upstream/*` is the wildcard.
 */
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

/** How long and how large what passes a route may be. */
export interface RouteLimits {
  readonly timeoutMs: number
  readonly maxRequestBodyBytes: number
  readonly maxResponseBodyBytes: number
}

/** What the routes and the wildcard of a new installation begin with, where its environment says nothing else. */
export const seededLimits: RouteLimits = {
  timeoutMs: 120_000,
  maxRequestBodyBytes: 1_048_576,
  maxResponseBodyBytes: 1_048_576
}

/** The direct compatible upstream has no row of settings. */
export const compatLimits: RouteLimits = { ...seededLimits, timeoutMs: 60_000 }

/** Where a limit on bodies is set, in words for whoever meets it. */
export type LimitSetter = "the route" | "the wildcard" | "the service" | "the environment" | "this key's policy"

/** What an operator decides about a route. Seeded: enabled, managed, 120 s, 1 MiB each way, and streams of any length. */
export interface RouteConfig extends RouteLimits {
  readonly enabled: boolean
  readonly mode: RouteMode
  /** Whether `maxResponseBodyBytes` counts for event streams too: from when an operator sets it. */
  readonly limitsStreams: boolean
  readonly limitsSetBy: Exclude<LimitSetter, "this key's policy">
  /** Who may use the objects that keys create at the upstream by this route. */
  readonly ownership: Ownership
}

/** The direct compatible upstream's, which the environment decides alone. `ownership`: of what a key creates there. */
export const compatConfig = (limits: RouteLimits, ownership: Ownership): RouteConfig => ({
  ...limits,
  enabled: true,
  mode: "managed_by_gateway",
  limitsStreams: false,
  limitsSetBy: "the environment",
  ownership
})
