import { createHash } from "node:crypto"
import { Effect, Function, Layer } from "effect"
import { HttpBody, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiSwagger, OpenApi } from "effect/http-api"
import { ControlApi } from "../api/ControlApi.ts"
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

const bytesOf = ({ body }: HttpServerResponse.HttpServerResponse) => (body._tag === "Uint8Array" ? body.body : "")

/** Builds a 200 and a 304 response. The headers of a 304 replace the headers that the client stored. */
const withEtag = Function.memoize((document: HttpServerResponse.HttpServerResponse) => {
  const etag = `"${createHash("sha256").update(bytesOf(document)).digest("base64url")}"`
  const full = HttpServerResponse.setHeaders(document, { etag, vary: "Accept-Encoding" })
  const unchanged = HttpServerResponse.setStatus(HttpServerResponse.setBody(full, HttpBody.empty), 304)
  return { etag, whole: full, unchanged }
})

/** A document changes only with the program version. Clients may store it and revalidate it with its ETag. */
const respondConditionally = Effect.fnUntraced(function* (document: HttpServerResponse.HttpServerResponse) {
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const { etag, unchanged, whole } = withEtag(document)
  yield* transformResponse((response) => HttpServerResponse.setHeader(response, "cache-control", "no-cache"))
  const clientEtags = (headers["if-none-match"] ?? "").split(",").map((tag) => tag.trim().replace(/^W\//, ""))
  return clientEtags.includes(etag) || clientEtags.includes("*") ? unchanged : whole
})

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
