import { Effect, Result, Schema } from "effect"
import * as JsonBounds from "../policy/facts/JsonBounds.ts"
import * as JsonMembers from "../policy/facts/JsonMembers.ts"
import { Action, Config, type Mode } from "../policy/Guardrail.ts"
import type { Egress } from "../services/Egress.ts"
import type { HttpProvider } from "./Definitions.ts"
import type { GuardrailFailure, Verdict } from "./GuardrailOutcome.ts"

/** Tells an HTTP guardrail to which request the text belongs. */
export interface RequestContext {
  readonly key_id: string
  readonly team_id: string | null
  readonly user_id: string | null
  readonly project_id: string | null
  readonly model: string | null
  readonly route: string
  readonly provider: string
}

interface GuardrailCall {
  readonly requestId: string
  readonly guardrail: string
  readonly mode: Mode
  readonly context: RequestContext
  readonly config: Config
  readonly text: string
}

const Reply = Schema.fromJsonString(
  Schema.Struct({
    action: Action,
    request: Schema.optionalKey(Schema.Json),
    response: Schema.optionalKey(Schema.Json),
    reason: Schema.optionalKey(Schema.NullOr(Schema.String)),
    metadata: Schema.optionalKey(Schema.NullOr(Config))
  })
)
const decodeReply = Schema.decodeUnknownResult(Reply)

/** A reply may repeat the text. Escapes make it up to six times longer. A reply may also add a short explanation. */
const maxReplyBytes = (text: string): number => 65_536 + 6 * Buffer.byteLength(text)

/** Calls an HTTP guardrail once, without a retry. Anything other than a valid reply is a failure. */
export const call = (
  egress: Egress["Service"],
  provider: HttpProvider,
  request: GuardrailCall
): Effect.Effect<Result.Result<Verdict, GuardrailFailure>> => {
  const { timeoutMs, token, url } = provider
  // The call is not made, because it would lack its token or disclose the token of another server.
  if (token._tag === "Unreadable" || token._tag === "OtherOrigin") return Effect.succeed(unavailable)
  return egress
    .fetch({
      method: "POST",
      url,
      caller: request.context.key_id,
      headers: {
        "content-type": "application/json",
        accept: "application/json",
        "x-svc-request-id": request.requestId
      },
      ...(token._tag === "Present" && { bearer: token.credential }),
      body: Buffer.from(encodeCall(request)),
      withinMs: timeoutMs,
      maxBytes: maxReplyBytes(request.text)
    })
    .pipe(
      Effect.map(({ body, status }) =>
        status >= 200 && status < 300 ? decodeVerdict(request, Buffer.from(body).toString()) : unavailable
      ),
      Effect.catch(({ message, reason }) =>
        Effect.as(
          Effect.logWarning("a guardrail did not respond; its failure policy applies", {
            guardrail: request.guardrail,
            reason,
            why: message
          }),
          unavailable
        )
      )
    )
}

const unavailable: Result.Result<Verdict, GuardrailFailure> = Result.fail({ code: "guardrail_unavailable" })

/** Inserts the text unparsed, because parsing and writing its numbers could change them. */
const encodeCall = ({ config, context, guardrail, mode, requestId, text }: GuardrailCall): string => {
  const head = JSON.stringify({ request_id: requestId, guardrail, mode, context, config })
  const [request, response] = mode === "pre_call" ? [text, "null"] : ["null", text]
  return `${head.slice(0, -1)},"request":${request},"response":${response}}`
}

const decodeVerdict = (call: GuardrailCall, body: string): Result.Result<Verdict, GuardrailFailure> => {
  if (JsonBounds.excessOf(body) !== undefined) return Result.fail(unreadable)
  try {
    const decoded = decodeReply(body)
    if (Result.isFailure(decoded)) return Result.fail(unreadable)
    const { action, metadata, reason } = decoded.success
    const [own, other] =
      call.mode === "pre_call" ? (["request", "response"] as const) : (["response", "request"] as const)
    const text = memberText(body, own)
    // A reply that changes the wrong member would let the unchanged text pass.
    if (text === undefined && memberText(body, other) !== undefined) return Result.fail(unreadable)
    const replacesResponse = text !== undefined && call.mode !== "pre_call"
    if (replacesResponse && isObject(call.text) && !isObject(text)) return Result.fail(unreadable)
    return Result.succeed({
      action,
      reason: reason ?? null,
      metadata: metadata ?? {},
      ...(text !== undefined && { text })
    })
  } catch {
    // Decoding throws if the JSON nests more deeply than the call stack allows.
    return Result.fail(unreadable)
  }
}

/** Returns the JSON of a member as it was sent, so that its numbers keep their digits; `undefined` for `null`. */
const memberText = (json: string, name: string): string | undefined => {
  const member = JsonMembers.topLevel(json).findLast(({ key }) => key === name)
  const text = member && json.slice(member.valueStart, member.end)
  return text === "null" ? undefined : text
}

const isObject = (json: string): boolean => json.trimStart().startsWith("{")

const unreadable: GuardrailFailure = { code: "invalid_guardrail_request" }
