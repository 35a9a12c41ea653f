import { Context, Effect } from "effect"
import { type Exchange, type Sink, Upstream } from "../../../../src/services/Upstream.ts"

/** The origin at which the variant reaches a simulated model API, such as `http://127.0.0.1:9000`. */
export class Target extends Context.Service<Target, { readonly origin: string }>()("svc/testing/Target") {}

export interface Request {
  readonly method: string
  readonly target: string
  readonly headers: ReadonlyArray<string>
  readonly body: string
}

export const exchange = (request: Request, sink: Sink, options: Partial<Exchange> = {}) =>
  Effect.gen(function* () {
    const upstream = yield* Upstream
    yield* upstream.exchange({ ...(yield* exchangeOf(request)), ...options }, sink)
  })

export const exchangeOf = (request: Request) =>
  Effect.map(Target, ({ origin }): Exchange => {
    const body = request.body === "" ? null : Buffer.from(request.body)
    return { ...request, body, origin, headersWithinMs: 5_000, idleWithinMs: 5_000 }
  })

const request = (method: string, target: string, body?: object): Request => ({
  method,
  target,
  headers: ["Authorization", "Bearer any", "Content-Type", "application/json"],
  body: body === undefined ? "" : JSON.stringify(body)
})

/** Texts that are hard to escape, to split and to encode. */
export const words = [
  "",
  " ",
  "word",
  "two  words ",
  '"quoted" \\ backslash',
  "line\nbreak\r\n\r\nand more",
  "data: [DONE]\n\n",
  "event: error\ndata: {}",
  "\u0000\u0001\u001f\u007f\u2028\u2029\ufeff",
  "Grüß Gott, 世界",
  "👋👩‍👩‍👧‍👦🏳️‍🌈",
  "é and e\u0301",
  "</script><!--",
  "x".repeat(100_000),
  "☃".repeat(50_000)
]

const conversation = { model: "m", messages: [{ role: "user", content: "Grüß Gott, 世界 👋" }], max_tokens: 100 }

export const requests = {
  chat: request("POST", "/v1/chat/completions", conversation),
  chatStream: request("POST", "/v1/chat/completions", {
    ...conversation,
    stream: true,
    stream_options: { include_usage: true }
  }),
  responses: request("POST", "/v1/responses", { model: "m", input: "hello" }),
  responsesStream: request("POST", "/v1/responses", { model: "m", input: "hello", stream: true }),
  embeddings: request("POST", "/v1/embeddings", { model: "m", input: ["a", "b"], encoding_format: "base64" }),
  messages: request("POST", "/v1/messages", conversation),
  messagesStream: request("POST", "/v1/messages", { ...conversation, stream: true }),
  countTokens: request("POST", "/v1/messages/count_tokens", conversation),
  batch: request("POST", "/v1/messages/batches", { requests: [{ custom_id: "1", params: conversation }] }),
  models: request("GET", "/v1/models?limit=10"),
  withoutCredential: { ...request("GET", "/v1/models"), headers: ["accept", "*/*"] },
  tooMany: request("POST", "/v1/messages", { ...conversation, model: "simulate-429" }),
  notJson: { ...request("POST", "/v1/responses"), body: "{" },
  unknownPath: request("DELETE", "/v2/nothing")
}

/** The same request for a model that fails as its name says. */
export const modelled = (of: Request, model: string): Request => ({
  ...of,
  body: JSON.stringify({ ...JSON.parse(of.body), model })
})

/** A body that comes byte by byte. */
export const inParts = async function* (text: string) {
  for (const byte of Buffer.from(text)) yield Buffer.of(byte)
}
