import type { IncomingMessage, ServerResponse } from "node:http"

/** Origins of web pages whose scripts may ask the proxy listener; `*`: of all pages. */
export type AllowedOrigins = ReadonlyArray<string>

/** How long a browser may remember what a preflight said, in seconds. */
const preflightMaxAgeSeconds = 7200

/** Names of headers with commas between them, as browsers write them. */
const headerNames = /^[\w\-, ]{1,4096}$/

/**
 * Lets scripts of allowed pages call the gateway: it marks the answer that is to come, and answers a preflight itself
 * (then it answers true). Keys come in headers and never as cookies, so that credentials are not allowed.
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
