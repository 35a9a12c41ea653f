import * as Headers from "./Headers.ts"

/**
 * The answer's headers, with a `Location` in the upstream's UI (`/ui…`, relative or at the upstream's own origin) put
 * at the address by which the browser came through the trusted ingress (reference §11.4).
 */
export const shown =
  (request: Headers.RawHeaders, origin: string) =>
  (answer: Headers.RawHeaders): Headers.RawHeaders =>
    answer.map((value, index) =>
      index % 2 === 1 && answer[index - 1]?.toLowerCase() === "location"
        ? (moved(value, request, origin) ?? value)
        : value
    )

const moved = (location: string, request: Headers.RawHeaders, origin: string): string | undefined => {
  const path = location.startsWith(`${origin}/`) ? location.slice(origin.length) : location
  return /^\/ui(?:[/?#]|$)/.test(path) ? publicOrigin(request) + path : undefined
}

/**
 * The answer's headers, with a `Location` or `Content-Location` at the upstream put at the path by which the client
 * reaches it: the address of an upstream is nothing for clients, and its paths may begin elsewhere at the gateway. One
 * that leads to another host passes, because it does not claim to be of the gateway. `asked` is the client's path and
 * query, `sent` what of it the upstream was asked for.
 */
export const atGateway =
  (asked: string, sent: string, origin: string) =>
  (answer: Headers.RawHeaders): Headers.RawHeaders =>
    Headers.get(answer, "location") === undefined && Headers.get(answer, "content-location") === undefined
      ? answer
      : answer.map((value, index) =>
          index % 2 === 1 && /^(?:content-)?location$/i.test(answer[index - 1] ?? "")
            ? (pathAt(value, origin, prefixOf(asked, sent)) ?? value)
            : value
        )

/** What of the path is the gateway's own: `/providers/compat`, or that of a registered service. */
const prefixOf = (asked: string, sent: string): string => {
  const rest = asked.endsWith(sent) ? sent : sent.slice(1)
  return asked.slice(0, asked.length - rest.length)
}

/** A path that begins at the one that was asked for holds at the gateway as it is. */
const pathAt = (location: string, origin: string, prefix: string): string | undefined => {
  if (!/^(?:\/|[a-z][a-z\d+.-]*:)/i.test(location) || !URL.canParse(location, origin)) return undefined
  const { hash, host, pathname, search } = new URL(location, origin)
  // behind a proxy of its own, an upstream may take http for its scheme
  return host === new URL(origin).host ? prefix + pathname + search + hash : undefined
}

/** As the ingress tells it. Where that is no origin, the path alone leads to the right place as well. */
const publicOrigin = (headers: Headers.RawHeaders): string => {
  const scheme = first(headers, "x-forwarded-proto") ?? "http"
  const host = first(headers, "x-forwarded-host") ?? Headers.get(headers, "host") ?? ""
  return /^https?$/.test(scheme) && /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i.test(host) ? `${scheme}://${host}` : ""
}

/** The first proxy's word: each on the way may have added its own. */
const first = (headers: Headers.RawHeaders, name: string): string | undefined =>
  Headers.get(headers, name)?.split(",", 1)[0]?.trim()
