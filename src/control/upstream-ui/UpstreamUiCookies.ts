import { Cookies } from "effect/http"
import { isGatewayCookie } from "../../policy/facts/GatewayCookies.ts"

/**
 * Prefixes the upstream's cookies in the browser. Cookies ignore ports, so a browser sends the cookies of every program
 * on this host; only prefixed ones go back to the upstream.
 */
const prefix = "svc_upstream_cookie."

/**
 * Converts the upstream's cookies for the browser, without their domain. Each becomes an `HttpOnly` cookie under the
 * prefix. A cookie that scripts may read is also set under its own name, because the upstream's pages read it there.
 */
export const forBrowser = (setCookies: ReadonlyArray<string>): Cookies.Cookies => {
  const cookies: Array<Cookies.Cookie> = []
  for (const { name, options = {}, ...cookie } of setCookies.flatMap(parseSetCookie)) {
    const { domain: _, ...ofThisHost } = options
    cookies.push({ ...cookie, name: prefix + name, options: { ...ofThisHost, httpOnly: true } })
    if (options.httpOnly !== true && !isGatewayCookie(name)) cookies.push({ ...cookie, name, options: ofThisHost })
  }
  // Indexes are the keys, because cookies of one name may differ by path.
  return Cookies.fromReadonlyRecord(Object.fromEntries(cookies.map((cookie, index) => [`${index}`, cookie])))
}

/** Collapses runs of blanks first, because the parser takes quadratic time on them. */
const parseSetCookie = (setCookie: string): ReadonlyArray<Cookies.Cookie> =>
  Object.values(Cookies.fromSetCookie(setCookie.replace(/[\t ]+/g, " ")).cookies)

/** A cookie for this host may come from the host itself, from it as a domain, and from its parent domains. */
const maxSessionCookies = 4

/**
 * The cookies that may hold the session, likeliest first. Without TLS, a script of the upstream's pages can set cookies
 * of the same name for a longer path or for the domain; they must not lock the operator out. Browsers send longer paths
 * first (RFC 6265 §5.4), so the session, whose path is `/`, is among the last.
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

/** The `Cookie` header for the upstream: its own cookies without the prefix. */
export const forUpstream = (header: string | undefined): string | undefined => {
  const upstreamCookies = (header ?? "").split(";").flatMap((pair) => {
    const text = pair.trim()
    return text.startsWith(prefix) ? text.slice(prefix.length) : []
  })
  return upstreamCookies.length === 0 ? undefined : upstreamCookies.join("; ")
}
