import { hopByHop, namePattern } from "./RequestHeaders.ts"

/**
 * A `program` calls a route with a key. A `browser` uses the upstream's UI, which the wildcard serves once an operator
 * exposes it, and needs the upstream's cookies to stay signed in there.
 */
export type ClientKind = "program" | "browser"

/** The headers of an upstream's answer that no client gets, because the client would take them for the gateway's word. */
const neverReturned = [
  // they describe the connection between the gateway and the upstream
  ...[...hopByHop, "alt-svc", "proxy-authorization", "authorization"],
  // only the gateway says these
  "x-svc-.*",
  // they hold for the gateway's host on every port, and long after this answer
  ...["strict-transport-security", "public-key-pins", "expect-ct", "clear-site-data", "service-worker-allowed"],
  // they send later reports about the gateway's host elsewhere
  ...["nel", "report-to", "reporting-endpoints"],
  // which web pages may read answers with the client's rights is not for an upstream to say
  ...["access-control-.*", "timing-allow-origin", "x-permitted-cross-domain-policies"],
  // obsolete, and no cookie that a UI of today needs
  "set-cookie2"
]

/** A program that keeps cookies would send those of one upstream along to every other upstream of the gateway's host. */
const browserOnly = ["set-cookie"]

export const strippedFromResponses: Readonly<Record<ClientKind, RegExp>> = {
  program: namePattern([...neverReturned, ...browserOnly]),
  browser: namePattern(neverReturned)
}
