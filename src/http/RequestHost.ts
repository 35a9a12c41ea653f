/** DNS rebinding points a foreign name at this machine's address; only the request's host name reveals it. */

export const hostnameOf = (url: string): string => (URL.canParse(url) ? new URL(url).hostname : "")

export const requestHostname = (host: string | undefined): string => hostnameOf(`http://${host ?? ""}`)

/** Names are not resolved, except for `localhost`. */
export const isLoopback = (hostname: string): boolean =>
  hostname === "localhost" || hostname === "[::1]" || hostname === "::1" || /^127\.\d+\.\d+\.\d+$/.test(hostname)

/** An IP address cannot be rebound. */
export const isAddress = (hostname: string): boolean => /^(?:\d+\.\d+\.\d+\.\d+|\[.*\])$/.test(hostname)
