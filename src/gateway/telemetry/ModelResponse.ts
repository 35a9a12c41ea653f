import type { ResponseReader } from "../usage/ResponseReader.ts"
import { isObject } from "../usage/TokenUsage.ts"
import { parse } from "../usage/TrailingUsage.ts"
import type { ModelCallFacts } from "./GenAiAttributes.ts"

export interface ModelResponseOptions {
  /** True if the response's id, model and finish reasons are wanted. Otherwise only the chunks are timed. */
  readonly isRecorded: boolean
  readonly now: () => number
  /** Receives the milliseconds between two chunks of a stream. */
  readonly onGap: ((ms: number) => void) | undefined
}

/** Reads what telemetry says of a model's response, and times its chunks. A chunk is an event of the stream. */
export class ModelResponse implements ResponseReader {
  /** `undefined` if the response is no stream, or has sent nothing. */
  firstChunkAt: number | undefined
  readonly #options: ModelResponseOptions
  #lastChunkAt = 0
  #id: string | undefined
  #model: string | undefined
  #finishReasons: Array<string> = []

  constructor(options: ModelResponseOptions) {
    this.#options = options
  }

  get facts(): Pick<ModelCallFacts, "responseId" | "responseModel" | "finishReasons"> {
    return {
      responseId: this.#id,
      responseModel: this.#model,
      finishReasons: this.#finishReasons.length === 0 ? undefined : this.#finishReasons
    }
  }

  onEvent(line: Buffer): void {
    if (isEndMark(line)) return
    const isFirst = this.firstChunkAt === undefined
    this.#time()
    if (!this.#options.isRecorded) return
    // The first event names the response. The events of usage name it too, but a stream may end before them.
    if (isFirst && line.length <= maxParsedBytes) this.onJson(parse(line.toString("utf8", dataField.length)))
    this.#addFinishReason(finishReasonIn(line))
  }

  onJson(json: unknown): void {
    if (!this.#options.isRecorded || !isObject(json)) return
    const { choices, delta, message, response } = json
    const body = isObject(response) ? response : isObject(message) ? message : json
    this.#id ??= identifier(body["id"])
    this.#model ??= identifier(body["model"])
    // Of a stream, most events with choices are not parsed, so `onEvent` finds their finish reasons.
    if (Array.isArray(choices) && this.firstChunkAt === undefined) {
      for (const choice of choices) if (isObject(choice)) this.#addFinishReason(choice["finish_reason"])
    }
    if (isObject(delta)) this.#addFinishReason(delta["stop_reason"])
    this.#addFinishReason(body["stop_reason"])
    if (body["object"] === "response") this.#addFinishReason(endOfResponse(body["status"], body["incomplete_details"]))
  }

  #time(): void {
    const at = this.#options.now()
    if (this.firstChunkAt === undefined) this.firstChunkAt = at
    else this.#options.onGap?.(at - this.#lastChunkAt)
    this.#lastChunkAt = at
  }

  #addFinishReason(reason: unknown): void {
    const known = identifier(reason)
    if (known !== undefined && this.#finishReasons.length < maxFinishReasons) this.#finishReasons.push(known)
  }
}

/** The first event of a Responses stream repeats the request's instructions. A longer one is not parsed. */
const maxParsedBytes = 16_384
const maxFinishReasons = 16

const dataField = Buffer.from("data:")
const finishReasonName = Buffer.from('"finish_reason"')

/** OpenAI's streams end with `data: [DONE]`. */
const isEndMark = (line: Buffer): boolean => line.length < 16 && line.includes("[DONE]")

/** Quotes within texts are escaped, so the name is that of a member. Most events have the member with `null`. */
const finishReasonIn = (line: Buffer): string | undefined => {
  const at = line.indexOf(finishReasonName)
  if (at === -1) return undefined
  const value = line.toString("latin1", at + finishReasonName.length, at + finishReasonName.length + 64)
  return /^\s*:\s*"([^"]*)"/.exec(value)?.[1]
}

/** Text of the upstream becomes an attribute only if it looks like an identifier. */
const identifier = (value: unknown): string | undefined =>
  typeof value === "string" && /^[\w./:@-]{1,128}$/.test(value) ? value : undefined

/** The Responses API has no finish reason. It says whether the response is complete, and why it is not. */
const endOfResponse = (status: unknown, incomplete: unknown): unknown => {
  if (isObject(incomplete)) return incomplete["reason"]
  return status === "completed" || status === "failed" || status === "incomplete" ? status : undefined
}
