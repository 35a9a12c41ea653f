import * as Headers from "../../http/Headers.ts"
import type { UpstreamBase } from "../../policy/routes/UpstreamBase.ts"

/**
 * The answer's headers, with a `Location` in the upstream's UI (`/ui…`, relative or at the upstream's own origin) put
 * at the address by which the browser came through the trusted ingress.
 */
export const forBrowser =
  (request: Headers.RawHeaders, base: UpstreamBase) =>
  (answer: Headers.RawHeaders): Headers.RawHeaders =>
    answer.map((value, index) =>
      index % 2 === 1 && answer[index - 1]?.toLowerCase() === "location"
        ? (browserLocation(value, request, base) ?? value)
        : value
    )

const browserLocation = (location: string, request: Headers.RawHeaders, base: UpstreamBase): string | undefined => {
  const { origin } = base
  const path = gatewayPath(location.startsWith(`${origin}/`) ? location.slice(origin.length) : location, base)
  return path !== undefined && /^\/ui(?:[/?#]|$)/.test(path) ? publicOrigin(request) + path : undefined
}

/** The gateway's path for one of the upstream; `undefined` for one that lies beside the base. */
const gatewayPath = (path: string, { prefix, replaced }: UpstreamBase): string | undefined =>
  prefix === "" || (path.startsWith(prefix) && /^(?:[/?#]|$)/.test(path.slice(prefix.length)))
    ? replaced + path.slice(prefix.length)
    : undefined

/**
 * The answer's headers, with a `Location` or `Content-Location` at the upstream put at the path by which the client
 * reaches it: the address of an upstream is nothing for clients, and its paths may begin elsewhere at the gateway. One
 * that leads to another host, or beside the upstream's base, passes: it does not claim to be of the gateway. `asked` is
 * the client's path and query, `sent` what of it the upstream was asked for, below its base.
 */
export const forClient =
  (asked: string, sent: string, base: UpstreamBase) =>
  (answer: Headers.RawHeaders): Headers.RawHeaders =>
    Headers.get(answer, "location") === undefined && Headers.get(answer, "content-location") === undefined
      ? answer
      : answer.map((value, index) =>
          index % 2 === 1 && /^(?:content-)?location$/i.test(answer[index - 1] ?? "")
            ? (clientLocation(value, base, gatewayPrefix(asked, sent)) ?? value)
            : value
        )

/** What of the path is the gateway's own: `/providers/compat`, or that of a registered service. */
const gatewayPrefix = (asked: string, sent: string): string => {
  const rest = asked.endsWith(sent) ? sent : sent.slice(1)
  return asked.slice(0, asked.length - rest.length)
}

/** A path that begins at the one that was asked for holds at the gateway as it is. */
const clientLocation = (location: string, base: UpstreamBase, prefix: string): string | undefined => {
  const { origin } = base
  if (!/^(?:\/|[a-z][a-z\d+.-]*:)/i.test(location) || !URL.canParse(location, origin)) return undefined
  const { hash, host, pathname, search } = new URL(location, origin)
  // behind a proxy of its own, an upstream may take http for its scheme
  const path = host === new URL(origin).host ? gatewayPath(pathname, base) : undefined
  return path === undefined ? undefined : prefix + path + search + hash
}

/** As the ingress tells it. Where that is no origin, the path alone leads to the right place as well. */
const publicOrigin = (headers: Headers.RawHeaders): string => {
  const scheme = firstForwarded(headers, "x-forwarded-proto") ?? "http"
  const host = firstForwarded(headers, "x-forwarded-host") ?? Headers.get(headers, "host") ?? ""
  return /^https?$/.test(scheme) && /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i.test(host) ? `${scheme}://${host}` : ""
}

/** The first proxy's word: each on the way may have added its own. */
const firstForwarded = (headers: Headers.RawHeaders, name: string): string | undefined =>
  Headers.get(headers, name)?.split(",", 1)[0]?.trim()
