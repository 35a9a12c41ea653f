import { Predicate, Result } from "effect"
import * as Headers from "../../http/Headers.ts"
import * as Facts from "../../policy/facts/Facts.ts"
import type { Json } from "../../policy/facts/Json.ts"
import * as JsonMembers from "../../policy/facts/JsonMembers.ts"
import * as RequestParameters from "../../policy/facts/RequestParameters.ts"
import { type BodyLimit, requestTooLarge } from "../../policy/routes/BodyLimit.ts"
import type { RouteId } from "../../policy/routes/CanonicalRoute.ts"
import type { BodyLease } from "../../services/BodyLeases.ts"
import { GatewayError } from "../GatewayError.ts"
import * as BodyAdmission from "./BodyAdmission.ts"
import type { BodyHash } from "./BodyHash.ts"
import * as BodyPace from "./BodyPace.ts"
import * as ContentTypes from "./ContentTypes.ts"
import type { BodyFailure, Wire } from "./Wire.ts"

export const bodyError = (failure: BodyFailure, limit: BodyLimit, withinMs: number): GatewayError => {
  switch (failure._tag) {
    case "TooLarge":
      return new GatewayError({
        code: "request_body_too_large",
        message: requestTooLarge(limit)
      })
    case "TooSlow":
      return new GatewayError({
        code: "request_body_timeout",
        message: BodyPace.timeoutMessage(BodyPace.defaultPace, failure.by, withinMs)
      })
    case "Cut":
      return new GatewayError({
        code: "invalid_request_body",
        message: "The request body ended before it was complete. Send the request again."
      })
    case "NoRoom":
      return BodyAdmission.refusal(failure.whose, "request")
  }
}

export interface Body {
  readonly bytes: Buffer | null
  readonly facts: Facts.Facts
  /** True if only the gateway requested usage figures in the stream. They are then removed from the response. */
  readonly hideUsage: boolean
  /** True for a body that is not JSON. Guardrails cannot inspect such a body. */
  readonly opaque?: boolean
  /** Set if they were wanted, and the body is JSON. */
  readonly parameters?: RequestParameters.RequestParameters
  /** Set if the gateway streams the body instead of reading it into memory. `bytes` is `null` then. */
  readonly streamed?: StreamedBody
}

interface StreamedBody {
  readonly bytes: AsyncIterable<Uint8Array>
  readonly refusal: () => GatewayError | undefined
  /** The token estimate for the largest possible size. `tokens` returns the estimate for the bytes streamed so far. */
  readonly maxTokens: number
  readonly tokens: () => number
}

const noBody: Body = { bytes: null, facts: Facts.noFacts, hideUsage: false }

const bodyOptional: ReadonlySet<RouteId | "compat" | "service"> = new Set(["message-batch-cancel"])

export interface ReadOptions {
  readonly routeId: RouteId | "compat" | "service"
  readonly limit: BodyLimit
  readonly withinMs: number
  readonly lease: BodyLease
  /** True if the gateway's policy applies. Members addressed to the gateway, such as `guardrails`, are then removed. */
  readonly managed: boolean
  /** True if a span describes the request. */
  readonly readsParameters: boolean
  /** True if the gateway counts tokens and the protocol's streams report them only on request. */
  readonly requestsUsage: boolean
  readonly hash: BodyHash
}

/** Reads the body of a POST. `done` receives `undefined` for other methods, which have no body. */
export const read = (
  wire: Wire,
  options: ReadOptions,
  done: (result: Result.Result<Buffer | undefined, GatewayError>) => void
): void => {
  if (wire.method === "POST") readJson(wire, options, done)
  else done(Result.succeed(undefined))
}

export const readJson = (
  wire: Wire,
  options: Pick<ReadOptions, "lease" | "limit" | "withinMs"> & Partial<Pick<ReadOptions, "hash">>,
  done: (result: Result.Result<Buffer, GatewayError>) => void
): void => {
  readWhole(wire, unsupportedType(wire.headers), options, done)
}

export const readAny: typeof readJson = (wire, options, done) => {
  readWhole(
    wire,
    ContentTypes.duplicateContentType(wire.headers) ?? ContentTypes.unreadableEncoding(wire.headers),
    options,
    done
  )
}

const readWhole = (
  wire: Wire,
  unreadable: string | undefined,
  {
    hash,
    lease,
    limit,
    withinMs
  }: Pick<ReadOptions, "lease" | "limit" | "withinMs"> & Partial<Pick<ReadOptions, "hash">>,
  done: (result: Result.Result<Buffer, GatewayError>) => void
): void => {
  if (unreadable !== undefined) {
    done(Result.fail(new GatewayError({ code: "unsupported_media_type", message: unreadable })))
  } else {
    wire.readBody({ maxBytes: limit.bytes, withinMs, lease }, (read) => {
      if (hash !== undefined) hashComplete(hash, read)
      done(Result.mapError(read, (failure) => bodyError(failure, limit, withinMs)))
    })
  }
}

export const hashComplete = (hash: BodyHash, read: Result.Result<Buffer, BodyFailure>): void => {
  if (Result.isFailure(read)) return
  hash.update(read.success)
  hash.complete()
}

export const parse = (bytes: Buffer | undefined, options: ReadOptions): Result.Result<Body, GatewayError> => {
  if (bytes === undefined || (bytes.length === 0 && bodyOptional.has(options.routeId))) return Result.succeed(noBody)
  return toBody(Facts.parse(options.routeId, bytes), bytes, options)
}

export const parseJson = (
  json: Facts.JsonText,
  bytes: Buffer,
  options: ReadOptions
): Result.Result<Body, GatewayError> => toBody(Facts.ofJson(options.routeId, json), bytes, options)

const toBody = (
  parsed: Result.Result<Facts.ParsedBody, Facts.BodyProblem>,
  bytes: Buffer,
  options: ReadOptions
): Result.Result<Body, GatewayError> =>
  Result.mapBoth(parsed, {
    onFailure: (problem) => new GatewayError(problem),
    onSuccess: (parsed) => ({
      ...bytesToForward(parsed, bytes, options),
      facts: parsed.facts,
      ...(options.readsParameters && { parameters: RequestParameters.of(parsed.request) })
    })
  })

/** Policy depends on the body, so the gateway refuses a content type that it cannot parse. */
const unsupportedType = (headers: Headers.RawHeaders): string | undefined => {
  const typeProblem = ContentTypes.duplicateContentType(headers) ?? ContentTypes.unreadableEncoding(headers)
  if (typeProblem !== undefined) return typeProblem
  const type = Headers.get(headers, "content-type")
  return type === undefined || /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(type)
    ? undefined
    : "This route requires a JSON object: send content-type: application/json."
}

/** Edits the JSON text, because serializing the parsed value recurses and could overflow the stack. */
const withUsageRequested = (body: string): string => {
  const options = valueIn(body, "stream_options")
  const withUsage = JsonMembers.withMember(options.startsWith("{") ? options : "{}", "include_usage", "true")
  return JsonMembers.withMember(body, "stream_options", withUsage)
}

const valueIn = (body: string, name: string): string => {
  const member = JsonMembers.topLevel(body).find(({ key }) => key === name)
  return member === undefined ? "" : body.slice(member.valueStart, member.end)
}

const asksForUsageItself = (options: Json | undefined): boolean =>
  Predicate.isObject(options) && "include_usage" in options && options["include_usage"] === true

const bytesToForward = (
  { extraStreamOptions, facts, streamOptions, text }: Facts.ParsedBody,
  bytes: Buffer,
  { requestsUsage, managed }: ReadOptions
): Omit<Body, "facts"> => {
  const clientRequestsUsage = asksForUsageItself(streamOptions)
  const extraBodyOverrides = extraStreamOptions !== undefined && !asksForUsageItself(extraStreamOptions)
  const addsUsageRequest = requestsUsage && facts.stream && (!clientRequestsUsage || extraBodyOverrides)
  const removesGuardrails = managed && facts.namesGuardrails
  if (!addsUsageRequest && !removesGuardrails) return { bytes, hideUsage: false }
  const own = removesGuardrails ? JsonMembers.without(text, (key) => key === "guardrails") : text
  const withUsage = addsUsageRequest ? withUsageRequested(own) : own
  const extra = valueIn(own, "extra_body")
  const sent =
    addsUsageRequest && extraBodyOverrides
      ? JsonMembers.withMember(withUsage, "extra_body", withUsageRequested(extra))
      : withUsage
  return {
    bytes: Buffer.from(sent),
    hideUsage: addsUsageRequest && !clientRequestsUsage && !asksForUsageItself(extraStreamOptions)
  }
}
