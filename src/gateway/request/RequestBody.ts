import { Predicate, Result } from "effect"
import * as Headers from "../../http/Headers.ts"
import * as Facts from "../../policy/facts/Facts.ts"
import type { Json } from "../../policy/facts/Json.ts"
import * as JsonMembers from "../../policy/facts/JsonMembers.ts"
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
      return new GatewayError({ code: "invalid_request_body", message: "The request body ended before it was whole." })
    case "NoRoom":
      return BodyAdmission.refusal(failure.whose, "request")
  }
}

export interface Body {
  /** What goes to the upstream. */
  readonly bytes: Buffer | null
  readonly facts: Facts.Facts
  /** The gateway asks for the stream's usage, and the client did not: hide it. */
  readonly hideUsage: boolean
  /** Not JSON: guardrails have nothing to look at. */
  readonly opaque?: boolean
  /** In the place of `bytes`: what nobody looks into goes through as it comes. */
  readonly streamed?: StreamedBody
}

export interface StreamedBody {
  readonly bytes: AsyncIterable<Uint8Array>
  /** Why it came to no good end. */
  readonly refusal: () => GatewayError | undefined
  /** What its length counts as at the most, and, when it has passed, what it counts as. */
  readonly maxTokens: number
  readonly tokens: () => number
}

const noBody: Body = { bytes: null, facts: Facts.noFacts, hideUsage: false }

/** Routes that may be called without a body. */
const bodyOptional: ReadonlySet<RouteId | "compat" | "service"> = new Set(["message-batch-cancel"])

export interface ReadOptions {
  readonly routeId: RouteId | "compat" | "service"
  readonly limit: BodyLimit
  readonly withinMs: number
  readonly lease: BodyLease
  /** Managed mode: the gateway's own members are taken out. */
  readonly managed: boolean
  /** The answer's tokens are to be accounted, and a stream tells them only when asked. */
  readonly requestsUsage: boolean
  /** Is shown the body as it came. */
  readonly hash: BodyHash
}

/** Reads the body of a canonical route; `undefined` where none is due. What it says is for `understand`. */
export const read = (
  wire: Wire,
  options: ReadOptions,
  done: (result: Result.Result<Buffer | undefined, GatewayError>) => void
): void => {
  if (wire.method === "POST") readJson(wire, options, done)
  else done(Result.succeed(undefined))
}

/** The bytes of a body that its headers call JSON; another one is refused. */
export const readJson = (
  wire: Wire,
  options: Pick<ReadOptions, "lease" | "limit" | "withinMs"> & Partial<Pick<ReadOptions, "hash">>,
  done: (result: Result.Result<Buffer, GatewayError>) => void
): void => {
  readWhole(wire, unsupportedType(wire.headers), options, done)
}

/** The bytes of a body, whatever its headers call it, as long as that can be read here. */
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

/** A JSON object, or nothing where nothing is due. */
export const parse = (bytes: Buffer | undefined, options: ReadOptions): Result.Result<Body, GatewayError> => {
  if (bytes === undefined || (bytes.length === 0 && bodyOptional.has(options.routeId))) return Result.succeed(noBody)
  return toBody(Facts.parse(options.routeId, bytes), bytes, options)
}

/** The same of bytes that were read as `json`. */
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
    onSuccess: (parsed) => ({ ...bytesToForward(parsed, bytes, options), facts: parsed.facts })
  })

/** The gateway decides on what it reads, so a body that it cannot read goes nowhere. */
const unsupportedType = (headers: Headers.RawHeaders): string | undefined => {
  const mislabelled = ContentTypes.duplicateContentType(headers) ?? ContentTypes.unreadableEncoding(headers)
  if (mislabelled !== undefined) return mislabelled
  const type = Headers.get(headers, "content-type")
  return type === undefined || /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(type)
    ? undefined
    : "This route takes a JSON object: send content-type: application/json."
}

/** As text: writing a value anew would recurse into whatever the client has put there. */
const withUsageRequested = (body: string): string => {
  const options = valueIn(body, "stream_options")
  const asked = JsonMembers.withMember(options.startsWith("{") ? options : "{}", "include_usage", "true")
  return JsonMembers.withMember(body, "stream_options", asked)
}

const valueIn = (body: string, name: string): string => {
  const member = JsonMembers.topLevel(body).find(({ key }) => key === name)
  return member === undefined ? "" : body.slice(member.valueStart, member.end)
}

const asksForUsageItself = (options: Json | undefined): boolean =>
  Predicate.isObject(options) && "include_usage" in options && options["include_usage"] === true

/**
 * The client's own bytes, unless the gateway has something to say or to take out; then all others stay as they were.
 */
const bytesToForward = (
  { extraStreamOptions, facts, streamOptions, text }: Facts.ParsedBody,
  bytes: Buffer,
  { requestsUsage, managed }: ReadOptions
): Omit<Body, "facts"> => {
  const reports = asksForUsageItself(streamOptions)
  const extraHides = extraStreamOptions !== undefined && !asksForUsageItself(extraStreamOptions)
  const asks = requestsUsage && facts.stream && (!reports || extraHides)
  const strips = managed && facts.namesGuardrails
  if (!asks && !strips) return { bytes, hideUsage: false }
  const own = strips ? JsonMembers.without(text, (key) => key === "guardrails") : text
  const asking = asks ? withUsageRequested(own) : own
  const extra = valueIn(own, "extra_body")
  const sent = asks && extraHides ? JsonMembers.withMember(asking, "extra_body", withUsageRequested(extra)) : asking
  return { bytes: Buffer.from(sent), hideUsage: asks && !reports && !asksForUsageItself(extraStreamOptions) }
}
