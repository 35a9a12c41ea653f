import { Predicate, Result } from "effect"
import * as Headers from "../http/Headers.ts"
import * as Facts from "../policy/facts/Facts.ts"
import type { WildcardTarget } from "../policy/Routing.ts"
import { type CreationRequest, formKindOf, referencedObjects } from "../policy/routes/UpstreamObjects.ts"
import * as UpstreamPaths from "../policy/routes/UpstreamPaths.ts"
import * as StreamedRequest from "./forward/StreamedRequest.ts"
import { GatewayError } from "./GatewayError.ts"
import * as ContentTypes from "./request/ContentTypes.ts"
import * as FormBody from "./request/FormBody.ts"
import type * as Request from "./request/Request.ts"
import * as RequestBody from "./request/RequestBody.ts"
import type { Wire } from "./request/Wire.ts"

export interface ReadBody {
  readonly bytes: Buffer
  readonly references: Facts.Facts["references"]
  readonly creation?: CreationRequest
}

export interface BodyReader {
  readonly read: typeof RequestBody.readJson
  readonly parse: (wire: Wire, bytes: Buffer) => Result.Result<ReadBody, GatewayError>
}

/**
 * Returns a reader that finds references to upstream objects in the body. Returns `undefined` if no reference must be
 * checked. The body is then streamed unread.
 */
export const readerOf = (
  { wire }: Request.Request,
  { config, objects, target }: WildcardTarget
): BodyReader | undefined => {
  if (config.ownership === "shared" || objects._tag === "Unclear" || !StreamedRequest.hasBody(wire)) return undefined
  const multipart = isForm(wire)
  if (objects._tag === "None") {
    return multipart || UpstreamPaths.sensitiveGroup(pathOf(target)) !== undefined ? undefined : readers.any
  }
  const form = formKindOf(objects)
  return multipart && form === "contents" ? undefined : multipart && form === "request" ? readers.form : readers.json
}

const pathOf = (target: string): string => target.split("?", 1)[0]!

const isForm = ({ headers }: Wire): boolean =>
  Headers.getAll(headers, "content-type").every((type) => /^multipart\/form-data\s*(?:;|$)/i.test(type)) &&
  Headers.get(headers, "content-type") !== undefined

/** Rejects JSON that two parsers could read differently, such as JSON with duplicate members. */
const parseJsonBody: BodyReader["parse"] = (_, bytes) =>
  bytes.length === 0
    ? Result.succeed({ bytes, references: [] })
    : Result.mapBoth(Facts.parse("compat", bytes), {
        onFailure: (problem) => new GatewayError(problem),
        onSuccess: ({ facts }) => ({ bytes, references: facts.references, creation: facts })
      })

const parseFormBody: BodyReader["parse"] = (wire, bytes) =>
  FormBody.read(Headers.get(wire.headers, "content-type") ?? "", bytes, new Set(Facts.formFieldNames("compat"))).pipe(
    Result.mapError((message) => new GatewayError({ code: "invalid_request_body", message })),
    Result.flatMap((form) => Result.mapError(Facts.ofForm("compat", form), (problem) => new GatewayError(problem))),
    Result.map(({ references }): ReadBody => ({ bytes, references }))
  )

/** Reads URL-encoded forms as forms and other bodies as JSON. A body of another format names no objects. */
const parseAnyBody: BodyReader["parse"] = (wire, bytes) => {
  if (ContentTypes.isUrlEncoded(wire.headers) && !ContentTypes.startsLikeJson(bytes)) return parseFormBody(wire, bytes)
  const json = Facts.readJson(bytes)
  if (Result.isSuccess(json) && Predicate.isObject(json.success.json)) return parseJsonBody(wire, bytes)
  if (Result.isSuccess(json)) {
    return Result.succeed({ bytes, references: referencedObjects(json.success.text, json.success.json) })
  }
  const { problem } = json.failure
  return ContentTypes.startsLikeJson(bytes)
    ? Result.fail(new GatewayError(problem))
    : Result.succeed({ bytes, references: [] })
}

const readers = {
  json: { read: RequestBody.readJson, parse: parseJsonBody },
  form: { read: RequestBody.readAny, parse: parseFormBody },
  any: { read: RequestBody.readAny, parse: parseAnyBody }
} as const
