import { randomUUID } from "node:crypto"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import { Effect, Layer, Redacted } from "effect"
import { inject } from "vitest"
import * as DatabasePostgres from "../layers/DatabasePostgres.ts"

/** `null`: no PostgreSQL on this machine. */
export const server = inject("postgres")

/** One statement on the server itself, on a session of its own. */
export const administer = (statement: string) =>
  PgConnection.make({ url: Redacted.make(server ?? "") }).pipe(
    Effect.flatMap((session) => session.query(statement)),
    Effect.scoped
  )

const makeFrom = (template: string) =>
  Effect.gen(function* () {
    const name = `svc_test_${randomUUID().replaceAll("-", "")}`
    yield* Effect.acquireRelease(administer(`CREATE DATABASE ${name} TEMPLATE ${template}`), () =>
      Effect.orDie(administer(`DROP DATABASE ${name} WITH (FORCE)`))
    )
    const url = new URL(server ?? "")
    url.pathname = `/${name}`
    return Redacted.make(url.href)
  })

/** The URL of an empty database of its own, dropped with the scope. */
export const make = makeFrom("template1")

/** The same with the product's schema, for tests that are not about migrations. All copies have the same installation key. */
export const migrated = makeFrom(inject("postgresTemplate") ?? "")

export const layer = Layer.unwrap(Effect.map(make, (url) => DatabasePostgres.layer({ url })))
