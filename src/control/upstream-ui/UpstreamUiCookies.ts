import { Cookies } from "effect/http"
import { isGatewayCookie } from "../../policy/facts/GatewayCookies.ts"

/**
 * Cookies know no port, so a browser sends the cookies of every program on this host along. Only those that the upstream
 * set go back to it: the browser keeps each under this prefix, out of the reach of scripts.
 */
const prefix = "svc_upstream_cookie."

/**
 * The upstream's cookies for the browser, for this host alone. One that scripts may read also keeps its own name, because
 * the upstream's pages look for it there.
 */
export const forBrowser = (setCookies: ReadonlyArray<string>): Cookies.Cookies => {
  const cookies: Array<Cookies.Cookie> = []
  for (const { name, options = {}, ...cookie } of setCookies.flatMap(parseSetCookie)) {
    const { domain: _, ...ofThisHost } = options
    cookies.push({ ...cookie, name: prefix + name, options: { ...ofThisHost, httpOnly: true } })
    if (options.httpOnly !== true && !isGatewayCookie(name)) cookies.push({ ...cookie, name, options: ofThisHost })
  }
  // the same name with another path is another cookie, so the names cannot be the keys
  return Cookies.fromReadonlyRecord(Object.fromEntries(cookies.map((cookie, index) => [`${index}`, cookie])))
}

/** Runs of blanks become one first: the parser takes quadratic time on them. */
const parseSetCookie = (setCookie: string): ReadonlyArray<Cookies.Cookie> =>
  Object.values(Cookies.fromSetCookie(setCookie.replace(/[\t ]+/g, " ")).cookies)

/** As many hosts as may set a cookie for this one: itself as a host, as a domain, and the domains above it. */
const maxSessionCookies = 4

/**
 * The cookies that may be the session, likeliest first. Without TLS a script of the upstream's pages can set a cookie of the same
 * name for a longer path or for the domain, and must not lock the operator out by it. A browser sends longer paths first
 * (RFC 6265 §5.4), and keeps one cookie for each host and path: so the session, whose path is `/`, is among the last.
 */
export const sessionCandidates = (header: string | undefined, name: string): ReadonlyArray<string> =>
  (header ?? "")
    .split(";")
    .flatMap((pair) => {
      const text = pair.trim()
      return text.startsWith(`${name}=`) ? [text.slice(name.length + 1)] : []
    })
    .slice(-maxSessionCookies)
    .reverse()

/** The `Cookie` header for the upstream: its own cookies under their own names. */
export const forUpstream = (header: string | undefined): string | undefined => {
  const upstreamCookies = (header ?? "").split(";").flatMap((pair) => {
    const text = pair.trim()
    return text.startsWith(prefix) ? text.slice(prefix.length) : []
  })
  return upstreamCookies.length === 0 ? undefined : upstreamCookies.join("; ")
}
