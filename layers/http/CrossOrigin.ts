import type { IncomingMessage, ServerResponse } from "node:http"

/** Origins of web pages whose scripts may ask the proxy listener; `*`: of all pages. */
export type Origins = ReadonlyArray<string>

/** How long a browser may remember what a preflight said, in seconds. */
const rememberedFor = 7200

/** Names of headers with commas between them, as browsers write them. */
const headerNames = /^[\w\-, ]{1,4096}$/

/**
 * Lets scripts of allowed pages call the gateway: it marks the answer that is to come, and answers a preflight itself
 * (then it answers true). Keys come in headers and never as cookies, so that credentials are not allowed.
 */
export const make = (origins: Origins) => {
  const all = origins.includes("*")
  return (incoming: IncomingMessage, outgoing: ServerResponse): boolean => {
    const { origin } = incoming.headers
    if (origin === undefined || !(all || origins.includes(origin))) return false
    outgoing.setHeader("access-control-allow-origin", all ? "*" : origin)
    outgoing.setHeader("access-control-expose-headers", "*")
    if (!all) outgoing.setHeader("vary", "origin")
    const method = incoming.headers["access-control-request-method"]
    if (incoming.method !== "OPTIONS" || method === undefined) return false
    const asked = incoming.headers["access-control-request-headers"]
    outgoing
      .writeHead(204, {
        "access-control-allow-methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
        ...(asked !== undefined && headerNames.test(asked) && { "access-control-allow-headers": asked }),
        "access-control-max-age": `${rememberedFor}`
      })
      .end()
    return true
  }
}
