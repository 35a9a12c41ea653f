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

/** As the ingress tells it. Where that is no origin, the path alone leads to the right place as well. */
const publicOrigin = (headers: Headers.RawHeaders): string => {
  const scheme = first(headers, "x-forwarded-proto") ?? "http"
  const host = first(headers, "x-forwarded-host") ?? Headers.get(headers, "host") ?? ""
  return /^https?$/.test(scheme) && /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i.test(host) ? `${scheme}://${host}` : ""
}

/** The first proxy's word: each on the way may have added its own. */
const first = (headers: Headers.RawHeaders, name: string): string | undefined =>
  Headers.get(headers, name)?.split(",", 1)[0]?.trim()
