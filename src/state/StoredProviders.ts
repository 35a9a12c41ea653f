import { Effect, Schema } from "effect"
import { styleColumns, styleOf } from "../policy/routes/CredentialStyle.ts"
import type { ServedFamilies } from "../policy/routes/StartupUpstreams.ts"
import { missing } from "../policy/routes/StoredCredential.ts"
import * as UpstreamBase from "../policy/routes/UpstreamBase.ts"
import type { ProviderUpstream, ProviderUpstreams } from "../policy/routes/UpstreamChoice.ts"
import { isVendor, servedFamilies, Vendor } from "../policy/routes/Vendor.ts"
import { Database } from "../services/Database.ts"
import { open as openCredential } from "./SealedCredential.ts"
import type { RowColumns, RowReader, TableReader } from "./StoredRows.ts"

const ProviderRow = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  base_url: Schema.String,
  family: Schema.NullOr(Vendor),
  sealed_credential: Schema.NullOr(Schema.String),
  credential_origin: Schema.NullOr(Schema.String),
  ...styleColumns
})
const decodeRow = Schema.decodeUnknownSync(ProviderRow)

interface SealedProvider extends ProviderUpstream {
  readonly sealed: string | null
}

interface StoredProvider {
  readonly serves: ServedFamilies
  readonly provider: SealedProvider | "unreadable"
}

/** If a provider row cannot be decoded, its requests are refused. They must not go to another upstream. */
const table: TableReader<StoredProvider> = {
  name: "provider_configs",
  key: ["id"],
  decode: (columns) => {
    const row = decodeRow(columns)
    return {
      serves: servedFamilies(row.family),
      provider: {
        id: row.id,
        name: row.name,
        base: UpstreamBase.of(row.base_url),
        style: styleOf(row),
        credential: { secret: missing, origin: row.credential_origin },
        sealed: row.sealed_credential
      }
    }
  },
  // A row for an unknown family is skipped, because this version has no requests of that family.
  substitute: ({ family }) =>
    isVendor(family) || family === null ? { serves: servedFamilies(family), provider: "unreadable" } : undefined
}

/** Loads the enabled upstreams with their credentials. */
export const load = Effect.fnUntraced(function* (reader: RowReader) {
  const { sql } = yield* Database
  const rows =
    yield* sql<RowColumns>`SELECT id::text AS id, name, base_url, family, sealed_credential, credential_origin,
      credential_header_mode, credential_header_name, credential_header_value_format
      FROM provider_configs WHERE provider = 'upstream' AND enabled`
  const upstreams = new Map<ServedFamilies, ProviderUpstream | "unreadable">()
  for (const { provider, serves } of reader.read(table, rows)) {
    upstreams.set(serves, provider === "unreadable" ? provider : yield* unseal(provider))
  }
  return upstreams satisfies ProviderUpstreams
})

const unseal = Effect.fnUntraced(function* ({ sealed, ...provider }: SealedProvider) {
  const secret = yield* openCredential(sealed, `provider_configs/${provider.id}`)
  return { ...provider, credential: { ...provider.credential, secret } }
})
