import { Option } from "effect"
import type { Family } from "../../policy/routes/CanonicalRoute.ts"
import { authorizationBearer, type CredentialStyle, styleOfFamily } from "../../policy/routes/CredentialStyle.ts"
import type { StartupUpstream, UpstreamsByFamily } from "../../policy/routes/StartupUpstreams.ts"
import { type BoundCredential, ofEnvironment, unbound } from "../../policy/routes/StoredCredential.ts"
import type { UpstreamBase } from "../../policy/routes/UpstreamBase.ts"
import type { Snapshot } from "../snapshot/Snapshot.ts"

export interface ResolvedUpstream {
  readonly base: UpstreamBase
  readonly style: CredentialStyle
  /** True if the upstream is a model vendor, which must not receive key, project or task ids. */
  readonly isVendor: boolean
  readonly ownCredential: BoundCredential
  readonly startupCredential: BoundCredential
  readonly source: StartupUpstream["name"] | "provider_row"
}

type UpstreamLookup = ResolvedUpstream | "unreadable" | undefined

/** The upstreams that apply while `snapshot` is the current configuration. */
export interface Upstreams extends Readonly<Record<Family, UpstreamLookup>> {
  readonly snapshot: Snapshot
  /** The lower-case names of custom headers that carry upstream credentials. */
  readonly credentialHeaders: ReadonlyArray<string>
  readonly origins: ReadonlySet<string>
}

export const upstreamsOf = (startup: UpstreamsByFamily, snapshot: Snapshot): Upstreams => {
  const [a, b] = [upstreamOf(startup, snapshot, "a"), upstreamOf(startup, snapshot, "b")]
  const credentialHeaders = [...snapshot.providers.values()].flatMap((row) =>
    row !== "unreadable" && row.style._tag === "CustomHeader" ? [row.style.name.toLowerCase()] : []
  )
  const origins = [a, b].flatMap((upstream) =>
    upstream === undefined || upstream === "unreadable" ? [] : [upstream.base.origin]
  )
  return { snapshot, a, b, credentialHeaders, origins: new Set(origins) }
}

/** Provider rows take precedence over startup settings. Upstreams for one family take precedence over shared ones. */
const upstreamOf = (startup: UpstreamsByFamily, { providers }: Snapshot, family: Family): UpstreamLookup => {
  const rowOfFamily = providers.get(family)
  const row = rowOfFamily ?? providers.get("both")
  if (row === "unreadable") return row
  if (row !== undefined) {
    const { base, credential, style } = row
    return {
      base,
      style,
      isVendor: rowOfFamily !== undefined,
      ownCredential: credential,
      startupCredential: startupCredential(startup, family, base.origin),
      source: "provider_row"
    }
  }
  const ofFamily = Option.getOrUndefined(startup[family])
  const upstream = ofFamily ?? Option.getOrUndefined(startup.both)
  if (upstream === undefined) return undefined
  const style = ofFamily === undefined ? authorizationBearer : styleOfFamily[family]
  return {
    base: upstream.base,
    style,
    isVendor: ofFamily !== undefined,
    ownCredential: unbound,
    startupCredential: startupCredential(startup, family, upstream.base.origin),
    source: upstream.name
  }
}

/**
 * Returns the startup credential for `origin`. If none exists, returns a credential for another origin. The error can
 * then say that the credential belongs to another origin.
 */
const startupCredential = (startup: UpstreamsByFamily, family: Family, origin: string): BoundCredential => {
  const keys = [startup[family], startup.both]
    .flatMap(Option.toArray)
    .filter(({ serviceKey }) => Option.isSome(serviceKey))
  const found = keys.find(({ base }) => base.origin === origin) ?? keys.find(({ name }) => name !== "simulator")
  return found === undefined ? unbound : ofEnvironment(found.serviceKey, found.base.origin)
}
