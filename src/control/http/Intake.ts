import { ByteSize, Context, Effect, Layer, Schema, SchemaIssue, type Types } from "effect"
import { type HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import { type HttpApiEndpoint, HttpApiError } from "effect/http-api"
import { BodyRoom, NoRoom } from "../../http/BodyRoom.ts"
import * as JsonBounds from "../../policy/facts/JsonBounds.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { BodyOptional, Intake, LeavesOut, MaxBodyBytes, unreadableRows } from "../api/schema/Security.ts"
import { LeftOut } from "../store/Store.ts"
import { changeAnswer } from "./AnswerChange.ts"
import { overloaded } from "./Refusals.ts"

type Mistake = Refused<"not_found" | "invalid_request">

export const layer: Layer.Layer<Intake, never, BodyRoom> = Layer.effect(
  Intake,
  Effect.map(BodyRoom, ({ holding }) =>
    Intake.of((httpEffect, { endpoint }) => {
      const maxBodyBytes = Context.get(endpoint.annotations, MaxBodyBytes)
      return readable(endpoint).pipe(
        Effect.andThen(Context.get(endpoint.annotations, LeavesOut) ? namesLeftOut : Effect.succeed(undefined)),
        Effect.flatMap((leftOut) =>
          Effect.catch(
            Effect.provideService(httpEffect, LeftOut, leftOut),
            (error): Effect.Effect<never, Types.unhandled | Mistake> =>
              HttpApiError.HttpApiSchemaError.is(error) ? mistakes(error) : Effect.fail(error)
          )
        ),
        Effect.provideService(HttpServerRequest.MaxBodySize, ByteSize.bytes(maxBodyBytes)),
        holding(endpoint.payload.size === 0 ? 0 : maxBodyBytes),
        Effect.catchIf(isNoRoom, (error) => Effect.fail(overloaded(error)))
      )
    })
  )
)

const isNoRoom = Schema.is(NoRoom)

const mostNames = 100
/** Servers in between, and clients, take no more than some kilobytes of headers. */
const mostNameCharacters = 4_096

const namesOf = (leftOut: ReadonlyArray<string>): string => {
  const [first = "", ...others] = leftOut.slice(0, mostNames).map(encodeURIComponent)
  let named = first
  for (const name of others) {
    if (named.length + name.length >= mostNameCharacters) break
    named += `,${name}`
  }
  return named
}

/** A list notes here the rows that it leaves out, and the answer names them. */
const namesLeftOut = Effect.gen(function* () {
  const leftOut: Array<string> = []
  yield* changeAnswer((response) =>
    leftOut.length === 0 ? response : HttpServerResponse.setHeader(response, unreadableRows, namesOf(leftOut))
  )
  return leftOut
})

/** Reads the body, where the endpoint has one; the request keeps it for the decoder behind this. */
const readable = Effect.fnUntraced(function* (endpoint: HttpApiEndpoint.Top) {
  if (endpoint.payload.size === 0) return
  const request = yield* HttpServerRequest.HttpServerRequest
  const maxBodyBytes = Context.get(endpoint.annotations, MaxBodyBytes)
  const body = Effect.mapError(request.text, unread(maxBodyBytes))
  if (Context.get(endpoint.annotations, BodyOptional) && (yield* body) === "") return
  const mediaType = request.headers["content-type"]?.split(";", 1)[0]?.trim().toLowerCase()
  if (mediaType !== "application/json") {
    return yield* new ControlError("unsupported_media_type", "Content-Type must be application/json.")
  }
  const text = yield* body
  // before the parser, which takes far longer for such a body; an operator's own documents may be large
  const excess = JsonBounds.excessOf(text, Math.max(JsonBounds.maxWeight, maxBodyBytes))
  if (excess !== undefined) return yield* new ControlError("invalid_json", excess)
  yield* Effect.mapError(parse(text), () => new ControlError("invalid_json", "The body is not JSON."))
})

const parse = Schema.decodeEffect(Schema.fromJsonString(Schema.Json))

const unread =
  (maxBodyBytes: number) =>
  ({ reason }: HttpServerError.HttpServerError) =>
    reason._tag === "RequestParseError" && reason.reason === "BodyTooLarge"
      ? new ControlError("request_body_too_large", `The body may have at most ${maxBodyBytes} bytes.`)
      : new ControlError("invalid_json", "The body ended before it was complete.")

/**
 * A path with an id that cannot exist leads nowhere; any other mistake is named. An answer that we cannot write is
 * ours.
 */
const mistakes = (error: HttpApiError.HttpApiSchemaError): Effect.Effect<never, Mistake> => {
  switch (error.kind) {
    case "Params":
      return Effect.fail(new ControlError("not_found", "There is nothing at this path."))
    case "Payload":
    case "Query":
    case "Headers":
      return Effect.fail(named(error.cause.issue))
    case "Body":
    case "ResponseHeaders":
      return Effect.die(error)
  }
}

const maxNamedMistakes = 5
const maxPathLength = 128

/** Says where and what was expected. The value itself stays out: it may be a secret in the wrong place. */
const named = (issue: SchemaIssue.Issue): Refused<"invalid_request"> => {
  const found = placed(issue)
  const texts = new Set(found.map(sentence))
  const param = found[0]?.at
  return new ControlError("invalid_request", `${[...texts].slice(0, maxNamedMistakes).join("; ")}.`, {
    ...(param && { param })
  })
}

const placed = (issue: SchemaIssue.Issue) =>
  list(issue).issues.map(({ message, path = [] }) => {
    const at = path.map((step) => String(typeof step === "object" ? step.key : step)).join(".")
    return { at: at.slice(0, maxPathLength), message }
  })

const sentence = ({ at, message }: { readonly at: string; readonly message: string }): string =>
  at === "" ? message : `${at}: ${message}`

/** Of an answer that somebody else gave: where it is not what it should be. */
export const firstMistake = (issue: SchemaIssue.Issue): string => {
  const [found] = placed(issue)
  return found === undefined ? "" : `${sentence(found)}.`
}

const list = SchemaIssue.makeFormatterStandardSchemaV1({
  leafHook: (issue) => {
    switch (issue._tag) {
      case "MissingKey":
        return "is required"
      case "UnexpectedKey":
        return "is not a known field"
      default:
        return SchemaIssue.defaultLeafHook(issue)
    }
  }
})
