import { hopByHop, namePattern, neverForwarded } from "../../policy/facts/RequestHeaders.ts"

/** As the server of Effect has them: names in lower case, each with one value. */
export type HeaderFields = Readonly<Record<string, string>>

/** As the upstream sent them: name, value, name, value. */
type RawHeaders = ReadonlyArray<string>

/** Request headers that do not go to the upstream. `own`: further names, in lower case. */
export const forwardedHeaders = (headers: HeaderFields, alsoStripped: ReadonlyArray<string>): ReadonlyArray<string> =>
  Object.entries(headers)
    .filter(([name]) => !strippedHeaders.test(name) && !alsoStripped.includes(name))
    .flat()

const strippedHeaders = namePattern([
  // operator tokens, gateway keys and what only the gateway may say
  ...neverForwarded,
  // cookies of every program on this host; those that the upstream set are added by name
  "cookie",
  // an encoded or partial answer could not be rewritten
  ...["accept-encoding", "range", "if-range"],
  // the gateway's own is sent in its place
  "x-request-id"
])

/** The browser wants to install a script that would answer for this origin later, also after the session has ended. */
export const isServiceWorker = (headers: HeaderFields): boolean =>
  headers["service-worker"] !== undefined || headers["sec-fetch-dest"] === "serviceworker"

/**
 * Response headers for the control origin, where the upstream may describe its answer and nothing else. A browser obeys
 * none of these names for the origin or the host; a header that browsers learn to obey is not among them.
 */
export const forControlOrigin = (headers: RawHeaders): Record<string, string> =>
  joinFields(headers, (name) => descriptiveHeaders.test(name) && !originWideHeaders.test(name))

const descriptiveHeaders = namePattern([
  ...["content-type", "content-encoding", "content-language", "content-range", "content-disposition"],
  ...["accept-ranges", "allow", "date", "etag", "last-modified", "retry-after", "vary", "x-.*"]
])

/** Response headers for the origin that is the upstream's alone: all but those that reach beyond one answer. */
export const forOwnOrigin = (headers: RawHeaders): Record<string, string> =>
  joinFields(headers, (name) => !originWideHeaders.test(name))

const originWideHeaders = namePattern([
  // they describe the connection to the upstream; the length changes when an answer is rewritten
  ...[...hopByHop, "content-length", "x-request-id"],
  // translated by their own rules
  ...["location", "set-cookie", "set-cookie2"],
  // a service worker would outlive the session and see the codes of later ones
  "service-worker-allowed",
  // other origins may not read what an operator's session opens
  ...["access-control-.*", "timing-allow-origin", "x-permitted-cross-domain-policies"],
  // cookies, storage and caches of the whole site, which the control origin may be part of
  "clear-site-data",
  // they hold for the host on every port, or send its later requests and reports elsewhere
  ...["strict-transport-security", "public-key-pins.*", "expect-ct", "alt-svc"],
  ...["report-to", "reporting-endpoints", "nel", "content-security-policy-report-only"],
  // who may frame or open these pages is decided here
  ...["x-frame-options", "cross-origin-.*"],
  // a browser would ask for a password on this origin, and no answer to it is ever forwarded
  ...["www-authenticate", "authentication-info"],
  // these compression dictionaries and client hints are kept for the whole origin
  ...["use-as-dictionary", "accept-ch", "critical-ch"]
])

/** Fields of the same name are joined (RFC 9110 §5.3). */
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

/** Every value of `name` (lower case). */
export const valuesOf = (headers: RawHeaders, name: string): ReadonlyArray<string> =>
  headers.filter((_, index) => index % 2 === 1 && headers[index - 1]?.toLowerCase() === name)
