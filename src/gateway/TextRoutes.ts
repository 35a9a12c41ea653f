import type { TextRoute } from "../guardrails/text/Place.ts"
import type { BodyRoute } from "../policy/routes/CanonicalRoute.ts"

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
