import type { Redacted } from "effect"
import { isGatewayCookie, withoutGatewayCookies } from "../policy/facts/GatewayCookies.ts"
import { namePattern, neverForwarded } from "../policy/facts/RequestHeaders.ts"
import { type ClientKind, strippedFromResponses } from "../policy/facts/ResponseHeaders.ts"
import { type CredentialStyle, credentialField } from "../policy/routes/CredentialStyle.ts"

/** Header fields as they travel: name, value, name, value; in order, with their case and their repetitions. */
export type RawHeaders = ReadonlyArray<string>

const strippedFromRequests = namePattern(neverForwarded)

/** Comparing lengths first spares most names a copy in lower case. */
const isNamed = (candidate: string, name: string): boolean =>
  candidate.length === name.length && candidate.toLowerCase() === name

const isAnyOf = (candidate: string, names: ReadonlyArray<string>): boolean => {
  for (const name of names) if (isNamed(candidate, name)) return true
  return false
}

/** The first value of `name` (lower case). */
export const get = (headers: RawHeaders, name: string): string | undefined => {
  for (let i = 0; i + 1 < headers.length; i += 2) {
    if (isNamed(headers[i]!, name)) return headers[i + 1]!
  }
  return undefined
}

/** Every value of `name` (lower case), in order. */
export const getAll = (headers: RawHeaders, name: string): ReadonlyArray<string> => {
  const values: Array<string> = []
  for (let i = 0; i + 1 < headers.length; i += 2) {
    if (isNamed(headers[i]!, name)) values.push(headers[i + 1]!)
  }
  return values
}

/** Names that the message's own `Connection` fields declare hop-by-hop; `undefined` where it declares none. */
const connectionOptions = (headers: RawHeaders): ReadonlySet<string> | undefined => {
  let named: Set<string> | undefined
  for (let i = 0; i + 1 < headers.length; i += 2) {
    if (!isNamed(headers[i]!, "connection")) continue
    for (const option of headers[i + 1]!.split(",")) {
      const name = option.trim().toLowerCase()
      // what nearly every message says names no header
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
  /** Further credential headers to strip, lower case. */
  readonly credentialHeaders: ReadonlyArray<string>
  /** Where clients may have put their gateway key, lower case. */
  readonly keyHeader: string
  /** What the gateway says of the request: `x-svc-request-id` and the like, in the order given. */
  readonly gatewayHeaders: ReadonlyArray<readonly [string, string]>
  /** The gateway reads the answer's tokens, so it must come unencoded. */
  readonly plainResponse: boolean
}

/**
 * The request's headers for the upstream: without any credential of the client, without inbound `x-svc-*`, with the
 * resolved credential. Everything else passes as it came.
 */
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

/** The answer's headers for the client, with `own` in place of the upstream's fields of the same names (lower case). */
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

/** A `traceparent` that means something: passed on, and its trace id recorded. */
export const traceId = (traceparent: string | undefined): string | undefined => {
  const found =
    traceparent === undefined ? null : /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$/i.exec(traceparent)
  return found?.[1]?.toLowerCase()
}

/** An id that a client gave, when it is fit for logs and headers. */
export const validClientId = (value: string | undefined): string | undefined =>
  value !== undefined && /^[\x21-\x7e]{1,128}$/.test(value) ? value : undefined
