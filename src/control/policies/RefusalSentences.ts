import type { DeniedAmounts } from "../../state/UsageRecord.ts"
import type { Refusal } from "../api/holder/HolderApi.ts"
import { limitOfCheck, ofLimit } from "./LimitSentences.ts"

export interface FailedRequest {
  readonly statusCode: number
  readonly errorCode: string | null
  /** The check that refused the request, such as `model` or `shared_daily_budget_usd`. */
  readonly check: string | null
  /** True if the request was for a registered service. Default: it was for a model. */
  readonly isOfService?: boolean
  /** Only if a limit refused the request. */
  readonly amounts?: DeniedAmounts | undefined
}

const askForMore = "ask whoever gave you the key for a higher limit"
const say = (sentence: string, what_to_do: string): Refusal => ({ sentence, what_to_do })

/** By the check that refused the request. Limits have sentences of their own. */
const byCheck: Readonly<Record<string, Refusal>> = {
  deny: say("Requests like this one are denied.", "Ask whoever gave you the key."),
  route: say("This key may not use this path.", "Use another path, or ask whoever gave you the key."),
  provider: say("This key may not use this upstream.", "Ask whoever gave you the key."),
  hours: say(
    "This key may not be used at this hour.",
    "Send it in an hour that the key allows (allowed_hours_utc of GET me)."
  ),
  concurrency: say("Too many requests of this key ran at once.", "Wait until one has ended, and send fewer at once."),
  service: say("This key may not use this service.", "Ask whoever gave you the key."),
  model: say("This key may not use this model.", "Choose one of the models of GET me/models, or ask for this one."),
  streaming: say("This key may not stream responses.", "Send the request without stream."),
  tools: say("This key may not use tools.", "Send the request without tools."),
  tool_count: say("The request had more tools than this key may send.", "Send fewer tools."),
  tool_schema: say("The tools of the request were larger than this key may send.", "Send smaller or fewer tools."),
  input_tokens: say("The input was longer than this key may send.", "Send a shorter input."),
  output_tokens: say("The request asked for more output than this key may have.", "Ask for fewer output tokens."),
  cost: say(
    "The request could have cost more than this key may spend on one.",
    "Ask for fewer output tokens, or use a cheaper model."
  ),
  price: say(
    "The model has no price, and this key may only use models with one.",
    "Choose a model with a price (GET me/models)."
  ),
  later_work: say(
    "The request would go on after its response, which the limits of this key do not allow.",
    "Send the work as ordinary requests."
  )
}

const byCode: Readonly<Record<string, Refusal>> = {
  invalid_virtual_key: say(
    "The gateway does not know this secret of the key.",
    "Use the key's current secret, or ask whoever gave you the key."
  ),
  disabled_virtual_key: say("The key is disabled.", "Ask whoever gave you the key."),
  revoked_virtual_key: say("The key was revoked.", "Ask for another key."),
  expired_virtual_key: say("The key has expired.", "Ask for another key."),
  budget_exceeded: say(
    "The request could cost more than what was left of a budget.",
    `Wait until it resets (GET me/limits), or ${askForMore}.`
  ),
  rate_limit_exceeded: say(
    "A limit of requests was used up.",
    `Wait until it resets (GET me/limits), or ${askForMore}.`
  ),
  token_rate_limit_exceeded: say(
    "The request could use more tokens than a limit had left.",
    `Wait until it resets (GET me/limits), or ${askForMore}.`
  ),
  concurrency_limit_exceeded: say("Too many requests of this key ran at once.", "Send fewer at once."),
  policy_denied: say("The policy of this key denies the request.", "Ask whoever gave you the key."),
  guardrail_blocked: say(
    "A guardrail blocked the request or its response.",
    "Remove what the guardrail found: personal data, secrets, or what your organisation does not send."
  ),
  guardrail_forbidden: say(
    "The request named a guardrail that this key may not use.",
    "Send it without this guardrail (GET me/guardrails lists the others)."
  ),
  guardrail_unavailable: say(
    "A guardrail could not be asked, so the request was not sent.",
    "Send it again later; tell an operator if it stays so."
  ),
  invalid_guardrail_request: say(
    "The guardrails of the request were not valid.",
    "Name guardrails of GET me/guardrails."
  ),
  disabled_route: say("An operator has disabled this path.", "Ask an operator."),
  disabled_service: say("An operator has disabled this service.", "Ask an operator."),
  incomplete_service: say("This service is not set up completely.", "Ask an operator."),
  missing_service: say("There is no such service.", "Check its name."),
  unsupported_route: say("The gateway has no such path.", "Check the path and the method."),
  object_not_found: say(
    "The object does not exist, or belongs to another key.",
    "Check its id, and use the key that created it."
  ),
  invalid_request_body: say("The body was not valid.", "Correct what the error message named."),
  invalid_service_payload: say("The body was not valid for this service.", "Correct what the error message named."),
  unsupported_media_type: say(
    "The body had a content type that this path does not take.",
    "Send JSON with content-type application/json."
  ),
  request_body_too_large: say("The body was too large.", "Send a smaller body."),
  response_body_too_large: say(
    "The response was larger than the gateway passes on.",
    "Ask for less output, or stream the response."
  ),
  request_body_timeout: say("The body did not arrive in time.", "Check the connection, and send it again."),
  malformed_request: say("The request was not valid HTTP.", "Check the client."),
  gateway_overloaded: say("The gateway was busy.", "Send it again shortly."),
  control_state_unavailable: say(
    "The gateway could not check its limits.",
    "Send it again shortly; tell an operator if it stays so."
  ),
  invalid_configuration: say("The gateway is not configured completely.", "Give an operator the request id."),
  internal_error: say("The gateway failed.", "Give an operator the request id.")
}

/** Says in plain words why a request failed. `null` if it did not fail. */
export const sentenceOf = (request: FailedRequest): Refusal | null => {
  const { amounts, check, errorCode, isOfService = false, statusCode } = request
  const upstream = isOfService ? "The service" : "The model provider"
  if (errorCode === null) return statusCode < 400 ? null : answered(upstream, statusCode)
  const limit = check === null ? undefined : limitOfCheck(check)
  if (limit !== undefined) return ofLimit({ ...limit, amounts })
  return (
    (check === null ? undefined : byCheck[check]) ??
    unanswered(upstream)[errorCode] ??
    byCode[errorCode] ??
    say(`The request failed (${errorCode}).`, "Give an operator the request id.")
  )
}

const unanswered = (upstream: string): Readonly<Record<string, Refusal>> => ({
  upstream_connection: say(
    `${upstream} could not be reached.`,
    "Send it again later; tell an operator if it stays so."
  ),
  upstream_timeout: say(`${upstream} did not respond in time.`, "Send it again, with a smaller request if it stays so.")
})

const answered = (upstream: string, status: number): Refusal =>
  status === 429
    ? say(`${upstream} had too many requests.`, "Send it again later.")
    : status >= 500
      ? say(`${upstream} failed with status ${status}.`, "Send it again later.")
      : say(`${upstream} refused the request with status ${status}.`, "Correct what its error message named.")
