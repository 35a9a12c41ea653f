import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import * as DatabaseEmbedded from "../../../layers/DatabaseEmbedded.ts"
import * as DataDirectory from "../../../layers/data/DataDirectory.ts"
import { Database } from "../../../src/services/Database.ts"

const [, , path = ""] = process.argv

/** A program whose database finds no room for the next segment of its write-ahead log, because a folder has its name. */
Effect.gen(function* () {
  const { sql } = yield* Database
  yield* sql`CREATE TABLE kept (id int PRIMARY KEY)`
  yield* sql`INSERT INTO kept VALUES (1)`
  mkdirSync(join(path, "database", "pg_wal", "xlogtemp.42"))
  yield* sql`SELECT pg_switch_wal()`
  yield* sql`INSERT INTO kept VALUES (2)`
}).pipe(
  Effect.provide(DatabaseEmbedded.layerOnDisk),
  Effect.provide(DataDirectory.layer(path)),
  Effect.scoped,
  Effect.runPromise
)
