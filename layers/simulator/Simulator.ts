import { chatCompletions } from "./ChatCompletions.ts"
import { embeddings } from "./Embeddings.ts"
import { type Json, parse } from "./Json.ts"
import { MessageBatches } from "./MessageBatches.ts"
import { countTokens, messages } from "./Messages.ts"
import { getModel, listModels } from "./Models.ts"
import { responses } from "./Responses.ts"
import { applyFailure, failureOf } from "./SimulatedFailures.ts"
import { errorResponse, type Family, type Moment, requestId, type SimulatedResponse } from "./SimulatedResponse.ts"

interface SimulatedRequest {
  readonly method: string
  readonly target: string
  /** Header names and values, alternating. */
  readonly headers: ReadonlyArray<string>
  readonly body: Uint8Array
}

export interface SimulatorSettings {
  /** The delay of the model `simulate-slow`, in milliseconds. Default: 10,000. */
  readonly slowMs: number
  /** The time until a message batch ends, in milliseconds. Default: 1,000. */
  readonly batchMs: number
}

export const defaultSettings: SimulatorSettings = { slowMs: 10_000, batchMs: 1_000 }

/**
 * Simulates the OpenAI and Anthropic APIs. Replies repeat the last user message. Any model name and any credential is
 * accepted, but a request without a credential gets a 401. Some model names make every route fail:
 *
 * - `simulate-400` … `simulate-599`: responds with that status and an error body (429 and 529 with `retry-after`)
 * - `simulate-slow`: responds after `slowMs`
 * - `simulate-cut`: closes the connection in the middle of the response
 * - `simulate-stall`: stops in the middle of the response and keeps the connection open
 *
 * If the last user message contains the word "tool" and the request has `tools`, the reply calls the first tool.
 */
export class Simulator {
  readonly #settings: SimulatorSettings
  readonly #batches: MessageBatches
  #requestCount = 0

  constructor(settings: SimulatorSettings) {
    this.#settings = settings
    this.#batches = new MessageBatches(settings.batchMs)
  }

  respond(request: SimulatedRequest, now: number): SimulatedResponse {
    this.#requestCount += 1
    const moment: Moment = { now, serial: `sim${this.#requestCount.toString(36).padStart(21, "0")}` }
    const response = this.#route(request, moment)
    const id = requestId(moment)
    return { ...response, headers: [...response.headers, "x-request-id", id, "request-id", id] }
  }

  #route(request: SimulatedRequest, moment: Moment): SimulatedResponse {
    const [path = "", query = ""] = request.target.split("?", 2)
    const family = familyOf(path, request.headers)
    if (!hasCredential(request.headers)) {
      return errorResponse(family, moment, 401, "No credential was given.", { code: "invalid_api_key" })
    }
    const batch = /^\/v1\/messages\/batches\/([^/]+)/.exec(path)?.[1] ?? ""
    const model = /^\/v1\/models\/(.+)$/.exec(path)?.[1] ?? ""
    switch (`${request.method} ${path}`) {
      case "POST /v1/chat/completions":
        return this.#generate(chatCompletions, "A", request, moment)
      case "POST /v1/responses":
        return this.#generate(responses, "A", request, moment)
      case "POST /v1/embeddings":
        return this.#generate(embeddings, "A", request, moment)
      case "POST /v1/messages":
        return this.#generate(messages, "B", request, moment)
      case "POST /v1/messages/count_tokens":
        return this.#generate(countTokens, "B", request, moment)
      case "POST /v1/messages/batches": {
        const body = parse(request.body)
        return body === undefined ? notJson("B", moment) : this.#batches.create(body, moment)
      }
      case "GET /v1/messages/batches":
        return this.#batches.list(new URLSearchParams(query), moment)
      case `GET /v1/messages/batches/${batch}`:
        return this.#batches.get(batch, moment)
      case `GET /v1/messages/batches/${batch}/results`:
        return this.#batches.results(batch, moment)
      case `POST /v1/messages/batches/${batch}/cancel`:
        return this.#batches.cancel(batch, moment)
      case "GET /v1/models":
        return listModels()
      case `GET /v1/models/${model}`:
        return getModel(model, family, moment)
      default:
        return errorResponse(family, moment, 404, `Unknown request URL: ${request.method} ${path}. ${simulatorHint}`, {
          code: "unknown_url"
        })
    }
  }

  #generate(
    generate: (body: Json, moment: Moment) => SimulatedResponse,
    family: Family,
    request: SimulatedRequest,
    moment: Moment
  ): SimulatedResponse {
    const body = parse(request.body)
    if (body === undefined) return notJson(family, moment)
    if (typeof body["model"] !== "string" || body["model"] === "") {
      return family === "A"
        ? errorResponse("A", moment, 400, "you must provide a model parameter", { param: "model" })
        : errorResponse("B", moment, 400, "model: Field required")
    }
    const failure = failureOf(body["model"])
    const response = generate(body, moment)
    return failure === undefined ? response : applyFailure(failure, response, family, moment, this.#settings.slowMs)
  }
}

/** Requests for other services may reach the simulator, too. So its 404 response says that the simulator sent it. */
const simulatorHint =
  "This is the simulator, which serves model routes only. Set UPSTREAM_BASE_URL to use a real upstream."

const notJson = (family: Family, moment: Moment): SimulatedResponse =>
  errorResponse(family, moment, 400, "The body is not a JSON object.")

/** Both APIs list models at `/v1/models`. Only Anthropic's clients send an `anthropic-version` header. */
const familyOf = (path: string, headers: ReadonlyArray<string>): Family =>
  path.startsWith("/v1/messages") ||
  headers.some((name, i) => i % 2 === 0 && name.toLowerCase() === "anthropic-version")
    ? "B"
    : "A"

/** Operators can choose the name of the credential header. Any name that ends in a typical word is accepted. */
const hasCredential = (headers: ReadonlyArray<string>): boolean =>
  headers.some((name, i) => {
    if (i % 2 !== 0 || !/(?:^|-)(?:authorization|key|token|secret|credential)$/i.test(name)) return false
    if (name.toLowerCase() === "idempotency-key") return false
    return (headers[i + 1] ?? "").replace(/^(?:bearer|basic)\b/i, "").trim() !== ""
  })
