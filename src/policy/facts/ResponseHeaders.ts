import { hopByHop, namePattern } from "./RequestHeaders.ts"

/** A `program` calls a route with a key. A `browser` uses the upstream's UI and needs its cookies. */
export type ClientKind = "program" | "browser"

/** Upstream headers that no client receives, because they would take effect for the gateway's host. */
const neverReturned = [
  // describe the upstream connection
  ...[...hopByHop, "alt-svc", "proxy-authorization", "authorization"],
  "x-svc-.*",
  // apply to every port of the gateway's host, beyond this response
  ...["strict-transport-security", "public-key-pins", "expect-ct", "clear-site-data", "service-worker-allowed"],
  // send reports about the gateway's host elsewhere
  ...["nel", "report-to", "reporting-endpoints"],
  // grant web pages access with the client's rights
  ...["access-control-.*", "timing-allow-origin", "x-permitted-cross-domain-policies"],
  "set-cookie2"
]

/** A program that stores cookies would send them to every other upstream of the gateway. */
const browserOnly = ["set-cookie"]

export const strippedFromResponses: Readonly<Record<ClientKind, RegExp>> = {
  program: namePattern([...neverReturned, ...browserOnly]),
  browser: namePattern(neverReturned)
}
