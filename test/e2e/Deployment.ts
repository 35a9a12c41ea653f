import * as PgConnection from "@effect/sql-pg/PgConnection"
import { Effect, Redacted, Schema, type Scope } from "effect"
import { Redis as Ioredis } from "ioredis"
import { eventually } from "../Eventually.ts"
import * as RunningGateway from "../RunningGateway.ts"
import * as TemporaryDatabase from "../TemporaryDatabase.ts"
import * as TemporaryPrefix from "../TemporaryPrefix.ts"

/** Without both servers there is no deployment. */
export const available = TemporaryDatabase.server !== null && TemporaryPrefix.server !== null

/**
 * What the processes of one installation share: a PostgreSQL database and a Redis prefix, and their operator's token.
 */
export interface Deployment {
  readonly adminToken: string
  readonly database: Redacted.Redacted
  readonly prefix: string
  /** One process more, ended with the scope. */
  readonly start: (options?: RunningGateway.Options) => Effect.Effect<RunningGateway.RunningGateway, never, Scope.Scope>
  /** The variables that every process of the deployment gets. */
  readonly environment: Readonly<Record<string, string>>
  /** What a statement answers, asked at the database itself. */
  readonly rows: <A, I>(shape: Schema.Codec<A, I>, statement: string) => Effect.Effect<ReadonlyArray<A>>
  /** A Redis command on a connection of its own; `key` puts the prefix on. */
  readonly redis: (name: string, ...args: ReadonlyArray<string>) => Effect.Effect<unknown>
  readonly key: (name: string) => string
  /** The usage records of a key, oldest first, once there are `count` and the queue is empty. */
  readonly recorded: (keyId: string, count: number) => Effect.Effect<ReadonlyArray<Recorded>>
}

export const Recorded = Schema.Struct({
  id: Schema.String,
  request_id: Schema.String,
  route: Schema.String,
  status_code: Schema.Int,
  error_code: Schema.NullOr(Schema.String),
  usage_source: Schema.String,
  total_tokens: Schema.NullOr(Schema.FiniteFromString),
  cost_nanos: Schema.NullOr(Schema.FiniteFromString),
  streamed: Schema.Boolean
})
export type Recorded = typeof Recorded.Type

/** Where the servers are, when not where the test machine has them. */
export interface Options {
  readonly redis?: Redacted.Redacted
  /** The database's URL, as its processes are to know it: through a proxy that a test can cut. */
  readonly databaseFor?: (url: Redacted.Redacted) => Effect.Effect<string, never, Scope.Scope>
  readonly environment?: Readonly<Record<string, string>>
}

export const make = Effect.fnUntraced(function* (options: Options = {}) {
  const database = yield* Effect.orDie(TemporaryDatabase.make)
  const prefix = yield* TemporaryPrefix.make
  const redisUrl = Redacted.value(options.redis ?? TemporaryPrefix.url)
  const adminToken = RunningGateway.newAdminToken()
  const environment = {
    DATABASE_URL: options.databaseFor === undefined ? Redacted.value(database) : yield* options.databaseFor(database),
    REDIS_URL: redisUrl,
    REDIS_KEY_PREFIX: prefix,
    ...options.environment
  }

  const key = (name: string) => prefix + name
  const redis = (name: string, ...args: ReadonlyArray<string>) =>
    Effect.promise(async () => {
      const client = new Ioredis(redisUrl)
      try {
        return await client.call(name, [...args])
      } finally {
        client.disconnect()
      }
    })
  const rows: Deployment["rows"] = (shape, statement) =>
    PgConnection.make({ url: database }).pipe(
      Effect.flatMap((session) => session.query(statement)),
      Effect.flatMap((result) => Schema.decodeUnknownEffect(Schema.Array(shape))(result.rows)),
      Effect.scoped,
      Effect.orDie
    )
  const records = (keyId: string) =>
    rows(
      Recorded,
      `SELECT id::text, request_id, route, status_code, error_code, usage_source, total_tokens::text, cost_nanos::text,
        streamed FROM usage_events WHERE key_id = '${keyId}' ORDER BY created_at, id`
    )

  const deployment: Deployment = {
    adminToken,
    database,
    prefix,
    environment,
    key,
    redis,
    rows,
    start: (more = {}) =>
      RunningGateway.start({ adminToken, ...more, environment: { ...environment, ...more.environment } }),
    recorded: (keyId, count) =>
      Effect.andThen(
        eventually(redis("LLEN", key("usage:queue")), (length) => length === 0, "20 seconds"),
        eventually(records(keyId), (found) => found.length >= count)
      )
  }
  return deployment
})
