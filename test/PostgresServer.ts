import { randomUUID } from "node:crypto"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import { Effect, Redacted } from "effect"
import * as DatabasePostgres from "../layers/DatabasePostgres.ts"
import * as Migrations from "../layers/postgres/Migrations.ts"

/** Runs one statement on the server itself, in a session of its own. `server` is the URL of any of its databases. */
export const administer = (server: string, statement: string) =>
  PgConnection.make({ url: Redacted.make(server) }).pipe(
    Effect.flatMap((session) => session.query(statement)),
    Effect.scoped
  )

/** An empty database, or a copy of another one. The caller drops it. */
export interface MadeDatabase {
  readonly name: string
  readonly url: Redacted.Redacted
  readonly drop: Effect.Effect<void>
}

/** Copies `template`, to which nothing may be connected. */
export const makeDatabase = Effect.fnUntraced(function* (server: string, template = "template1") {
  const name = `svc_test_${randomUUID().replaceAll("-", "")}`
  yield* administer(server, `CREATE DATABASE ${name} TEMPLATE ${template}`)
  const url = new URL(server)
  url.pathname = `/${name}`
  const made: MadeDatabase = {
    name,
    url: Redacted.make(url.href),
    drop: Effect.orDie(administer(server, `DROP DATABASE ${name} WITH (FORCE)`))
  }
  return made
})

/** A database with the product's schema. PostgreSQL copies it in a tenth of the time that the migrations take. */
export const makeMigrated = Effect.fnUntraced(function* (server: string) {
  const made = yield* makeDatabase(server)
  const migrate = Effect.provide(Migrations.run, DatabasePostgres.layer({ url: made.url }))
  yield* Effect.onError(migrate, () => made.drop)
  return made
})
