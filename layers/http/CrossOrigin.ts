import type { IncomingMessage, ServerResponse } from "node:http"

export type AllowedOrigins = ReadonlyArray<string>

const preflightMaxAgeSeconds = 7200

const headerNames = /^[\w\-, ]{1,4096}$/

/**
 * Adds CORS headers to responses for allowed origins. Answers preflight requests itself, and then returns true. Cookies
 * are not allowed, because clients send their keys in other headers.
 */
export const make = (origins: AllowedOrigins) => {
  const allowsAll = origins.includes("*")
  return (incoming: IncomingMessage, outgoing: ServerResponse): boolean => {
    const { origin } = incoming.headers
    if (origin === undefined || !(allowsAll || origins.includes(origin))) return false
    outgoing.setHeader("access-control-allow-origin", allowsAll ? "*" : origin)
    outgoing.setHeader("access-control-expose-headers", "*")
    if (!allowsAll) outgoing.setHeader("vary", "origin")
    const method = incoming.headers["access-control-request-method"]
    if (incoming.method !== "OPTIONS" || method === undefined) return false
    const requestedHeaders = incoming.headers["access-control-request-headers"]
    outgoing
      .writeHead(204, {
        "access-control-allow-methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
        ...(requestedHeaders !== undefined &&
          headerNames.test(requestedHeaders) && { "access-control-allow-headers": requestedHeaders }),
        "access-control-max-age": `${preflightMaxAgeSeconds}`
      })
      .end()
    return true
  }
}
