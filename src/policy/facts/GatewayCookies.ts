/** Browsers send the gateway's cookies to every port of its host. The gateway never exchanges them with an upstream. */
export const isGatewayCookie = (name: string): boolean => /^(?:__host-|__secure-)?svc_/i.test(name)

export const withoutGatewayCookies = (header: string): string | undefined => {
  if (!header.toLowerCase().includes("svc_")) return header
  const kept = header.split(";").filter((pair) => !isGatewayCookie(pair.trimStart()))
  return kept.length === 0 ? undefined : kept.join(";").trimStart()
}
