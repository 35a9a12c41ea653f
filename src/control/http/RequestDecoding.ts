import { ByteSize, Context, Effect, Layer, Schema, SchemaIssue, type Types } from "effect"
import { type HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import { type HttpApiEndpoint, HttpApiError } from "effect/http-api"
import { BodyMemory, NoRoom } from "../../http/BodyMemory.ts"
import * as JsonBounds from "../../policy/facts/JsonBounds.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import {
  BodyOptional,
  MaxBodyBytes,
  RequestDecoding,
  SkipsUnreadable,
  unreadableRowsHeader
} from "../api/schema/Security.ts"
import { SkippedRows } from "../store/Rows.ts"
import { overloadedError } from "./ErrorResponses.ts"
import { transformResponse } from "./ResponseTransform.ts"

type DecodingRefusal = Refused<"not_found" | "invalid_request">

export const layer: Layer.Layer<RequestDecoding, never, BodyMemory> = Layer.effect(
  RequestDecoding,
  Effect.map(BodyMemory, ({ withReservation }) =>
    RequestDecoding.of((httpEffect, { endpoint }) => {
      const maxBodyBytes = Context.get(endpoint.annotations, MaxBodyBytes)
      return checkBody(endpoint).pipe(
        Effect.andThen(
          Context.get(endpoint.annotations, SkipsUnreadable) ? collectSkippedRows : Effect.succeed(undefined)
        ),
        Effect.flatMap((skipped) =>
          Effect.catch(
            Effect.provideService(httpEffect, SkippedRows, skipped),
            (error): Effect.Effect<never, Types.unhandled | DecodingRefusal> =>
              HttpApiError.HttpApiSchemaError.is(error) ? toRefusal(error) : Effect.fail(error)
          )
        ),
        Effect.provideService(HttpServerRequest.MaxBodySize, ByteSize.bytes(maxBodyBytes)),
        withReservation(endpoint.payload.size === 0 ? 0 : maxBodyBytes),
        Effect.catchIf(isNoRoom, (error) => Effect.fail(overloadedError(error)))
      )
    })
  )
)

const isNoRoom = Schema.is(NoRoom)

const maxHeaderNames = 100
/** Many proxies and clients refuse headers longer than a few kilobytes. */
const maxHeaderCharacters = 4_096

const skippedRowsHeader = (skipped: ReadonlyArray<string>): string => {
  const [first = "", ...others] = skipped.slice(0, maxHeaderNames).map(encodeURIComponent)
  let named = first
  for (const name of others) {
    if (named.length + name.length >= maxHeaderCharacters) break
    named += `,${name}`
  }
  return named
}

/** Makes the endpoint's lists skip rows that cannot be decoded, and names these rows in a response header. */
const collectSkippedRows = Effect.gen(function* () {
  const skipped: Array<string> = []
  yield* transformResponse((response) =>
    skipped.length === 0
      ? response
      : HttpServerResponse.setHeader(response, unreadableRowsHeader, skippedRowsHeader(skipped))
  )
  return skipped
})

/** Checks the body before the endpoint decodes it. The request caches the text, so the body is read only once. */
const checkBody = Effect.fnUntraced(function* (endpoint: HttpApiEndpoint.Top) {
  if (endpoint.payload.size === 0) return
  const request = yield* HttpServerRequest.HttpServerRequest
  const maxBodyBytes = Context.get(endpoint.annotations, MaxBodyBytes)
  const body = Effect.mapError(request.text, bodyReadError(maxBodyBytes))
  if (Context.get(endpoint.annotations, BodyOptional) && (yield* body) === "") return
  const mediaType = request.headers["content-type"]?.split(";", 1)[0]?.trim().toLowerCase()
  if (mediaType !== "application/json") {
    return yield* new ControlError("unsupported_media_type", "Content-Type must be application/json.")
  }
  const text = yield* body
  // The JSON structure is checked before parsing, because parsing a hostile body takes far longer. The limit is higher
  // than for clients, because operators' documents may be larger.
  const excess = JsonBounds.excessOf(text, Math.max(JsonBounds.maxWeight, maxBodyBytes))
  if (excess !== undefined) return yield* new ControlError("invalid_json", excess)
  yield* Effect.mapError(parse(text), () => new ControlError("invalid_json", "The request body is not valid JSON."))
})

const parse = Schema.decodeEffect(Schema.fromJsonString(Schema.Json))

const bodyReadError =
  (maxBodyBytes: number) =>
  ({ reason }: HttpServerError.HttpServerError) =>
    reason._tag === "RequestParseError" && reason.reason === "BodyTooLarge"
      ? new ControlError("request_body_too_large", `The request body exceeds the limit of ${maxBodyBytes} bytes.`)
      : new ControlError("invalid_json", "The request body ended before it was complete.")

/** An invalid id in the path means 404. A response that does not match its schema is a bug of the gateway. */
const toRefusal = (error: HttpApiError.HttpApiSchemaError): Effect.Effect<never, DecodingRefusal> => {
  switch (error.kind) {
    case "Params":
      return Effect.fail(new ControlError("not_found", "There is nothing at this path."))
    case "Payload":
    case "Query":
    case "Headers":
      return Effect.fail(describeIssues(error.cause.issue))
    case "Body":
    case "ResponseHeaders":
      return Effect.die(error)
  }
}

const maxDescribedIssues = 5
const maxPathLength = 128

/** Names the field and the expected values, but not the actual value. That value may be a misplaced secret. */
const describeIssues = (issue: SchemaIssue.Issue): Refused<"invalid_request"> => {
  const issues = issuesWithPaths(issue)
  const texts = new Set(issues.map(sentence))
  const param = issues[0]?.field
  return new ControlError("invalid_request", `${[...texts].slice(0, maxDescribedIssues).join("; ")}.`, {
    ...(param && { param })
  })
}

const issuesWithPaths = (issue: SchemaIssue.Issue) =>
  formatIssues(issue).issues.map(({ message, path = [] }) => {
    const field = path.map((step) => String(typeof step === "object" ? step.key : step)).join(".")
    return { field: field.slice(0, maxPathLength), message }
  })

const sentence = ({ field, message }: { readonly field: string; readonly message: string }): string =>
  field === "" ? message : `${field}: ${message}`

/** Describes the first problem of a JSON document that another server returned, in one sentence. */
export const describeFirstIssue = (issue: SchemaIssue.Issue): string => {
  const [first] = issuesWithPaths(issue)
  return first === undefined ? "" : `${sentence(first)}.`
}

const formatIssues = SchemaIssue.makeFormatterStandardSchemaV1({
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
