import type { Family } from "../../policy/routes/CanonicalRoute.ts"
import type { UpstreamsByFamily } from "../../policy/routes/StartupUpstreams.ts"
import { chooseUpstream, originsOf, type UpstreamOfFamily } from "../../policy/routes/UpstreamChoice.ts"
import type { Snapshot } from "../snapshot/Snapshot.ts"

/** The upstreams that apply while `snapshot` is the current configuration. */
export interface Upstreams extends Readonly<Record<Family, UpstreamOfFamily>> {
  readonly snapshot: Snapshot
  /** The lower-case names of custom headers that carry upstream credentials. */
  readonly credentialHeaders: ReadonlyArray<string>
  readonly origins: ReadonlySet<string>
}

export const upstreamsOf = (startup: UpstreamsByFamily, snapshot: Snapshot): Upstreams => {
  const a = chooseUpstream(startup, snapshot.providers, "a")
  const b = chooseUpstream(startup, snapshot.providers, "b")
  const credentialHeaders = [...snapshot.providers.values()].flatMap((row) =>
    row !== "unreadable" && row.style._tag === "CustomHeader" ? [row.style.name.toLowerCase()] : []
  )
  return { snapshot, a, b, credentialHeaders, origins: originsOf([a, b]) }
}
