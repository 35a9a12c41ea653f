import { Option } from "effect"
import type { Family } from "./CanonicalRoute.ts"
import { authorizationBearer, type CredentialStyle, styleOfFamily } from "./CredentialStyle.ts"
import type { ServedFamilies, StartupUpstream, UpstreamsByFamily } from "./StartupUpstreams.ts"
import { type BoundCredential, ofEnvironment, unbound } from "./StoredCredential.ts"
import type { UpstreamBase } from "./UpstreamBase.ts"

/** An upstream that operators configured in a provider row. */
export interface ProviderUpstream {
  readonly id: string
  readonly name: string
  readonly base: UpstreamBase
  readonly style: CredentialStyle
  readonly credential: BoundCredential
}

/** Families without an entry use the startup upstream. Requests of a family with an `unreadable` row are refused. */
export type ProviderUpstreams = ReadonlyMap<ServedFamilies, ProviderUpstream | "unreadable">

/** The upstream that receives the requests of a family. */
export interface ChosenUpstream {
  readonly base: UpstreamBase
  readonly style: CredentialStyle
  /** True if the upstream is a model vendor, which must not receive key, project or task ids. */
  readonly isVendor: boolean
  readonly ownCredential: BoundCredential
  readonly startupCredential: BoundCredential
  readonly source: StartupUpstream["name"] | "provider_row"
  /** The row that configures the upstream, if it is none of the startup. */
  readonly row: Pick<ProviderUpstream, "id" | "name"> | undefined
}

export type UpstreamOfFamily = ChosenUpstream | "unreadable" | undefined

/** Provider rows take precedence over startup settings. Upstreams for one family take precedence over shared ones. */
export const chooseUpstream = (
  startup: UpstreamsByFamily,
  providers: ProviderUpstreams,
  family: Family
): UpstreamOfFamily => {
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
      source: "provider_row",
      row
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
    source: upstream.name,
    row: undefined
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

export const originsOf = (upstreams: ReadonlyArray<UpstreamOfFamily>): ReadonlySet<string> =>
  new Set(
    upstreams.flatMap((upstream) => (upstream === undefined || upstream === "unreadable" ? [] : [upstream.base.origin]))
  )

/** The gateway looks for the credential of a request in these places. The first one that has a credential decides. */
export const credentialSources = ["key", "project", "provider", "environment"] as const
export type CredentialSource = (typeof credentialSources)[number]

/** The addresses that decide whether a credential of a key or project is for an upstream. */
export interface KnownOrigins {
  /** The origins of the upstreams that receive requests now. */
  readonly inUse: ReadonlySet<string>
  /** The origin of UPSTREAM_BASE_URL. Credentials from versions with a single upstream have no origin, and belong to it. */
  readonly legacy: string | null
}

export const legacyOriginOf = ({ both }: UpstreamsByFamily): string | null =>
  Option.getOrNull(Option.map(both, ({ base }) => base.origin))

/** The credentials for requests to `upstream`, in the order of `credentialSources`. */
export const credentialOrder = (
  upstream: ChosenUpstream,
  origins: KnownOrigins,
  ofKey: BoundCredential = unbound,
  ofProject: BoundCredential = unbound
): ReadonlyArray<BoundCredential> => [
  applicable(upstream, origins, ofKey),
  applicable(upstream, origins, ofProject),
  upstream.ownCredential,
  upstream.startupCredential
]

/** Ignores a credential of a key or project if it was stored for another upstream that still exists. */
const applicable = ({ base }: ChosenUpstream, { inUse, legacy }: KnownOrigins, bound: BoundCredential) => {
  if (bound.secret._tag === "Missing") return bound
  const origin = bound.origin ?? legacy
  if (origin !== null && origin !== base.origin && inUse.has(origin)) return unbound
  return { secret: bound.secret, origin }
}
