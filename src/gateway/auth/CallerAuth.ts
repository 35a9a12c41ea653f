import { Effect, Option, Schema } from "effect"
import type { IdentityProvider } from "../../identity/IdentityProvider.ts"
import * as Settings from "../../policy/AuthSettings.ts"
import { missing, type StoredSecret } from "../../policy/routes/StoredCredential.ts"
import { Database } from "../../services/Database.ts"
import { open as openCredential } from "../../state/SealedCredential.ts"
import type { RowColumns, RowReader, TableReader } from "../../state/StoredRows.ts"
import type { IdentityRequirements } from "./Identity.ts"

export interface CallerAuth {
  readonly keyHeader: string
  readonly provider: IdentityProvider | undefined
  /** The secret with which a trusted gateway in front of this one signs identity headers. */
  readonly trustedSecret: StoredSecret | undefined
  readonly requirements: IdentityRequirements
  readonly fingerprint: string
  /** True if this version cannot decode the settings. The gateway then refuses every client. */
  readonly unreadable?: true
}

/** Tells whether a request needs an identity in addition to its gateway key. */
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

interface StoredAuth {
  readonly callerAuth: CallerAuth
  readonly sealedSecret: string | null
}

const decodeRow = Schema.decodeUnknownSync(Row)
const decodeLenientRow = Schema.decodeUnknownOption(Row)
const isAlgorithm = Schema.is(Settings.Algorithm)

const fromRow = ({ sealed_secret, ...settings }: typeof Row.Type): StoredAuth => ({
  callerAuth: of(settings, missing),
  sealedSecret: sealed_secret
})

/**
 * Ignores signature algorithms that this version does not know. If the other settings cannot be decoded either, the
 * gateway refuses every client.
 */
const decodePartially = (columns: RowColumns): StoredAuth => {
  const { accepted_algorithms: algorithms, svc_key_header: header } = columns
  const knownAlgorithms = Array.isArray(algorithms) ? algorithms.filter(isAlgorithm) : []
  return Option.match(decodeLenientRow({ ...columns, accepted_algorithms: knownAlgorithms }), {
    onSome: fromRow,
    onNone: () => ({
      callerAuth: {
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

/** Settings in the database take precedence over environment variables. */
export const load = Effect.fn("CallerAuth.load")(function* (reader: RowReader) {
  const { sql } = yield* Database
  const rows = yield* sql<RowColumns>`SELECT svc_key_header, identity_enabled, tenant_id, audience, issuer,
    oidc_discovery_url, required_scope, required_role, allowed_groups, accepted_algorithms, jwks_cache_ttl_seconds,
    clock_skew_seconds, trusted_gateway_header_enabled, sealed_secret FROM gateway_auth_settings`
  const [row] = reader.read(table, rows)
  if (row !== undefined) {
    const { callerAuth, sealedSecret } = row
    const secret = yield* openCredential(sealedSecret, Settings.secretContext)
    return { ...callerAuth, ...(callerAuth.trustedSecret !== undefined && { trustedSecret: secret }) }
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
