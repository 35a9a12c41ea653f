import { randomBytes } from "node:crypto"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import { Effect, Redacted, Schema, type Scope } from "effect"
import { Redis as Ioredis } from "ioredis"
import { unlinkKeys } from "../UnlinkKeys.ts"
import { BenchFailed } from "./Child.ts"

/** A database and a part of Redis of its own, for one gateway. Both are gone with the scope. */
export interface Store {
  readonly databaseUrl: string
  readonly redisUrl: string
  readonly redisPrefix: string
  readonly count: (query: string) => Effect.Effect<number, BenchFailed>
  readonly text: (query: string) => Effect.Effect<string, BenchFailed>
  readonly run: (statement: string) => Effect.Effect<void, BenchFailed>
  readonly redis: Ioredis
}

const postgresUrl = process.env["DATABASE_URL"] ?? "postgres://postgres@127.0.0.1:5432/postgres"
const redisUrl = process.env["REDIS_URL"] ?? "redis://127.0.0.1:6379"

/** Where a server was looked for. */
export const place = (variable: string, local: string): string =>
  process.env[variable] === undefined
    ? `nothing answers at ${local}, and ${variable} is not set`
    : `nothing answers at ${variable}`

const session = (url: string) =>
  Effect.mapError(
    PgConnection.make({ url: Redacted.make(url), connectTimeout: "3 seconds" }),
    () => new BenchFailed({ message: `PostgreSQL is missing: ${place("DATABASE_URL", "127.0.0.1:5432")}.` })
  )

const query = (url: string, statement: string) =>
  Effect.scoped(
    Effect.flatMap(session(url), (session) =>
      Effect.mapError(
        session.query(statement),
        ({ message }) => new BenchFailed({ message: `${statement}: ${message}` })
      )
    )
  )

export const redis: Effect.Effect<Ioredis, BenchFailed, Scope.Scope> = Effect.acquireRelease(
  Effect.tryPromise({
    try: async () => {
      const client = new Ioredis(redisUrl, { lazyConnect: true, connectTimeout: 3_000, retryStrategy: () => null })
      client.on("error", () => {})
      await client.connect()
      return client
    },
    catch: () => new BenchFailed({ message: `Redis is missing: ${place("REDIS_URL", "127.0.0.1:6379")}.` })
  }),
  (client) => Effect.sync(() => client.disconnect())
)

const decodeText = Schema.decodeUnknownEffect(Schema.Tuple([Schema.Struct({ text: Schema.String })]))

export const make = Effect.gen(function* () {
  const name = `svc_bench_${randomBytes(6).toString("hex")}`
  const url = new URL(postgresUrl)
  url.pathname = `/${name}`
  const client = yield* redis
  const redisPrefix = `{${name}}:`
  yield* Effect.acquireRelease(query(postgresUrl, `CREATE DATABASE ${name}`), () =>
    Effect.orDie(query(postgresUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`))
  )
  yield* Effect.addFinalizer(() => Effect.promise(() => unlinkKeys(client, redisPrefix)))
  const text = (expression: string) =>
    query(url.href, `SELECT (${expression})::text AS text`).pipe(
      Effect.flatMap(({ rows }) => decodeText(rows)),
      Effect.map(([{ text }]) => text),
      Effect.catchTag("SchemaError", ({ message }) => Effect.fail(new BenchFailed({ message })))
    )
  const store: Store = {
    databaseUrl: url.href,
    redisUrl,
    redisPrefix,
    redis: client,
    run: (statement) => Effect.asVoid(query(url.href, statement)),
    text,
    count: (expression) => Effect.map(text(expression), Number)
  }
  return store
})
