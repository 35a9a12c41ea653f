import { hopByHop, namePattern, neverForwarded } from "../../policy/facts/RequestHeaders.ts"

/** Headers as Effect's server represents them: lower-case names, one value each. */
export type HeaderFields = Readonly<Record<string, string>>

/** Headers as the upstream sent them: name, value, name, value. */
type RawHeaders = ReadonlyArray<string>

/** The request headers that go to the upstream. `alsoStripped` lists further names to drop, in lower case. */
export const forwardedHeaders = (headers: HeaderFields, alsoStripped: ReadonlyArray<string>): ReadonlyArray<string> =>
  Object.entries(headers)
    .filter(([name]) => !strippedHeaders.test(name) && !alsoStripped.includes(name))
    .flat()

const strippedHeaders = namePattern([
  // Operator tokens, gateway keys and headers that only the gateway may set.
  ...neverForwarded,
  // Cookies of other programs on this host; the upstream's own are added by name.
  "cookie",
  // Encoded or partial responses cannot be rewritten.
  ...["accept-encoding", "range", "if-range"],
  // The gateway sends its own request id instead.
  "x-request-id"
])

/** A service worker could answer for this origin even after the session has ended. */
export const isServiceWorker = (headers: HeaderFields): boolean =>
  headers["service-worker"] !== undefined || headers["sec-fetch-dest"] === "serviceworker"

/**
 * Response headers for the control origin: an allow list of names that only describe the response. None of them makes a
 * browser do anything to the origin or host, and future headers are excluded.
 */
export const forControlOrigin = (headers: RawHeaders): Record<string, string> =>
  joinFields(headers, (name) => descriptiveHeaders.test(name) && !originWideHeaders.test(name))

const descriptiveHeaders = namePattern([
  ...["content-type", "content-encoding", "content-language", "content-range", "content-disposition"],
  ...["accept-ranges", "allow", "date", "etag", "last-modified", "retry-after", "vary", "x-.*"]
])

/** Response headers for the origin of the upstream's UI: all except those with effects beyond the response. */
export const forOwnOrigin = (headers: RawHeaders): Record<string, string> =>
  joinFields(headers, (name) => !originWideHeaders.test(name))

const originWideHeaders = namePattern([
  // Connection headers; rewriting changes the length.
  ...[...hopByHop, "content-length", "x-request-id"],
  // Rewritten separately.
  ...["location", "set-cookie", "set-cookie2"],
  // A service worker would outlive the session and could read the codes of later ones.
  "service-worker-allowed",
  // Other origins must not read what an operator's session opens.
  ...["access-control-.*", "timing-allow-origin", "x-permitted-cross-domain-policies"],
  // Clears cookies, storage and caches of the whole site, which may include the control origin.
  "clear-site-data",
  // These apply to the host on every port, or redirect its later requests and reports.
  ...["strict-transport-security", "public-key-pins.*", "expect-ct", "alt-svc"],
  ...["report-to", "reporting-endpoints", "nel", "content-security-policy-report-only"],
  // The gateway decides who may frame or open these pages.
  ...["x-frame-options", "cross-origin-.*"],
  // A browser would ask for a password on this origin, and the gateway never forwards it.
  ...["www-authenticate", "authentication-info"],
  // Browsers keep these dictionaries and client hints for the whole origin.
  ...["use-as-dictionary", "accept-ch", "critical-ch"]
])

/** Joins fields of the same name (RFC 9110 §5.3). */
const joinFields = (headers: RawHeaders, passes: (name: string) => boolean): Record<string, string> => {
  const fields: Record<string, string> = {}
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i]!.toLowerCase()
    if (!passes(name)) continue
    const before = fields[name]
    fields[name] = before === undefined ? headers[i + 1]! : `${before}, ${headers[i + 1]!}`
  }
  return fields
}

/** All values of the header `name`, given in lower case. */
export const valuesOf = (headers: RawHeaders, name: string): ReadonlyArray<string> =>
  headers.filter((_, index) => index % 2 === 1 && headers[index - 1]?.toLowerCase() === name)
