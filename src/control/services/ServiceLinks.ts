import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Change } from "../../state/Changes.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { Mutation } from "../audit/Audit.ts"

const linkTables = {
  project: { table: "project_service_links", column: "project_id", owner: "projects.id" },
  key: { table: "key_service_links", column: "key_id", owner: "api_keys.id" }
} as const

/** Links restrict a project or key to certain services. Without links, only its policy restricts the services. */
export const linksOf = (sql: SqlClient, kind: keyof typeof linkTables) => {
  const { column, owner, table } = linkTables[kind]
  return {
    /** An SQL column with the names of the services that are linked to the owner. */
    names: sql.literal(
      `ARRAY(SELECT service_name FROM ${table} WHERE ${table}.${column} = ${owner} ORDER BY service_name COLLATE "C") AS service_names`
    ),
    /** Replaces all links of a project or key, and locks the linked services against deletion. */
    replace: Effect.fnUntraced(function* (id: string, names: ReadonlyArray<string>) {
      const { write } = yield* Mutation
      const uniqueNames = [...new Set(names)]
      if (uniqueNames.length > 0) {
        const known = yield* sql<{ readonly name: string }>`
          SELECT name FROM service_registrations WHERE ${sql.in("name", uniqueNames)} ORDER BY name FOR KEY SHARE`
        const unknown = uniqueNames.find((name) => !known.some((row) => row.name === name))
        if (unknown !== undefined) {
          return yield* new ControlError("missing_service", `There is no service named ${unknown}.`, {
            param: "service_names"
          })
        }
      }
      yield* write`DELETE FROM ${sql(table)} WHERE ${sql(column)} = ${id}`
      if (uniqueNames.length > 0) {
        yield* write`
          INSERT INTO ${sql(table)} (${sql(column)}, service_name)
          SELECT ${id}::uuid, name FROM service_registrations WHERE ${sql.in("name", uniqueNames)}`
      }
    })
  }
}

/** Returns notices for every project and key that is linked to the service, because gateways cache links with keys. */
export const linkedOwnerChanges = Effect.fnUntraced(function* (sql: SqlClient, name: string) {
  const projects = yield* sql<{ readonly id: string }>`
    SELECT project_id AS id FROM project_service_links WHERE service_name = ${name}`
  const keys = yield* sql<{ readonly id: string }>`
    SELECT key_id AS id FROM key_service_links WHERE service_name = ${name}`
  return [
    ...projects.map(({ id }): Change => ({ _tag: "Project", id })),
    ...keys.map(({ id }): Change => ({ _tag: "Key", id }))
  ]
})

/**
 * Fails if a project or unrevoked key is linked only to this service. Without links, this project or key could call
 * every service. Locks these projects and keys, because two removals at once could remove the last two links.
 */
export const refuseLastLinks = Effect.fnUntraced(function* (
  sql: SqlClient,
  name: string
): Effect.fn.Return<void, Refused<"service_in_use"> | SqlError.SqlError> {
  yield* sql`SELECT 1 FROM projects
    WHERE id IN (SELECT project_id FROM project_service_links WHERE service_name = ${name})
    ORDER BY id FOR NO KEY UPDATE`
  yield* sql`SELECT 1 FROM api_keys WHERE id IN (SELECT key_id FROM key_service_links WHERE service_name = ${name})
    ORDER BY id FOR NO KEY UPDATE`
  const exclusiveOwners = yield* sql<{ readonly owner: string }>`
    SELECT 'the project ' || p.name AS owner FROM project_service_links l JOIN projects p ON p.id = l.project_id
      WHERE l.service_name = ${name} AND NOT EXISTS (
        SELECT 1 FROM project_service_links WHERE project_id = l.project_id AND service_name <> ${name})
    UNION ALL
    SELECT 'the key ' || k.key_prefix FROM key_service_links l JOIN api_keys k ON k.id = l.key_id
      WHERE l.service_name = ${name} AND k.revoked_at IS NULL AND NOT EXISTS (
        SELECT 1 FROM key_service_links WHERE key_id = l.key_id AND service_name <> ${name})
    LIMIT 4`
  const [first] = exclusiveOwners
  if (first === undefined) return
  const others =
    exclusiveOwners.length === 1
      ? ""
      : exclusiveOwners.length > 3
        ? " and others"
        : ` and ${exclusiveOwners.length - 1} more`
  return yield* new ControlError(
    "service_in_use",
    `The service is the only link of ${first.owner}${others}; without a link they could call every service. Link them to another service first, revoke the keys, or disable this service.`
  )
})
