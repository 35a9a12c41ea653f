import { hopByHop, namePattern, neverForwarded } from "../../policy/facts/RequestHeaders.ts"

/** Headers as Effect's HTTP server represents them: lower-case names with one value each. */
export type HeaderFields = Readonly<Record<string, string>>

/** Headers as the upstream sent them: names and values in turn. */
type RawHeaders = ReadonlyArray<string>

/** Returns the request headers to forward. `alsoStripped` contains further lower-case names to remove. */
export const forwardedHeaders = (headers: HeaderFields, alsoStripped: ReadonlyArray<string>): ReadonlyArray<string> =>
  Object.entries(headers)
    .filter(([name]) => !strippedHeaders.test(name) && !alsoStripped.includes(name))
    .flat()

const strippedHeaders = namePattern([
  // These headers contain operator tokens or gateway keys, or only the gateway may set them.
  ...neverForwarded,
  // This header contains cookies of other programs on this host. The upstream's own cookies are added separately.
  "cookie",
  // The gateway rewrites addresses in responses. This is impossible in encoded or partial responses.
  ...["accept-encoding", "range", "if-range"],
  "x-request-id"
])

/** A service worker could answer requests of this origin even after the session has ended. */
export const isServiceWorker = (headers: HeaderFields): boolean =>
  headers["service-worker"] !== undefined || headers["sec-fetch-dest"] === "serviceworker"

/**
 * On the origin of the operator API, only headers that describe the response are allowed. They do not change how a
 * browser treats the origin or host. Unknown headers are removed, because they might.
 */
export const forControlOrigin = (headers: RawHeaders): Record<string, string> =>
  joinFields(headers, (name) => descriptiveHeaders.test(name) && !originWideHeaders.test(name))

const descriptiveHeaders = namePattern([
  ...["content-type", "content-encoding", "content-language", "content-range", "content-disposition"],
  ...["accept-ranges", "allow", "date", "etag", "last-modified", "retry-after", "vary", "x-.*"]
])

/** On the UI's own origin, all headers are allowed except headers with effects beyond the response. */
export const forOwnOrigin = (headers: RawHeaders): Record<string, string> =>
  joinFields(headers, (name) => !originWideHeaders.test(name))

const originWideHeaders = namePattern([
  // These headers belong to the connection, or they change when the gateway rewrites the body.
  ...[...hopByHop, "content-length", "x-request-id"],
  ...["location", "set-cookie", "set-cookie2"],
  // A service worker would outlive the session and could read the links of later sessions.
  "service-worker-allowed",
  // With these headers, other origins could read pages of the operator's session.
  ...["access-control-.*", "timing-allow-origin", "x-permitted-cross-domain-policies"],
  // This header would clear cookies, storage and caches of the whole site, which may include the operator API.
  "clear-site-data",
  // These headers apply to the host on every port, or redirect its later requests and reports.
  ...["strict-transport-security", "public-key-pins.*", "expect-ct", "alt-svc"],
  ...["report-to", "reporting-endpoints", "nel", "content-security-policy-report-only"],
  // The gateway itself decides which sites may frame or open these pages.
  ...["x-frame-options", "cross-origin-.*"],
  // With these headers, a browser would ask for a password. The gateway never forwards passwords.
  ...["www-authenticate", "authentication-info"],
  // Browsers keep dictionaries and client hints for the whole origin.
  ...["use-as-dictionary", "accept-ch", "critical-ch"]
])

/** Fields of the same name are joined with commas (RFC 9110 §5.3). */
const joinFields = (headers: RawHeaders, passes: (name: string) => boolean): Record<string, string> => {
  // An object would already have members such as `constructor`.
  const fields = new Map<string, string>()
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i]!.toLowerCase()
    if (!passes(name)) continue
    const before = fields.get(name)
    fields.set(name, before === undefined ? headers[i + 1]! : `${before}, ${headers[i + 1]!}`)
  }
  return Object.fromEntries(fields)
}

export const valuesOf = (headers: RawHeaders, name: string): ReadonlyArray<string> =>
  headers.filter((_, index) => index % 2 === 1 && headers[index - 1]?.toLowerCase() === name)
