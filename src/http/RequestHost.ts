/** DNS rebinding makes an attacker's host name resolve to this machine. Only the `Host` header reveals that name. */

export const hostnameOf = (url: string): string => (URL.canParse(url) ? new URL(url).hostname : "")

export const requestHostname = (host: string | undefined): string => hostnameOf(`http://${host ?? ""}`)

/** Resolves no names: only `localhost` and literal loopback addresses count. */
export const isLoopback = (hostname: string): boolean =>
  hostname === "localhost" || hostname === "[::1]" || hostname === "::1" || /^127\.\d+\.\d+\.\d+$/.test(hostname)

/** A rebinding attack needs a host name, so a request to an IP address is safe from it. */
export const isAddress = (hostname: string): boolean => /^(?:\d+\.\d+\.\d+\.\d+|\[.*\])$/.test(hostname)
