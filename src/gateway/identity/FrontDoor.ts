import { Effect, Option, Schema } from "effect"
import { Database } from "../../services/Database.ts"
import * as Settings from "../model/FrontDoor.ts"
import { missing, open as openCredential, type StoredCredential } from "../model/StoredCredential.ts"
import type { Rules } from "./Identity.ts"

export interface IdentityProvider {
  readonly discoveryUrl: string
  readonly issuer: string
  readonly audience: string
  readonly algorithms: ReadonlyArray<Settings.Algorithm>
  /** How long its keys are good without asking again, in milliseconds. */
  readonly keysTtlMs: number
}

/** How callers prove who they are, as the request path needs it. */
export interface FrontDoor {
  /** Of the gateway key, lower case. */
  readonly keyHeader: string
  readonly provider: IdentityProvider | undefined
  /** The secret of a gateway in front of this one, whose signed headers are an identity. */
  readonly trustedSecret: StoredCredential | undefined
  readonly rules: Rules
  /** The same for the same settings. */
  readonly fingerprint: string
}

/** Otherwise the gateway key in `Authorization` is all that is asked for. */
export const asksForIdentity = ({ provider, trustedSecret }: FrontDoor): boolean =>
  provider !== undefined || trustedSecret !== undefined

export const of = (settings: Settings.FrontDoor, secret: StoredCredential): FrontDoor => {
  const { audience, issuer, oidc_discovery_url: discoveryUrl } = settings
  return {
    keyHeader: settings.svc_key_header.toLowerCase(),
    provider:
      settings.identity_enabled && issuer !== null && audience !== null && discoveryUrl !== null
        ? {
            discoveryUrl,
            issuer,
            audience,
            algorithms: settings.accepted_algorithms,
            keysTtlMs: settings.jwks_cache_ttl_seconds * 1000
          }
        : undefined,
    trustedSecret: settings.trusted_gateway_header_enabled ? secret : undefined,
    rules: {
      tenantId: settings.tenant_id,
      requiredScope: settings.required_scope,
      requiredRole: settings.required_role,
      allowedGroups: settings.allowed_groups,
      skewMs: settings.clock_skew_seconds * 1000
    },
    fingerprint: JSON.stringify(settings)
  }
}

const Row = Schema.Struct({ ...Settings.FrontDoor.fields, sealed_secret: Schema.NullOr(Schema.String) })
const decodeRows = Schema.decodeUnknownEffect(Schema.Array(Row))

/** A saved row decides alone; without one the environment does. */
export const load = Effect.gen(function* () {
  const { sql } = yield* Database
  const [row] = yield* Effect.flatMap(
    sql`SELECT svc_key_header, identity_enabled, tenant_id, audience, issuer, oidc_discovery_url, required_scope,
      required_role, allowed_groups, accepted_algorithms, jwks_cache_ttl_seconds, clock_skew_seconds,
      trusted_gateway_header_enabled, sealed_secret FROM gateway_auth_settings`,
    decodeRows
  )
  if (row !== undefined) {
    const { sealed_secret, ...settings } = row
    return of(settings, yield* openCredential(sealed_secret, Settings.secretContext))
  }
  return Option.match(yield* Settings.StartupFrontDoor, {
    onNone: () => of(Settings.off, missing),
    onSome: ({ secret, settings }) =>
      of(
        settings,
        Option.match(secret, {
          onNone: () => missing,
          onSome: (credential): StoredCredential => ({ _tag: "Present", credential })
        })
      )
  })
})
