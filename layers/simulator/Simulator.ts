import { type Answer, type Family, type Moment, refusal, requestId } from "./Answer.ts"
import { chatCompletions } from "./ChatCompletions.ts"
import { embeddings } from "./Embeddings.ts"
import { failed, failureOf } from "./Failures.ts"
import { type Json, parse } from "./Json.ts"
import { MessageBatches } from "./MessageBatches.ts"
import { countTokens, messages } from "./Messages.ts"
import { getModel, listModels } from "./Models.ts"
import { responses } from "./Responses.ts"

export interface SimulatedRequest {
  readonly method: string
  readonly target: string
  /** Name, value, name, value. */
  readonly headers: ReadonlyArray<string>
  readonly body: Uint8Array
}

export interface Settings {
  /** How late the model `simulate-slow` begins to answer. */
  readonly slowMs: number
  /** How long a message batch takes. */
  readonly batchMs: number
}

export const defaultSettings: Settings = { slowMs: 10_000, batchMs: 1_000 }

/**
 * An imaginary model proxy that speaks both families. It echoes what it is told, with plausible usage; it takes any
 * credential (but none is a 401) and any model name. Some names fail on purpose, on every route that has a model:
 *
 * - `simulate-400` … `simulate-599`: that status, with the family's error body (429 and 529 with `retry-after`)
 * - `simulate-slow`: the answer begins only after `slowMs`
 * - `simulate-cut`: the connection is lost in the middle of the answer
 * - `simulate-stall`: the answer stops in the middle, and the connection stays open
 *
 * With `tools`, a last user message that contains the word "tool" is answered with a call of the first one.
 */
export class Simulator {
  readonly #settings: Settings
  readonly #batches: MessageBatches
  #answered = 0

  constructor(settings: Settings) {
    this.#settings = settings
    this.#batches = new MessageBatches(settings.batchMs)
  }

  answer(request: SimulatedRequest, now: number): Answer {
    this.#answered += 1
    const moment: Moment = { now, serial: `sim${this.#answered.toString(36).padStart(21, "0")}` }
    const answer = this.#route(request, moment)
    const id = requestId(moment)
    return { ...answer, headers: [...answer.headers, "x-request-id", id, "request-id", id] }
  }

  #route(request: SimulatedRequest, moment: Moment): Answer {
    const [path = "", query = ""] = request.target.split("?", 2)
    const family = familyOf(path, request.headers)
    if (!hasCredential(request.headers)) {
      return refusal(family, moment, 401, "No credential was given.", { code: "invalid_api_key" })
    }
    const batch = /^\/v1\/messages\/batches\/([^/]+)/.exec(path)?.[1] ?? ""
    const model = /^\/v1\/models\/(.+)$/.exec(path)?.[1] ?? ""
    switch (`${request.method} ${path}`) {
      case "POST /v1/chat/completions":
        return this.#generated(chatCompletions, "A", request, moment)
      case "POST /v1/responses":
        return this.#generated(responses, "A", request, moment)
      case "POST /v1/embeddings":
        return this.#generated(embeddings, "A", request, moment)
      case "POST /v1/messages":
        return this.#generated(messages, "B", request, moment)
      case "POST /v1/messages/count_tokens":
        return this.#generated(countTokens, "B", request, moment)
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
        return refusal(family, moment, 404, `Unknown request URL: ${request.method} ${path}. ${whoAnswers}`, {
          code: "unknown_url"
        })
    }
  }

  #generated(
    generate: (body: Json, moment: Moment) => Answer,
    family: Family,
    request: SimulatedRequest,
    moment: Moment
  ): Answer {
    const body = parse(request.body)
    if (body === undefined) return notJson(family, moment)
    if (typeof body["model"] !== "string" || body["model"] === "") {
      return family === "A"
        ? refusal("A", moment, 400, "you must provide a model parameter", { param: "model" })
        : refusal("B", moment, 400, "model: Field required")
    }
    const failure = failureOf(body["model"])
    const answer = generate(body, moment)
    return failure === undefined ? answer : failed(failure, answer, family, moment, this.#settings.slowMs)
  }
}

/** It stands in for registered services and the wildcard too: who asks for theirs has to know whom they reached. */
const whoAnswers = "This is the simulator, which knows the models' routes alone: set UPSTREAM_BASE_URL to leave it."

const notJson = (family: Family, moment: Moment): Answer =>
  refusal(family, moment, 400, "The body is not a JSON object.")

/** Both families list their models at the same path; only family B's clients state a version. */
const familyOf = (path: string, headers: ReadonlyArray<string>): Family =>
  path.startsWith("/v1/messages") ||
  headers.some((name, i) => i % 2 === 0 && name.toLowerCase() === "anthropic-version")
    ? "B"
    : "A"

/** The header is the operator's choice, so it is known by the sound of its name. */
const hasCredential = (headers: ReadonlyArray<string>): boolean =>
  headers.some((name, i) => {
    if (i % 2 !== 0 || !/(?:^|-)(?:authorization|key|token|secret|credential)$/i.test(name)) return false
    if (name.toLowerCase() === "idempotency-key") return false
    return (headers[i + 1] ?? "").replace(/^(?:bearer|basic)\b/i, "").trim() !== ""
  })
