import { Effect } from "effect"
import { HttpMiddleware, HttpRouter, HttpServerRequest } from "effect/http"
import { pathOf, upstreamUiPath } from "./PortalPaths.ts"

const compress = HttpMiddleware.compression({
  algorithms: ["gzip"],
  // A smaller response fits into the first packets of a connection either way.
  minSize: 4_096,
  // Event streams are left out, because a compressor may hold an event back.
  compressible: (contentType) => /^(?:application\/json|text\/(?:csv|html))\b/.test(contentType)
})

/**
 * Compresses what is read for clients that accept gzip: a list of keys takes a tenth of its size. Responses to changes may
 * contain a new secret beside text that the client chose, and their length must not tell anything of it (BREACH). Pages of
 * the upstream pass as they are, for the same reason.
 */
export const Compression = HttpRouter.middleware(
  (httpEffect) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ method, url }) =>
      method === "GET" && !pathOf(url).startsWith(upstreamUiPath) ? compress(httpEffect) : httpEffect
    ),
  { global: true }
)
