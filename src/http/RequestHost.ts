/** DNS rebinding makes an attacker's host name resolve to this machine. Only the `Host` header reveals that name. */

export const hostnameOf = (url: string): string => (URL.canParse(url) ? new URL(url).hostname : "")

export const requestHostname = (host: string | undefined): string => hostnameOf(`http://${host ?? ""}`)

/** Returns true for `localhost` and loopback IP addresses. Other host names are not resolved. */
export const isLoopback = (hostname: string): boolean =>
  hostname === "localhost" || hostname === "[::1]" || hostname === "::1" || /^127\.\d+\.\d+\.\d+$/.test(hostname)

/** A DNS rebinding attack needs a host name, so a request to an IP address cannot be such an attack. */
export const isAddress = (hostname: string): boolean => /^(?:\d+\.\d+\.\d+\.\d+|\[.*\])$/.test(hostname)
