import type { Redacted } from "effect"
import { isGatewayCookie, withoutGatewayCookies } from "../policy/facts/GatewayCookies.ts"
import { namePattern, neverForwarded } from "../policy/facts/RequestHeaders.ts"
import { type ClientKind, strippedFromResponses } from "../policy/facts/ResponseHeaders.ts"
import { type CredentialStyle, credentialField } from "../policy/routes/CredentialStyle.ts"

/** Header fields as sent: alternating names and values, in their original order and case. */
export type RawHeaders = ReadonlyArray<string>

const strippedFromRequests = namePattern(neverForwarded)

/** Comparing the lengths first avoids most calls of `toLowerCase`. */
const isNamed = (candidate: string, name: string): boolean =>
  candidate.length === name.length && candidate.toLowerCase() === name

const isAnyOf = (candidate: string, names: ReadonlyArray<string>): boolean => {
  for (const name of names) if (isNamed(candidate, name)) return true
  return false
}

/** `name` must be in lower case. */
export const get = (headers: RawHeaders, name: string): string | undefined => {
  for (let i = 0; i + 1 < headers.length; i += 2) {
    if (isNamed(headers[i]!, name)) return headers[i + 1]!
  }
  return undefined
}

/** `name` must be in lower case. */
export const getAll = (headers: RawHeaders, name: string): ReadonlyArray<string> => {
  const values: Array<string> = []
  for (let i = 0; i + 1 < headers.length; i += 2) {
    if (isNamed(headers[i]!, name)) values.push(headers[i + 1]!)
  }
  return values
}

/** Returns the names of hop-by-hop headers that a `Connection` header lists, or `undefined`. */
const connectionOptions = (headers: RawHeaders): ReadonlySet<string> | undefined => {
  let named: Set<string> | undefined
  for (let i = 0; i + 1 < headers.length; i += 2) {
    if (!isNamed(headers[i]!, "connection")) continue
    for (const option of headers[i + 1]!.split(",")) {
      const name = option.trim().toLowerCase()
      // `keep-alive` and `close` are options of the connection, not header names.
      if (name === "keep-alive" || name === "close") continue
      named ??= new Set()
      named.add(name)
    }
  }
  return named
}

const copyWithout = (headers: RawHeaders, drop: (name: string, value: string) => boolean): Array<string> => {
  const named = connectionOptions(headers)
  const kept: Array<string> = []
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i]!
    if (!drop(name, headers[i + 1]!) && named?.has(name.toLowerCase()) !== true) kept.push(name, headers[i + 1]!)
  }
  return kept
}

export interface UpstreamHeaderOptions {
  readonly credential: Redacted.Redacted
  readonly style: CredentialStyle
  readonly credentialHeaders: ReadonlyArray<string>
  readonly keyHeader: string
  readonly gatewayHeaders: ReadonlyArray<readonly [string, string]>
  /** True if the gateway reads the response. The upstream must then not compress it. */
  readonly plainResponse: boolean
}

/** Removes client credentials and `x-svc-*` headers. Adds the upstream credential and the gateway's headers. */
export const forUpstream = (headers: RawHeaders, injected: UpstreamHeaderOptions): RawHeaders => {
  const { keyHeader, credentialHeaders, style } = injected
  const out = copyWithout(
    headers,
    (name) =>
      strippedFromRequests.test(name) ||
      isAnyOf(name, credentialHeaders) ||
      isNamed(name, keyHeader) ||
      (injected.plainResponse && isNamed(name, "accept-encoding"))
  )
  for (let i = out.length - 2; i >= 0; i -= 2) {
    if (!isNamed(out[i]!, "cookie")) continue
    const kept = withoutGatewayCookies(out[i + 1]!)
    if (kept === undefined) out.splice(i, 2)
    else out[i + 1] = kept
  }
  out.push(...credentialField(style, injected.credential))
  if (injected.plainResponse) out.push("accept-encoding", "identity")
  for (const [name, value] of injected.gatewayHeaders) out.push(name, value)
  return out
}

/** Removes headers that clients must not see. Headers of `own` replace headers with the same name (in lower case). */
export const forClient = (
  headers: RawHeaders,
  own: ReadonlyArray<readonly [string, string]>,
  reader: ClientKind = "program"
): Array<string> => {
  const gatewayNames = own.map(([name]) => name)
  const stripped = strippedFromResponses[reader]
  const out = copyWithout(
    headers,
    (name, value) =>
      stripped.test(name) || isAnyOf(name, gatewayNames) || (isNamed(name, "set-cookie") && isGatewayCookie(value))
  )
  for (const [name, value] of own) out.push(name, value)
  return out
}

export const without = (headers: RawHeaders, name: string): Array<string> =>
  copyWithout(headers, (other) => isNamed(other, name))

export const contentType = (headers: RawHeaders): string => (get(headers, "content-type") ?? "").toLowerCase()

export const contentEncoding = (headers: RawHeaders): string =>
  (get(headers, "content-encoding") ?? "identity").toLowerCase()

export const contentLength = (headers: RawHeaders): number | undefined => {
  const length = Number(get(headers, "content-length") ?? Number.NaN)
  return Number.isSafeInteger(length) && length >= 0 ? length : undefined
}

export const isEventStream = (headers: RawHeaders): boolean => contentType(headers).startsWith("text/event-stream")

export const traceId = (traceparent: string | undefined): string | undefined => {
  const found =
    traceparent === undefined ? null : /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$/i.exec(traceparent)
  return found?.[1]?.toLowerCase()
}

/** Returns the id that a client sent, or `undefined` if the id is unsafe in logs or headers. */
export const validClientId = (value: string | undefined): string | undefined =>
  value !== undefined && /^[\x21-\x7e]{1,128}$/.test(value) ? value : undefined
