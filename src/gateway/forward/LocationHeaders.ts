import * as Headers from "../../http/Headers.ts"
import type { UpstreamBase } from "../../policy/routes/UpstreamBase.ts"

/** Rewrites redirects within the upstream's UI (`/ui…`). The new URL has the public address that the browser uses. */
export const forBrowser =
  (request: Headers.RawHeaders, base: UpstreamBase) =>
  (response: Headers.RawHeaders): Headers.RawHeaders =>
    response.map((value, index) =>
      index % 2 === 1 && response[index - 1]?.toLowerCase() === "location"
        ? (browserLocation(value, request, base) ?? value)
        : value
    )

const browserLocation = (location: string, request: Headers.RawHeaders, base: UpstreamBase): string | undefined => {
  const { origin } = base
  const path = gatewayPath(location.startsWith(`${origin}/`) ? location.slice(origin.length) : location, base)
  return path !== undefined && /^\/ui(?:[/?#]|$)/.test(path) ? publicOrigin(request) + path : undefined
}

const gatewayPath = (path: string, { prefix, replaced }: UpstreamBase): string | undefined =>
  prefix === "" || (path.startsWith(prefix) && /^(?:[/?#]|$)/.test(path.slice(prefix.length)))
    ? replaced + path.slice(prefix.length)
    : undefined

/**
 * Rewrites `Location` and `Content-Location` from the upstream's path to the client's path. Other hosts, and paths
 * outside the upstream's base URL, stay unchanged. `upstreamTarget` is the path and query below that base URL.
 */
export const forClient =
  (clientTarget: string, upstreamTarget: string, base: UpstreamBase) =>
  (response: Headers.RawHeaders): Headers.RawHeaders =>
    Headers.get(response, "location") === undefined && Headers.get(response, "content-location") === undefined
      ? response
      : response.map((value, index) =>
          index % 2 === 1 && /^(?:content-)?location$/i.test(response[index - 1] ?? "")
            ? (clientLocation(value, base, gatewayPrefix(clientTarget, upstreamTarget)) ?? value)
            : value
        )

const gatewayPrefix = (clientTarget: string, upstreamTarget: string): string => {
  const rest = clientTarget.endsWith(upstreamTarget) ? upstreamTarget : upstreamTarget.slice(1)
  return clientTarget.slice(0, clientTarget.length - rest.length)
}

/** Returns `undefined` for a relative reference, because the client can resolve it unchanged. */
const clientLocation = (location: string, base: UpstreamBase, prefix: string): string | undefined => {
  const { origin } = base
  if (!/^(?:\/|[a-z][a-z\d+.-]*:)/i.test(location) || !URL.canParse(location, origin)) return undefined
  const { hash, host, pathname, search } = new URL(location, origin)
  // Compare only the host, because an upstream behind a TLS proxy may report its scheme as http.
  const path = host === new URL(origin).host ? gatewayPath(pathname, base) : undefined
  return path === undefined ? undefined : prefix + path + search + hash
}

/** Returns an empty text if the ingress sent no valid host. The redirect then consists of the path alone. */
const publicOrigin = (headers: Headers.RawHeaders): string => {
  const scheme = firstForwarded(headers, "x-forwarded-proto") ?? "http"
  const host = firstForwarded(headers, "x-forwarded-host") ?? Headers.get(headers, "host") ?? ""
  return /^https?$/.test(scheme) && /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i.test(host) ? `${scheme}://${host}` : ""
}

const firstForwarded = (headers: Headers.RawHeaders, name: string): string | undefined =>
  Headers.get(headers, name)?.split(",", 1)[0]?.trim()
