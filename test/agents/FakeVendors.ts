import { createServer } from "node:http"
import { Effect, type Scope } from "effect"
import { portOf } from "../upstream/SimulatorServer.ts"
import type { Answer, Json } from "./Answer.ts"
import * as AnthropicEvents from "./AnthropicEvents.ts"
import * as OpenaiEvents from "./OpenaiEvents.ts"

/** One request as it reached the fake. */
export interface Received {
  readonly method: string
  /** With its query. */
  readonly path: string
  readonly body: Json
  /** The whole request, head and body, to look for what must not be in it. */
  readonly text: string
}

/** A refusal of the vendor's. */
export interface Refusal {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly message: string
}

/** The model's turns, in the order in which it takes them. It repeats the last one. */
export type Script = readonly [Answer | Refusal, ...ReadonlyArray<Answer | Refusal>]

export interface FakeVendors {
  readonly origin: string
  /** Begins a script, and forgets the requests of the one before. */
  readonly play: (...script: Script) => void
  /** The requests that reached the fake since the script began, oldest first. */
  readonly requests: () => ReadonlyArray<Received>
}

/**
 * A server that answers as the APIs of Anthropic and OpenAI do. Messages and responses take the script's next turn; each
 * other request has an answer that never changes.
 */
export const serve: Effect.Effect<FakeVendors, never, Scope.Scope> = Effect.acquireRelease(
  Effect.promise(() => start()),
  (server) => Effect.promise(() => server.close())
)

const start = async () => {
  let turns: Script = [{ text: "The test has no script." }]
  let taken = 0
  let requests: Array<Received> = []
  const nextTurn = (): Answer | Refusal => turns[Math.min(taken++, turns.length - 1)] ?? turns[0]

  const server = createServer((incoming, response) => {
    const chunks: Array<Buffer> = []
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk))
    incoming.on("end", () => {
      const { method = "", rawHeaders, url: path = "" } = incoming
      const content = Buffer.concat(chunks).toString("utf8")
      const request = {
        method,
        path,
        body: content === "" ? {} : JSON.parse(content),
        text: [method, path, ...rawHeaders, content].join("\n")
      }
      requests.push(request)
      const { headers, status, text } = responseTo(request, nextTurn)
      response.writeHead(status, headers).end(text)
    })
  })
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
  return {
    origin: `http://127.0.0.1:${portOf(server.address())}`,
    play: (...script: Script) => {
      turns = script
      taken = 0
      requests = []
    },
    requests: () => requests,
    close: () =>
      new Promise<void>((closed) => {
        server.close(() => closed())
        server.closeAllConnections()
      })
  }
}

interface Response {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
}

const responseTo = ({ body, method, path }: Received, nextTurn: () => Answer | Refusal): Response => {
  switch (`${method} ${path.split("?")[0]}`) {
    case "POST /v1/messages":
      return modelResponse(nextTurn(), (answer) => AnthropicEvents.of(body, answer), anthropicError)
    case "POST /v1/responses":
      return modelResponse(nextTurn(), (answer) => OpenaiEvents.of(body, answer), openaiError)
    case "POST /v1/messages/count_tokens":
      return json(200, { input_tokens: 100 })
    case "GET /v1/models":
      return json(200, { object: "list", data: [], has_more: false, first_id: null, last_id: null })
    default:
      return json(404, anthropicError("not_found_error", `The fake does not serve ${path}.`))
  }
}

const modelResponse = (
  turn: Answer | Refusal,
  eventsOf: (answer: Answer) => ReadonlyArray<Json>,
  errorOf: (type: string, message: string) => Json
): Response => {
  if ("status" in turn) {
    const type = turn.status === 429 ? "rate_limit_error" : "api_error"
    return json(turn.status, errorOf(type, turn.message), turn.headers)
  }
  const events = eventsOf(turn).map((event) => `event: ${event["type"]}\ndata: ${JSON.stringify(event)}\n\n`)
  return { status: 200, headers: { "content-type": "text/event-stream" }, text: events.join("") }
}

const json = (status: number, body: Json, headers: Readonly<Record<string, string>> = {}): Response => ({
  status,
  headers: { "content-type": "application/json", ...headers },
  text: JSON.stringify(body)
})

const anthropicError = (type: string, message: string): Json => ({ type: "error", error: { type, message } })
const openaiError = (type: string, message: string): Json => ({ error: { type, message, param: null, code: null } })
