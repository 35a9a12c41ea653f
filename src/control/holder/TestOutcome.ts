import { Option, Predicate, Redacted, Schema } from "effect"
import type { EgressError, EgressResponse } from "../../services/Egress.ts"
import type { KeyTestProtocol, SentKeyTest } from "../api/holder/KeyTest.ts"
import { sentenceOf } from "../policies/RefusalSentences.ts"

/** The cost needs the price of the model. */
export type Outcome = Omit<SentKeyTest, "cost_usd" | "latency_ms" | "request_id">

/** Says in plain words what the response means. `key` is left out of the words of others. */
export const ofResponse = (response: EgressResponse, protocol: KeyTestProtocol, key: Redacted.Redacted): Outcome => {
  const { status } = response
  const text = Buffer.from(response.body).toString()
  const body = Option.getOrElse(decodeObject(text), (): JsonMembers => ({}))
  if (status < 400) return ofAnswer(status, body, protocol)
  const code = gatewayCodeOf(response, body)
  if (code !== undefined) {
    return {
      ...nothing,
      ...(sentenceOf({ statusCode: status, errorCode: code, check: null }) ?? unknown),
      outcome: "refused_by_gateway",
      status_code: status,
      error_code: code
    }
  }
  return {
    ...nothing,
    ...(sentenceOf({ statusCode: status, errorCode: null, check: null }) ?? unknown),
    what_to_do: adviceFor(status),
    outcome: "refused_by_provider",
    status_code: status,
    provider_message: shorten(wordsOf(body) ?? text, key)
  }
}

export const ofError = ({ reason, status }: EgressError, withinSeconds: number): Outcome => {
  const status_code = status ?? null
  if (reason === "timeout") {
    return {
      ...nothing,
      outcome: "timeout",
      sentence: `No answer came within ${withinSeconds} seconds, so the test gave up.`,
      what_to_do: "The model may be slow: run the example, and tell whoever gave you the key if it stays so."
    }
  }
  if (reason === "too_large") return { ...unreadable, status_code }
  return {
    ...nothing,
    outcome: "unreachable",
    sentence:
      reason === "redirect"
        ? "Another server answered in place of the gateway."
        : "The gateway could not be reached from this page's server.",
    what_to_do: "Run the example: your program may reach it. Tell whoever gave you the key if it does not.",
    status_code
  }
}

const nothing = {
  status_code: null,
  error_code: null,
  provider_message: null,
  input_tokens: null,
  output_tokens: null
} as const

const unknown = { sentence: "The request failed.", what_to_do: "Tell whoever gave you the key." }

const unreadable: Outcome = {
  ...nothing,
  outcome: "unreadable",
  sentence: "An answer came, but it is not the answer of a model.",
  what_to_do: "Check the name of the model, and tell whoever gave you the key."
}

type JsonMembers = Readonly<Record<string, unknown>>

// No schema goes deeper than it names, because a hostile answer may be nested deeper than the stack.
const decodeObject = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown)))

/** The member that every answer of a model has. */
const answerMembers: Readonly<Record<KeyTestProtocol, string>> = {
  chat: "choices",
  responses: "output",
  messages: "content"
}

const ofAnswer = (status: number, body: JsonMembers, protocol: KeyTestProtocol): Outcome => {
  if (!Array.isArray(body[answerMembers[protocol]])) return { ...unreadable, status_code: status }
  const usage = Option.getOrElse(decodeUsage(body["usage"]), (): typeof Usage.Type => ({}))
  return {
    ...nothing,
    outcome: "works",
    sentence: "Your key, the gateway and the model work.",
    what_to_do: "Run the example.",
    status_code: status,
    input_tokens: usage.prompt_tokens ?? usage.input_tokens ?? null,
    output_tokens: usage.completion_tokens ?? usage.output_tokens ?? null
  }
}

const Tokens = Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000_000 })))
const Usage = Schema.Struct({
  prompt_tokens: Tokens,
  completion_tokens: Tokens,
  input_tokens: Tokens,
  output_tokens: Tokens
})
const decodeUsage = Schema.decodeUnknownOption(Usage)

/** The gateway's own refusals name the id that it has given the request, at a place for each protocol. */
const gatewayCodeOf = ({ headers }: EgressResponse, { error, request_id }: JsonMembers): string | undefined => {
  const refusal = Option.getOrUndefined(decodeRefusal(error))
  const id = headers["x-request-id"]
  return refusal !== undefined && id !== undefined && (refusal.request_id ?? request_id) === id
    ? refusal.code
    : undefined
}

const decodeRefusal = Schema.decodeUnknownOption(
  Schema.Struct({ code: Schema.String, request_id: Schema.optionalKey(Schema.String) })
)

/** The members in which model providers write what was wrong. */
const wordsOf = ({ detail, error, message }: JsonMembers): string | undefined =>
  [Predicate.hasProperty(error, "message") ? error.message : error, message, detail].find(Predicate.isString)

const maxMessageLength = 500

const shorten = (words: string, key: Redacted.Redacted): string | null =>
  words.replaceAll(Redacted.value(key), "rk_live_…").trim().slice(0, maxMessageLength).toWellFormed() || null

const adviceFor = (status: number): string => {
  if (status === 429 || status >= 500) return "Your key works. Send it again later."
  if (status === 401 || status === 403) {
    return "Your key works, but the gateway's own access there does not. Tell whoever gave you the key."
  }
  return status === 404
    ? "Your key works. Check the name of the model."
    : "Your key works. Some models refuse an answer of one token: run the example."
}
