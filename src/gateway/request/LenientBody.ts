import { Predicate, Result } from "effect"
import * as Headers from "../../http/Headers.ts"
import * as Facts from "../../policy/facts/Facts.ts"
import { memberOf } from "../../policy/facts/MemberName.ts"
import * as Query from "../../policy/facts/Query.ts"
import type { BodyLimit } from "../../policy/routes/BodyLimit.ts"
import type { ServiceCall } from "../../policy/ServiceCall.ts"
import * as ServicePricing from "../../policy/ServicePricing.ts"
import { GatewayError } from "../GatewayError.ts"
import type { BodyHash } from "./BodyHash.ts"
import * as ContentTypes from "./ContentTypes.ts"
import * as FormBody from "./FormBody.ts"
import * as RequestBody from "./RequestBody.ts"
import type { BodyFailure, Wire } from "./Wire.ts"

/**
 * The body of a request that may have any content type. The request goes to a registered service, or to a path of the
 * compatible upstream for which the gateway has no route.
 */
export interface Body extends RequestBody.Body {
  readonly select: ServicePricing.SelectText
}

/** `json` must be valid JSON. `maybe` is parsed if it is JSON. `form` is parsed as a form. `opaque` streams unread. */
type Kind = "json" | "maybe" | "form" | "opaque"

const declaredKind = ({ headers, method }: Wire): Kind | "none" => {
  const length = Headers.get(headers, "content-length")
  const declared = (length !== undefined && length !== "0") || Headers.get(headers, "transfer-encoding") !== undefined
  if (!declared && (method === "GET" || method === "DELETE")) return "none"
  const type = Headers.get(headers, "content-type")
  if (type === undefined) return "maybe"
  if (/^[\w.+-]+\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(type)) return "json"
  return /^(?:multipart\/form-data|application\/x-www-form-urlencoded)\b/i.test(type) ? "form" : "opaque"
}

/**
 * Reads the body if policy or prices depend on it. Calls `done` once with a function that parses the body.
 * `policyNeedsBody` returns true if the key's policy or guardrails depend on the body. The declared content type is
 * then not trusted, because the client chooses it.
 */
export const read = (
  wire: Wire,
  service: ServiceCall | undefined,
  options: RequestBody.ReadOptions,
  policyNeedsBody: (unsized: boolean) => boolean,
  done: (body: () => Result.Result<Body, GatewayError>) => void
): void => {
  const declared = declaredKind(wire)
  if (declared === "none") {
    done(() => Result.succeed(emptyBody))
    return
  }
  const { hash, lease, limit, withinMs } = options
  const prices = service === undefined ? undefined : bodyPrices(service)
  const isNeeded =
    declared === "json" ||
    prices !== undefined ||
    policyNeedsBody(Headers.get(wire.headers, "content-length") === undefined)
  const kind = effectiveKind(declared, isNeeded)
  const typeProblem =
    ContentTypes.duplicateContentType(wire.headers) ??
    (isNeeded ? ContentTypes.unreadableEncoding(wire.headers) : undefined)
  if (typeProblem !== undefined) done(() => Result.fail(unsupportedMediaType(typeProblem)))
  else if (kind === "opaque") done(() => streamThrough(wire, limit, withinMs, hash))
  else {
    wire.readBody({ maxBytes: limit.bytes, withinMs, lease }, (read) => {
      RequestBody.hashComplete(hash, read)
      done(() =>
        Result.flatMap(
          Result.mapError(read, (failure) => RequestBody.bodyError(failure, limit, withinMs)),
          (bytes) => parse(bytes, kind, wire, { prices, isNeeded }, options)
        )
      )
    })
  }
}

const bodyPrices = ({ method, path, service: { pricing } }: ServiceCall): ServicePricing.Pricing | undefined =>
  ServicePricing.dependsOnBody(pricing, method, path) ? pricing : undefined

const effectiveKind = (declared: Kind, isNeeded: boolean): Kind => {
  if (declared === "json") return declared
  if (declared === "form") return isNeeded ? declared : "opaque"
  return isNeeded ? "maybe" : declared
}

const invalidBody = (message: string) => new GatewayError({ code: "invalid_request_body", message })

const notJson = invalidBody("The body is not valid JSON.")

/** Returns the body members that set a price. The query must not repeat them, because it may take precedence. */
const pricedMembers = ({ bodyRules }: ServicePricing.Pricing): ReadonlySet<string> =>
  new Set(bodyRules.flatMap(({ json_pointer }) => ServicePricing.pointerTokens(json_pointer).slice(0, 1).map(memberOf)))

const ambiguousPriceMember = (member: string) =>
  invalidBody(
    `The price depends on "${Facts.printable(member)}": send it once, in the body, without escapes and with this exact spelling, and not in the query.`
  )

const unsupportedMediaType = (message: string) => new GatewayError({ code: "unsupported_media_type", message })

const emptyBody: Body = {
  bytes: null,
  facts: Facts.noFacts,
  hideUsage: false,
  select: ServicePricing.selectNothing
}

const parse = (
  bytes: Buffer,
  kind: Exclude<Kind, "opaque">,
  wire: Wire,
  { isNeeded, prices }: { readonly prices: ServicePricing.Pricing | undefined; readonly isNeeded: boolean },
  options: RequestBody.ReadOptions
): Result.Result<Body, GatewayError> => {
  if (bytes.length === 0) return Result.succeed({ ...emptyBody, bytes, opaque: true })
  const queryMember = prices && Query.decidingParameter(wire.target, pricedMembers(prices))
  if (queryMember !== undefined) return Result.fail(ambiguousPriceMember(queryMember))
  if (kind === "form" && !ContentTypes.startsLikeJson(bytes)) {
    const named = prices?.bodyRules.map(({ json_pointer }) => ServicePricing.formFieldsOf(json_pointer)) ?? []
    const unread = named.flatMap(({ other }) => other)
    const wanted = new Set([
      ...Facts.formFieldNames(options.routeId),
      ...named.flatMap(({ plain }) => plain ?? []),
      ...unread
    ])
    const body = opaqueBody(bytes)
    return FormBody.read(Headers.get(wire.headers, "content-type") ?? "", bytes, wanted).pipe(
      Result.flatMap((form) => {
        const found = unread.find((name) => form.fields.has(name))
        return found === undefined
          ? Result.succeed(form)
          : Result.fail(`A form cannot express "${found}" here: send JSON.`)
      }),
      Result.mapError(invalidBody),
      Result.flatMap((form) =>
        Result.mapBoth(Facts.ofForm(options.routeId, form), {
          onFailure: (problem) => new GatewayError(problem),
          onSuccess: (facts): Body => ({
            ...body,
            facts,
            select: prices === undefined ? body.select : ServicePricing.selectFields(form.fields)
          })
        })
      )
    )
  }
  const read = Facts.readJson(bytes)
  if (Result.isFailure(read)) {
    const { isExcess, problem } = read.failure
    const begins = ContentTypes.startsLikeJson(bytes)
    if (kind === "maybe" && !(begins && (isNeeded || isExcess))) return Result.succeed(opaqueBody(bytes))
    return Result.fail(isExcess ? new GatewayError(problem) : notJson)
  }
  const { json, text } = read.success
  const ambiguous = prices && ServicePricing.ambiguousMember(prices, text)
  if (ambiguous !== undefined) return Result.fail(ambiguousPriceMember(ambiguous))
  const select = prices !== undefined ? ServicePricing.selectJson(json) : ServicePricing.selectNothing
  if (!Predicate.isObject(json) && !(options.routeId === "compat" && Array.isArray(json))) {
    return Result.succeed({
      ...emptyBody,
      bytes,
      facts: Facts.factsOfSize(Facts.estimateInput(json, "anywhere")),
      select
    })
  }
  return Result.map(RequestBody.parseJson(read.success, bytes, options), (body): Body => ({ ...body, select }))
}

const opaqueBody = (bytes: Buffer): Body => ({
  ...emptyBody,
  bytes,
  opaque: true,
  facts: Facts.factsOfSize(Math.ceil(bytes.length / 4))
})

/** Streams the body unread. Tokens are estimated from content-length, or else from the bytes streamed. */
const streamThrough = (
  wire: Wire,
  limit: BodyLimit,
  idleMs: number,
  hash: BodyHash
): Result.Result<Body, GatewayError> => {
  const declared = Number(Headers.get(wire.headers, "content-length") ?? Number.NaN)
  if (declared > limit.bytes) return Result.fail(RequestBody.bodyError({ _tag: "TooLarge" }, limit, idleMs))
  let failed: BodyFailure | undefined
  let length = 0
  const bytes = wire.streamBody({
    maxBytes: limit.bytes,
    idleMs,
    onFailure: (failure) => {
      failed = failure
    }
  })
  const counted = async function* () {
    for await (const chunk of bytes) {
      length += chunk.length
      hash.update(chunk)
      yield chunk
    }
    hash.complete()
  }
  return Result.succeed({
    ...emptyBody,
    facts: Facts.factsOfSize(Number.isFinite(declared) ? Math.ceil(declared / 4) : 1),
    streamed: {
      bytes: counted(),
      refusal: () => (failed === undefined ? undefined : RequestBody.bodyError(failed, limit, idleMs)),
      maxTokens: Math.ceil((Number.isFinite(declared) ? declared : limit.bytes) / 4),
      tokens: () => Math.max(1, Math.ceil(length / 4))
    }
  })
}
