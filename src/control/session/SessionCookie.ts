import type { Duration } from "effect"

const isSecure = (origin: string): boolean => origin.startsWith("https:")

/** With TLS, the prefix `__Host-` keeps other hosts and plain HTTP connections from setting this cookie. */
export const sessionCookie = (origin: string, name: string, lifetime: Duration.Duration) => ({
  name: `${isSecure(origin) ? "__Host-" : ""}${name}`,
  options: {
    httpOnly: true,
    sameSite: "strict",
    path: "/",
    maxAge: lifetime,
    secure: isSecure(origin)
  } as const
})

/** The form of all values that this program has ever made for a session. */
export const isSessionValue = (value: string): boolean => /^[\w-]{43}$/.test(value)

/** Cookies of the same name may belong to this host, to this host as a domain, or to its parent domains. */
const maxSessionCookies = 4

/**
 * Returns the cookies that may contain the session, the likeliest first. Without TLS, scripts of other pages of this
 * host can set cookies with this name for a longer path or a domain. Such cookies must not lock the operator out.
 * Browsers send longer paths first (RFC 6265 §5.4). The session's path is `/`, so the last cookies are the likeliest.
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
