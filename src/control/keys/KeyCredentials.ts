import { Context, Effect, Layer, Schema } from "effect"
import { credentialHeader } from "../../policy/routes/CredentialStyle.ts"
import { StartupUpstreams } from "../../policy/routes/StartupUpstreams.ts"
import {
  type BoundCredential,
  credentialFor,
  placeOfDeciding,
  type StoredSecret,
  unbound
} from "../../policy/routes/StoredCredential.ts"
import {
  type ChosenUpstream,
  type CredentialSource,
  chooseUpstream,
  credentialOrder,
  credentialSources,
  type KnownOrigins,
  legacyOriginOf,
  originsOf,
  type UpstreamOfFamily
} from "../../policy/routes/UpstreamChoice.ts"
import { type Vendor, vendorOf } from "../../policy/routes/Vendor.ts"
import { Database } from "../../services/Database.ts"
import { open as openCredential } from "../../state/SealedCredential.ts"
import * as StoredProviders from "../../state/StoredProviders.ts"
import { RowReader } from "../../state/StoredRows.ts"
import type { Vault } from "../../state/Vault.ts"
import type { CredentialOfKey } from "../api/keys/CredentialMappingsApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { computedRows, type StoreFailure, toStoreFailures } from "../store/Rows.ts"

/** Tells operators whose upstream credential the requests of a key carry, by the rules of the gateway. */
export class KeyCredentials extends Context.Service<
  KeyCredentials,
  {
    readonly read: (keyId: string) => Effect.Effect<ReadonlyArray<CredentialOfKey>, Refused<"not_found"> | StoreFailure>
  }
>()("svc/control/KeyCredentials") {
  static readonly layer = Layer.suspend(() => Layer.effect(KeyCredentials, make))
}

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const startup = yield* StartupUpstreams
  const context = yield* Effect.context<Database | Vault>()

  /** A disabled mapping has no credential, as in the gateway. */
  const readMappings = Effect.fnUntraced(function* (keyId: string) {
    const rows = yield* mappingRows.all(sql`
      SELECT m.id, m.scope, m.enabled, m.sealed_credential, m.credential_origin
      FROM api_keys k JOIN upstream_credential_mappings m ON m.key_id = k.id OR m.project_id = k.project_id
      WHERE k.id = ${keyId}`)
    const mappings: Record<"key" | "project", Mapping> = { key: none, project: none }
    for (const { credential_origin, enabled, id, scope, sealed_credential } of rows) {
      const isDisabled = !enabled && sealed_credential !== null
      const secret = yield* openCredential(enabled ? sealed_credential : null, `upstream_credential_mappings/${id}`)
      mappings[scope] = { isDisabled, bound: { secret, origin: credential_origin } }
    }
    return mappings
  })

  const read = Effect.fn("KeyCredentials.read")(function* (keyId: string) {
    const [key] = yield* sql`SELECT 1 FROM api_keys WHERE id = ${keyId}`
    if (key === undefined) return yield* new ControlError("not_found", "No key has this id.")
    const mappings = yield* readMappings(keyId)
    const providers = yield* StoredProviders.load(new RowReader())
    const upstreams = (["a", "b"] as const).map((family) => ({
      vendor: vendorOf(family),
      upstream: chooseUpstream(startup, providers, family)
    }))
    const origins: KnownOrigins = {
      inUse: originsOf(upstreams.map(({ upstream }) => upstream)),
      legacy: legacyOriginOf(startup)
    }
    return upstreams.map(({ upstream, vendor }) => credentialAt(vendor, upstream, mappings, origins))
  })

  return KeyCredentials.of({ read: (keyId) => toStoreFailures(Effect.provideContext(read(keyId), context)) })
})

interface Mapping {
  readonly bound: BoundCredential
  readonly isDisabled: boolean
}

const none: Mapping = { bound: unbound, isDisabled: false }

const credentialAt = (
  family: Vendor,
  upstream: UpstreamOfFamily,
  mappings: Readonly<Record<"key" | "project", Mapping>>,
  origins: KnownOrigins
): CredentialOfKey => {
  if (upstream === undefined || upstream === "unreadable") {
    const state = upstream === undefined ? "no_upstream" : "unreadable_upstream"
    return { family, upstream: null, state, source: null, explanation: withoutUpstream[state], places: [] }
  }
  const order = credentialOrder(upstream, origins, mappings.key.bound, mappings.project.bound)
  const deciding = placeOfDeciding(order)
  const bound = order[deciding]
  const source = credentialSources[deciding] ?? null
  const state = bound === undefined ? "missing" : states[credentialFor(upstream.base.origin, bound)._tag]
  return {
    family,
    upstream: shown(upstream),
    state,
    source,
    explanation: explanationOf(state, source),
    places: credentialSources.map((place, at) => ({
      source: place,
      state: deciding >= 0 && at > deciding ? "not_reached" : at === deciding ? "decides" : absence(place, mappings)
    }))
  }
}

const absence = (place: CredentialSource, mappings: Readonly<Record<"key" | "project", Mapping>>) => {
  if (place !== "key" && place !== "project") return "none"
  const { bound, isDisabled } = mappings[place]
  if (isDisabled) return "disabled"
  return bound.secret._tag === "Missing" ? "none" : "for_other_upstream"
}

const shown = ({ base, row, source, style }: ChosenUpstream): CredentialOfKey["upstream"] => ({
  origin: base.origin,
  provider_id: row?.id ?? null,
  name: row?.name ?? source,
  header: credentialHeader(style)
})

const states = {
  Present: "sent",
  Missing: "missing",
  Unreadable: "unreadable",
  OtherOrigin: "of_other_address"
} as const satisfies Record<StoredSecret["_tag"] | "OtherOrigin", CredentialOfKey["state"]>

const owners: Readonly<Record<CredentialSource, string>> = {
  key: "the key itself",
  project: "the project of the key",
  provider: "the provider",
  environment: "the variables of the gateway"
}

const explanationOf = (state: (typeof states)[keyof typeof states], source: CredentialSource | null): string => {
  const owner = source === null ? "" : owners[source]
  switch (state) {
    case "sent":
      return `Requests carry the credential of ${owner}.`
    case "missing":
      return "There is no credential, so requests are refused. Set one for the key, its project or the provider."
    case "unreadable":
      return `The credential of ${owner} cannot be decrypted, so requests are refused. Set it again.`
    case "of_other_address":
      return `The credential of ${owner} was stored for another address, so requests are refused. Set it again for the current one.`
  }
}

const withoutUpstream = {
  no_upstream: "There is no upstream for these requests, so they are refused. Add a provider.",
  unreadable_upstream:
    "A newer version wrote the provider row, and this one cannot decode it, so requests are refused. Update the gateway, or disable the row."
} as const

const mappingRows = computedRows(
  Schema.Struct({
    id: Schema.String,
    scope: Schema.Literals(["key", "project"]),
    enabled: Schema.Boolean,
    sealed_credential: Schema.NullOr(Schema.String),
    credential_origin: Schema.NullOr(Schema.String)
  })
)
