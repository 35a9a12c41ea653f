import { createHash } from "node:crypto"
import { gzipSync } from "node:zlib"
import { Effect, Function, Layer } from "effect"
import { HttpBody, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiSwagger, OpenApi } from "effect/http-api"
import { ControlApi } from "../api/ControlApi.ts"
import { encodingOf } from "./FileEncoding.ts"
import { securityHeaders } from "./RequestIds.ts"
import { transformResponse } from "./ResponseTransform.ts"

/**
 * Returns the Content-Security-Policy of the Swagger UI page. The page needs inline styles and images from `data:`
 * URLs. The policy allows the page's scripts by their hashes, and requests to this API.
 */
const contentSecurityPolicyOf = (html: string): string => {
  const hashes = Array.from(html.matchAll(/<script[^>]*>([\s\S]*?)<\/script>/g), ([, script = ""]) => {
    // A browser hashes the parsed text, in which every line ends with LF.
    const text = script.replace(/\r\n?/g, "\n")
    return `'sha256-${createHash("sha256").update(text).digest("base64")}'`
  })
  return [
    "default-src 'none'",
    `script-src ${hashes.join(" ")}`,
    "style-src 'unsafe-inline'",
    "img-src data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'"
  ].join("; ")
}

/** Swagger returns the same response object for every request, so memoizing hashes the scripts only once. */
const withSecurityHeaders = Function.memoize((page: HttpServerResponse.HttpServerResponse) => {
  const { body } = page
  const html = body._tag === "Uint8Array" ? Buffer.from(body.body).toString() : ""
  return HttpServerResponse.setHeaders(page, {
    ...securityHeaders,
    "content-security-policy": contentSecurityPolicyOf(html)
  })
})

/**
 * Builds the responses of a document: whole in both encodings, and a 304. It is compressed once, because everybody may ask
 * for it. The headers of a 304 replace the headers that the client stored.
 */
const responsesOf = Function.memoize((document: HttpServerResponse.HttpServerResponse) => {
  const { body } = document
  if (body._tag !== "Uint8Array") throw new Error(`the document has a body of the kind ${body._tag}`)
  const identity = body.body
  const file = { identity, gzip: gzipSync(identity) }
  // weak, as both encodings have it
  const etag = `W/"${createHash("sha256").update(identity).digest("base64url")}"`
  const described = HttpServerResponse.setHeaders(document, { etag, vary: "accept-encoding" })
  const respond = (accepted: string) => {
    const [encoding, bytes] = encodingOf(file, accepted)
    if (encoding === undefined) return described
    const encoded = HttpServerResponse.setBody(described, HttpBody.uint8Array(bytes, body.contentType))
    return HttpServerResponse.setHeader(encoded, "content-encoding", encoding)
  }
  const unchanged = HttpServerResponse.setStatus(HttpServerResponse.setBody(described, HttpBody.empty), 304)
  return { etag, respond, unchanged }
})

/** A document changes only with the program version. Clients may store it and revalidate it with its ETag. */
const respondConditionally = Effect.fnUntraced(function* (document: HttpServerResponse.HttpServerResponse) {
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const { etag, respond, unchanged } = responsesOf(document)
  yield* transformResponse((response) => HttpServerResponse.setHeader(response, "cache-control", "no-cache"))
  const known = (headers["if-none-match"] ?? "").split(",").map((tag) => withoutWeakPrefix(tag.trim()))
  return known.includes(withoutWeakPrefix(etag)) || known.includes("*")
    ? unchanged
    : respond(headers["accept-encoding"] ?? "")
})

const withoutWeakPrefix = (tag: string): string => tag.replace(/^W\//, "")

const page = HttpApiSwagger.layer(ControlApi, { path: "/admin-ui/docs" }).pipe(
  Layer.provide(
    HttpRouter.middleware((httpEffect) =>
      Effect.flatMap(httpEffect, (response) => respondConditionally(withSecurityHeaders(response)))
    ).layer
  )
)

const openApiDocument = Function.memoize((api: typeof ControlApi) =>
  HttpServerResponse.jsonUnsafe(OpenApi.fromApi(api))
)

const document = HttpRouter.add(
  "GET",
  "/admin-ui/openapi.json",
  Effect.suspend(() => respondConditionally(openApiDocument(ControlApi)))
)

export const layer = Layer.mergeAll(page, document)
