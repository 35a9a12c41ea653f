import { Cookies } from "effect/http"
import { isGatewayCookie } from "../../policy/facts/GatewayCookies.ts"

/**
 * The name prefix of the upstream's cookies in the browser. Cookies ignore ports, so a browser sends the cookies of
 * every program on this host. Only cookies with the prefix go to the upstream.
 */
const prefix = "svc_upstream_cookie."

/**
 * Renames the upstream's cookies for the browser and makes them `HttpOnly`. A cookie that scripts may read is also set
 * under its original name, because the upstream's scripts read that name.
 */
export const forBrowser = (setCookies: ReadonlyArray<string>): Cookies.Cookies => {
  const cookies: Array<Cookies.Cookie> = []
  for (const { name, options = {}, ...cookie } of setCookies.flatMap(parseSetCookie)) {
    const { domain: _, ...ofThisHost } = options
    cookies.push({ ...cookie, name: prefix + name, options: { ...ofThisHost, httpOnly: true } })
    if (options.httpOnly !== true && !isGatewayCookie(name)) cookies.push({ ...cookie, name, options: ofThisHost })
  }
  // The keys of this record are numbers, because two cookies with the same name may have different paths.
  return Cookies.fromReadonlyRecord(Object.fromEntries(cookies.map((cookie, index) => [`${index}`, cookie])))
}

/** The parser takes quadratic time on runs of blanks, so each run is replaced by one blank first. */
const parseSetCookie = (setCookie: string): ReadonlyArray<Cookies.Cookie> =>
  Object.values(Cookies.fromSetCookie(setCookie.replace(/[\t ]+/g, " ")).cookies)

export const forUpstream = (header: string | undefined): string | undefined => {
  const upstreamCookies = (header ?? "").split(";").flatMap((pair) => {
    const text = pair.trim()
    return text.startsWith(prefix) ? text.slice(prefix.length) : []
  })
  return upstreamCookies.length === 0 ? undefined : upstreamCookies.join("; ")
}
