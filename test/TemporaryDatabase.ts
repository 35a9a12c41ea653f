import { Effect, Layer } from "effect"
import { inject } from "vitest"
import * as DatabasePostgres from "../layers/DatabasePostgres.ts"
import * as PostgresServer from "./PostgresServer.ts"

/** `null`: no PostgreSQL on this machine. */
export const server = inject("postgres")

export const administer = (statement: string) => PostgresServer.administer(server ?? "", statement)

const makeFrom = (template?: string) =>
  Effect.acquireRelease(PostgresServer.makeDatabase(server ?? "", template), ({ drop }) => drop).pipe(
    Effect.map(({ url }) => url)
  )

/** The URL of an empty database of its own, dropped with the scope. */
export const make = makeFrom()

/**
 * The URL of a database with the product's schema, dropped with the scope, for tests that are not about migrations. All
 * of these databases have the same installation key.
 */
export const migrated = makeFrom(inject("postgresTemplate") ?? "")

export const layer = Layer.unwrap(Effect.map(make, (url) => DatabasePostgres.layer({ url })))
