import { createHash } from "node:crypto"
import { Effect, Function, Layer } from "effect"
import { HttpBody, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiSwagger, OpenApi } from "effect/http-api"
import { ControlApi } from "../api/ControlApi.ts"
import { securityHeaders } from "./RequestIds.ts"
import { transformResponse } from "./ResponseTransform.ts"

/**
 * Allows the scripts that the page has by their hashes, and calls of this API. The page carries the whole of Swagger UI,
 * which sets styles and shows pictures from `data:` URLs; nothing is fetched from elsewhere.
 */
const contentSecurityPolicyOf = (html: string): string => {
  const hashes = Array.from(html.matchAll(/<script[^>]*>([\s\S]*?)<\/script>/g), ([, script = ""]) => {
    // a browser hashes the text that its parser has, in which each line ends with LF
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

/** Swagger makes one response for all requests, so its scripts are hashed once. */
const withSecurityHeaders = Function.memoize((page: HttpServerResponse.HttpServerResponse) => {
  const { body } = page
  const html = body._tag === "Uint8Array" ? Buffer.from(body.body).toString() : ""
  return HttpServerResponse.setHeaders(page, {
    ...securityHeaders,
    "content-security-policy": contentSecurityPolicyOf(html)
  })
})

const bytesOf = ({ body }: HttpServerResponse.HttpServerResponse) => (body._tag === "Uint8Array" ? body.body : "")

/** Both answers for a document: the whole of it, and that it has not changed. The latter's headers replace stored ones. */
const withEtag = Function.memoize((document: HttpServerResponse.HttpServerResponse) => {
  const etag = `"${createHash("sha256").update(bytesOf(document)).digest("base64url")}"`
  const full = HttpServerResponse.setHeader(document, "etag", etag)
  const unchanged = HttpServerResponse.setStatus(HttpServerResponse.setBody(full, HttpBody.empty), 304)
  return { etag, whole: full, unchanged }
})

/** A document is the same for everybody until the next version, so clients keep it, and ask whether it has changed. */
const respondConditionally = Effect.fnUntraced(function* (document: HttpServerResponse.HttpServerResponse) {
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const { etag, unchanged, whole } = withEtag(document)
  yield* transformResponse((response) => HttpServerResponse.setHeader(response, "cache-control", "no-cache"))
  const clientEtags = (headers["if-none-match"] ?? "").split(",").map((tag) => tag.trim().replace(/^W\//, ""))
  return clientEtags.includes(etag) || clientEtags.includes("*") ? unchanged : whole
})

/** The documentation of the control API, as a page. */
const page = HttpApiSwagger.layer(ControlApi, { path: "/admin-ui/docs" }).pipe(
  Layer.provide(
    HttpRouter.middleware((httpEffect) =>
      Effect.flatMap(httpEffect, (made) => respondConditionally(withSecurityHeaders(made)))
    ).layer
  )
)

/** Made by the first request for it, and once. */
const openApiDocument = Function.memoize((api: typeof ControlApi) =>
  HttpServerResponse.jsonUnsafe(OpenApi.fromApi(api))
)

/** The document that the page shows. */
const document = HttpRouter.add(
  "GET",
  "/admin-ui/openapi.json",
  Effect.suspend(() => respondConditionally(openApiDocument(ControlApi)))
)

/** Where people begin who know only the address. */
const redirectsToDocs = HttpRouter.addAll(
  (["/", "/admin-ui", "/admin-ui/"] as const).map((path) =>
    HttpRouter.route("GET", path, HttpServerResponse.redirect("/admin-ui/docs", { status: 302 }))
  )
)

export const layer = Layer.mergeAll(page, document, redirectsToDocs)
