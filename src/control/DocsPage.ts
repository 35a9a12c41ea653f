import { createHash } from "node:crypto"
import { Effect, Function, Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { HttpApiSwagger } from "effect/http-api"
import { ControlApi } from "./api/ControlApi.ts"
import { ownAnswer } from "./RequestIds.ts"

/**
 * Allows the scripts that the page has by their hashes, and calls of this API. The page carries the whole of Swagger UI,
 * which sets styles and shows pictures from `data:` URLs; nothing is fetched from elsewhere.
 */
const policyOf = (html: string): string => {
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
const guarded = Function.memoize((page: HttpServerResponse.HttpServerResponse) => {
  const { body } = page
  const html = body._tag === "Uint8Array" ? Buffer.from(body.body).toString() : ""
  return HttpServerResponse.setHeaders(page, { ...ownAnswer, "content-security-policy": policyOf(html) })
})

/** The documentation of the control API, as a page. */
export const layer = HttpApiSwagger.layer(ControlApi, { path: "/admin-ui/docs" }).pipe(
  Layer.provide(HttpRouter.middleware((httpEffect) => Effect.map(httpEffect, guarded)).layer)
)
