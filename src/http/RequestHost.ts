/**
 * The names that a listener is asked by. A page in a browser can make a name of its own lead to an address of this
 * machine, or of its network (DNS rebinding), and then counts as of the same origin; only the name gives it away.
 */

/** The host name in a URL or an origin, without its port; empty where there is none. */
export const hostnameOf = (url: string): string => (URL.canParse(url) ? new URL(url).hostname : "")

/** The host name in a `Host` header. */
export const requestHostname = (host: string | undefined): string => hostnameOf(`http://${host ?? ""}`)

/** Only this machine reaches such an address. Names are not looked up; `localhost` is known to be one. */
export const isLoopback = (hostname: string): boolean =>
  hostname === "localhost" || hostname === "[::1]" || hostname === "::1" || /^127\.\d+\.\d+\.\d+$/.test(hostname)

/** An address instead of a name: nobody can make it lead elsewhere. */
export const isAddress = (hostname: string): boolean => /^(?:\d+\.\d+\.\d+\.\d+|\[.*\])$/.test(hostname)
