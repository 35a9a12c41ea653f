/**
 * The gateway's own cookies open its pages, and a browser sends them to every port of the host. So they go to no upstream,
 * and no upstream may set one.
 */
export const isGatewayCookie = (name: string): boolean => /^(?:__host-|__secure-)?svc_/i.test(name)

/** A `Cookie` header without the gateway's own cookies; `undefined` where no other is left. */
export const withoutGatewayCookies = (header: string): string | undefined => {
  if (!header.toLowerCase().includes("svc_")) return header
  const kept = header.split(";").filter((pair) => !isGatewayCookie(pair.trimStart()))
  return kept.length === 0 ? undefined : kept.join(";").trimStart()
}
