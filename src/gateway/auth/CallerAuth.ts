import { Effect, Option, Schema } from "effect"
import * as Settings from "../../policy/AuthSettings.ts"
import { missing, type StoredSecret } from "../../policy/routes/StoredCredential.ts"
import { Database } from "../../services/Database.ts"
import { open as openCredential } from "../../state/SealedCredential.ts"
import type { RowColumns, RowReader, TableReader } from "../../state/StoredRows.ts"
import type { IdentityRequirements } from "./Identity.ts"

export interface IdentityProvider {
  readonly discoveryUrl: string
  readonly issuer: string
  readonly audience: string
  readonly algorithms: ReadonlyArray<Settings.Algorithm>
  /** How long its keys are good without asking again, in milliseconds. */
  readonly keysTtlMs: number
}

/** How callers prove who they are, as the request path needs it. */
export interface CallerAuth {
  /** Of the gateway key, lower case. */
  readonly keyHeader: string
  readonly provider: IdentityProvider | undefined
  /** The secret of a gateway in front of this one, whose signed headers are an identity. */
  readonly trustedSecret: StoredSecret | undefined
  readonly requirements: IdentityRequirements
  /** The same for the same settings. */
  readonly fingerprint: string
  /** This version cannot decode the settings: nobody can prove who they are. */
  readonly unreadable?: true
}

/** Otherwise the gateway key in `Authorization` is all that is asked for. */
export const requiresIdentity = ({ provider, trustedSecret, unreadable }: CallerAuth): boolean =>
  provider !== undefined || trustedSecret !== undefined || unreadable === true

export const of = (settings: Settings.AuthSettings, secret: StoredSecret): CallerAuth => {
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
    requirements: {
      tenantId: settings.tenant_id,
      requiredScope: settings.required_scope,
      requiredRole: settings.required_role,
      allowedGroups: settings.allowed_groups,
      skewMs: settings.clock_skew_seconds * 1000
    },
    fingerprint: JSON.stringify(settings)
  }
}

const Row = Schema.Struct({ ...Settings.AuthSettings.fields, sealed_secret: Schema.NullOr(Schema.String) })

/** The saved settings, and their secret while it is still sealed. */
interface StoredAuth {
  readonly frontDoor: CallerAuth
  readonly sealedSecret: string | null
}

const decodeRow = Schema.decodeUnknownSync(Row)
const decodeLenientRow = Schema.decodeUnknownOption(Row)
const isAlgorithm = Schema.is(Settings.Algorithm)

const fromRow = ({ sealed_secret, ...settings }: typeof Row.Type): StoredAuth => ({
  frontDoor: of(settings, missing),
  sealedSecret: sealed_secret
})

/**
 * Signatures that this version does not know are accepted by it from nobody; the other settings hold. Where more than
 * that cannot be decoded, how callers must prove who they are is not known, and every caller is refused.
 */
const decodePartially = (columns: RowColumns): StoredAuth => {
  const { accepted_algorithms: algorithms, svc_key_header: header } = columns
  const known = Array.isArray(algorithms) ? algorithms.filter(isAlgorithm) : []
  return Option.match(decodeLenientRow({ ...columns, accepted_algorithms: known }), {
    onSome: fromRow,
    onNone: () => ({
      frontDoor: {
        ...of({ ...Settings.disabledAuth, ...(typeof header === "string" && { svc_key_header: header }) }, missing),
        unreadable: true
      },
      sealedSecret: null
    })
  })
}

const table: TableReader<StoredAuth> = {
  name: "gateway_auth_settings",
  key: [],
  decode: (columns) => fromRow(decodeRow(columns)),
  substitute: decodePartially
}

/** A saved row decides alone; without one the environment does. */
export const load = Effect.fnUntraced(function* (reader: RowReader) {
  const { sql } = yield* Database
  const rows = yield* sql<RowColumns>`SELECT svc_key_header, identity_enabled, tenant_id, audience, issuer,
    oidc_discovery_url, required_scope, required_role, allowed_groups, accepted_algorithms, jwks_cache_ttl_seconds,
    clock_skew_seconds, trusted_gateway_header_enabled, sealed_secret FROM gateway_auth_settings`
  const [row] = reader.read(table, rows)
  if (row !== undefined) {
    const { frontDoor, sealedSecret } = row
    const secret = yield* openCredential(sealedSecret, Settings.secretContext)
    return { ...frontDoor, ...(frontDoor.trustedSecret !== undefined && { trustedSecret: secret }) }
  }
  return Option.match(yield* Settings.StartupAuthSettings, {
    onNone: () => of(Settings.disabledAuth, missing),
    onSome: ({ secret, settings }) =>
      of(
        settings,
        Option.match(secret, {
          onNone: () => missing,
          onSome: (credential): StoredSecret => ({ _tag: "Present", credential })
        })
      )
  })
})
