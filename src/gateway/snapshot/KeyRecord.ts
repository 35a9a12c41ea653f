import { Effect, Option, Schema } from "effect"
import type { PresentedKey } from "../../policy/KeyState.ts"
import type { BoundCredential } from "../../policy/routes/StoredCredential.ts"
import { Database } from "../../services/Database.ts"
import { open as openCredential } from "../../state/SealedCredential.ts"
import * as StoredKeys from "../../state/StoredKeys.ts"
import { type RowColumns, RowReader, type TableReader } from "../../state/StoredRows.ts"

/** A gateway key with its state, policy and upstream credentials. */
export interface KeyRecord extends StoredKeys.StoredKey, PresentedKey {
  readonly prefix: string
  readonly projectName: Option.Option<string>
  readonly keyMapping: BoundCredential
  readonly projectMapping: BoundCredential
}

const Row = Schema.Struct({
  ...StoredKeys.fields,
  ...StoredKeys.secretField,
  digest: Schema.String,
  key_prefix: Schema.String,
  project_name: Schema.NullOr(Schema.String),
  key_mapping_id: Schema.NullOr(Schema.String),
  key_mapping: Schema.NullOr(Schema.String),
  key_mapping_origin: Schema.NullOr(Schema.String),
  project_mapping_id: Schema.NullOr(Schema.String),
  project_mapping: Schema.NullOr(Schema.String),
  project_mapping_origin: Schema.NullOr(Schema.String)
})
const decodeRow = Schema.decodeUnknownSync(Row)

/** `unreadable`: the key exists, but this version cannot decode its row. */
export type KeyLookUp = KeyRecord | "unreadable"

const table: TableReader<typeof Row.Type | { readonly digest: string; readonly id: undefined }> = {
  name: "api_keys",
  key: ["id"],
  decode: decodeRow,
  substitute: ({ digest }) => (typeof digest === "string" ? { digest, id: undefined } : undefined)
}

/**
 * Loads keys by the SHA-256 digests (hex) of their secrets, including secrets that were rotated and are still valid for
 * a grace period. The result omits unknown digests.
 */
export const load = Effect.fn("KeyRecord.load")(function* (digests: ReadonlyArray<string>) {
  const { sql } = yield* Database
  const reader = new RowReader()
  const rows =
    yield* sql<RowColumns>`SELECT asked.digest, ${sql.literal(`${StoredKeys.columns}, ${StoredKeys.secretEndsAtSql}`)}, k.key_prefix,
    p.name AS project_name,
    km.id::text AS key_mapping_id, km.sealed_credential AS key_mapping, km.credential_origin AS key_mapping_origin,
    pm.id::text AS project_mapping_id, pm.sealed_credential AS project_mapping, pm.credential_origin AS project_mapping_origin
    FROM api_keys k
    JOIN unnest(${digests}::text[]) AS asked (digest) ON ${sql.literal(StoredKeys.matchesSecretSql)}
    LEFT JOIN projects p ON p.id = k.project_id
    LEFT JOIN upstream_credential_mappings km ON km.key_id = k.id AND km.enabled
    LEFT JOIN upstream_credential_mappings pm ON pm.project_id = k.project_id AND pm.enabled`
  const found = new Map<string, KeyLookUp>()
  for (const row of reader.read(table, rows)) {
    found.set(row.digest, row.id === undefined ? "unreadable" : yield* toKeyRecord(row))
  }
  for (const row of reader.unreadable) yield* Effect.logError("cannot decode the row of a key; the key is refused", row)
  return found
})

const toKeyRecord = Effect.fnUntraced(function* (row: typeof Row.Type) {
  const key = StoredKeys.keyOf(row)
  if (!key.readable) {
    yield* Effect.logError("cannot decode the policy of a key; the key is refused", { key_id: key.id })
  }
  const record: KeyRecord = {
    ...key,
    prefix: row.key_prefix,
    projectName: Option.fromNullOr(row.project_name),
    secretEndsAt: Option.fromNullOr(row.secret_ends_at),
    keyMapping: {
      secret: yield* openCredential(row.key_mapping, `upstream_credential_mappings/${row.key_mapping_id}`),
      origin: row.key_mapping_origin
    },
    projectMapping: {
      secret: yield* openCredential(row.project_mapping, `upstream_credential_mappings/${row.project_mapping_id}`),
      origin: row.project_mapping_origin
    }
  }
  return record
})
