import { hopByHop, namePattern } from "./RequestHeaders.ts"

/** A `program` calls the API with a key. A `browser` uses the upstream's UI and needs its cookies. */
export type ClientKind = "program" | "browser"

/** Upstream headers that no client receives, because they would apply to the gateway's host. */
const neverReturned = [
  // These headers describe the connection between gateway and upstream.
  ...[...hopByHop, "alt-svc", "proxy-authorization", "authorization"],
  "x-svc-.*",
  // These headers apply to every port of the gateway's host, and to later responses.
  ...["strict-transport-security", "public-key-pins", "expect-ct", "clear-site-data", "service-worker-allowed"],
  // These headers make browsers report about the gateway's host to another server.
  ...["nel", "report-to", "reporting-endpoints"],
  // These headers let other web pages read responses with the user's permissions.
  ...["access-control-.*", "timing-allow-origin", "x-permitted-cross-domain-policies"],
  "set-cookie2"
]

/** A program that stores an upstream's cookies would send them to the gateway's other upstreams. */
const browserOnly = ["set-cookie"]

export const strippedFromResponses: Readonly<Record<ClientKind, RegExp>> = {
  program: namePattern([...neverReturned, ...browserOnly]),
  browser: namePattern(neverReturned)
}
