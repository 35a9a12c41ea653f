import type { TextRoute } from "../guardrails/text/Place.ts"
import type { BodyRoute } from "../policy/routes/CanonicalRoute.ts"
import type { Operation } from "./telemetry/GenAiAttributes.ts"

/** Returns where the texts stand in the bodies of a route. `target` is the path at the upstream, with its query. */
export const of = ({ routeId, target }: { readonly routeId: BodyRoute; readonly target: string }): TextRoute =>
  routeId === "compat" ? ofPath(target) : textRoutes[routeId]

const textRoutes: Readonly<Record<Exclude<BodyRoute, "compat">, TextRoute>> = {
  "chat-completions": "chat",
  responses: "responses",
  embeddings: "embeddings",
  models: "other",
  messages: "messages",
  "messages-count-tokens": "messages",
  "message-batches": "message_batches",
  "message-batch": "message_batches",
  "message-batch-cancel": "message_batches",
  "message-batch-results": "message_batches",
  service: "other"
}

/** Returns what a POST on a route asks of a model. Counting tokens and batches ask for no response of a model. */
export const operationOf = (target: { readonly routeId: BodyRoute; readonly target: string }): Operation | undefined =>
  target.routeId === "messages-count-tokens" ? undefined : operations[of(target)]

const operations: Readonly<Partial<Record<TextRoute, Operation>>> = {
  chat: "chat",
  responses: "chat",
  messages: "chat",
  completions: "text_completion",
  embeddings: "embeddings"
}

/** Paths of a compatible upstream that the gateway does not serve itself. */
const ofPath = (target: string): TextRoute => {
  const [path = ""] = target.split("?")
  return compatPaths.find(([pattern]) => pattern.test(path))?.[1] ?? "other"
}

const compatPaths: ReadonlyArray<readonly [RegExp, TextRoute]> = [
  [/\/chat\/completions\/?$/, "chat"],
  [/\/completions\/?$/, "completions"],
  [/\/responses(?:\/[^/]+)?\/?$/, "responses"],
  [/\/messages\/?$/, "messages"],
  [/\/embeddings\/?$/, "embeddings"]
]
