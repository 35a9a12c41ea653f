import { Effect, Schema } from "effect"
import { Database } from "../../services/Database.ts"
import type { Change } from "../../state/Changes.ts"
import { type UnreadableSecret, Vault } from "../../state/Vault.ts"
import { computedRows, type StoreFailure } from "../store/Rows.ts"
import { type Actor, Audit, Mutation, Snapshots } from "./Audit.ts"

/** A column that contains encrypted secrets. Encryption binds each secret to `<table>/<key>` of its row. */
interface SealedColumn {
  readonly table: string
  readonly key: string
  readonly column: string
}

/**
 * A test compares this list with the columns of the database. Keys of sessions (`key_under_cookie`) are none of them: only
 * a cookie opens them, and under another key they are gone, so that their holder signs in again.
 */
export const sealedColumns: ReadonlyArray<SealedColumn> = [
  { table: "provider_configs", key: "id", column: "sealed_credential" },
  { table: "upstream_credential_mappings", key: "id", column: "sealed_credential" },
  { table: "service_registrations", key: "name", column: "sealed_credential" },
  { table: "studio_connection_settings", key: "singleton", column: "sealed_token" },
  { table: "gateway_auth_settings", key: "singleton", column: "sealed_secret" },
  { table: "guardrail_definitions", key: "name", column: "sealed_token" }
]

const Resealed = Schema.Record(Schema.String, Schema.Int)

/** The number of re-encrypted secrets for each column. `kept` counts secrets that already used the current key. */
export interface Rotation {
  readonly resealed: Readonly<Record<string, number>>
  readonly kept: number
}

/**
 * Encrypts every secret with the current key, in one transaction. This includes secrets in clear text and secrets under
 * the previous key. A gateway that has both keys can always read the secrets. A second run changes nothing.
 */
export const rotate: Effect.Effect<Rotation, UnreadableSecret | StoreFailure, Database | Vault | Audit | Actor> =
  Effect.gen(function* () {
    const { sql } = yield* Database
    const vault = yield* Vault
    const audit = yield* Audit

    const resealColumn = Effect.fnUntraced(function* ({ column, key, table }: SealedColumn) {
      const { write } = yield* Mutation
      let resealed = 0
      let kept = 0
      let afterKey = ""
      while (true) {
        const batch = yield* secretRows.all(sql`
        SELECT ${sql(key)}::text AS key, ${sql(column)} AS sealed FROM ${sql(table)}
        WHERE ${sql(column)} IS NOT NULL AND ${sql(key)}::text > ${afterKey} ORDER BY ${sql(key)}::text
        LIMIT ${batchSize} FOR NO KEY UPDATE`)
        for (const { key: id, sealed } of batch) {
          if (vault.isCurrent(sealed)) kept++
          else {
            const context = `${table}/${id}`
            const sealedAgain = vault.seal(yield* vault.open(sealed, context), context)
            yield* write`UPDATE ${sql(table)} SET ${sql(column)} = ${sealedAgain} WHERE ${sql(key)} = ${id}`
            resealed++
          }
        }
        const last = batch.at(-1)
        if (last === undefined || batch.length < batchSize) return { name: `${table}.${column}`, resealed, kept }
        afterKey = last.key
      }
    })

    return yield* audit.mutate(function* () {
      const columns = yield* Effect.forEach(sealedColumns, resealColumn)
      const resealed = Object.fromEntries(columns.map(({ name, resealed }) => [name, resealed]))
      const rotation: Rotation = { resealed, kept: columns.reduce((sum, { kept }) => sum + kept, 0) }
      return {
        result: rotation,
        auditAction: { target: "vault", action: "secrets:rotate" },
        targetId: "singleton",
        snapshots: yield* snapshots(null, resealed),
        changes: [{ _tag: "Configuration" }, ...(yield* mappingNotices)]
      }
    })
  })

/** Gateways cache that a mapping's credential could not be decrypted. The notices make them read the mapping again. */
const mappingNotices = Effect.gen(function* () {
  const { sql } = yield* Database
  const mapped = yield* targetRows.all(
    sql`SELECT scope, coalesce(key_id, project_id)::text AS target FROM upstream_credential_mappings`
  )
  return mapped.map(({ scope, target }): Change => ({ _tag: scope === "key" ? "Key" : "Project", id: target }))
})

const batchSize = 500

const secretRows = computedRows(Schema.Struct({ key: Schema.String, sealed: Schema.String }))
const targetRows = computedRows(Schema.Struct({ scope: Schema.Literals(["key", "project"]), target: Schema.String }))
const snapshots = Snapshots.of(Resealed)
