import { Effect } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Change } from "../gateway/model/Changes.ts"
import { Mutation } from "./Audit.ts"
import { ControlError } from "./api/Errors.ts"

const places = {
  project: { table: "project_service_links", column: "project_id", owner: "projects.id" },
  key: { table: "key_service_links", column: "key_id", owner: "api_keys.id" }
} as const

/** The links of projects, or of keys, to services: none means every service that the policy allows. */
export const linksOf = (sql: SqlClient, kind: keyof typeof places) => {
  const { column, owner, table } = places[kind]
  return {
    /** The names, as a column of the owner's row. */
    names: sql.literal(
      `ARRAY(SELECT service_name FROM ${table} WHERE ${table}.${column} = ${owner} ORDER BY service_name COLLATE "C") AS service_names`
    ),
    /** In place of all that there were. The services cannot go meanwhile. */
    replace: Effect.fnUntraced(function* (id: string, names: ReadonlyArray<string>) {
      const { write } = yield* Mutation
      const wanted = [...new Set(names)]
      if (wanted.length > 0) {
        const known = yield* sql<{ readonly name: string }>`
          SELECT name FROM service_registrations WHERE ${sql.in("name", wanted)} ORDER BY name FOR KEY SHARE`
        const unknown = wanted.find((name) => !known.some((row) => row.name === name))
        if (unknown !== undefined) {
          return yield* new ControlError("missing_service", `There is no service of the name ${unknown}.`, {
            param: "service_names"
          })
        }
      }
      yield* write`DELETE FROM ${sql(table)} WHERE ${sql(column)} = ${id}`
      if (wanted.length > 0) {
        yield* write`
          INSERT INTO ${sql(table)} (${sql(column)}, service_name)
          SELECT ${id}::uuid, name FROM service_registrations WHERE ${sql.in("name", wanted)}`
      }
    })
  }
}

/** Who is linked to the service, told as changes: gateways keep links with their keys. */
export const linkedTo = Effect.fnUntraced(function* (sql: SqlClient, name: string) {
  const projects = yield* sql<{ readonly id: string }>`
    SELECT project_id AS id FROM project_service_links WHERE service_name = ${name}`
  const keys = yield* sql<{ readonly id: string }>`
    SELECT key_id AS id FROM key_service_links WHERE service_name = ${name}`
  return [
    ...projects.map(({ id }): Change => ({ _tag: "Project", id })),
    ...keys.map(({ id }): Change => ({ _tag: "Key", id }))
  ]
})
