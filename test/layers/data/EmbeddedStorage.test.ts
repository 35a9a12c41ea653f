import { execFile } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, rmdirSync, statSync, truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as DatabaseEmbedded from "../../../layers/DatabaseEmbedded.ts"
import * as DataDirectory from "../../../layers/data/DataDirectory.ts"
import * as EmbeddedStorage from "../../../layers/postgres/EmbeddedStorage.ts"
import { Database } from "../../../src/services/Database.ts"
import * as TemporaryData from "../../TemporaryData.ts"

const within = <A, E>(path: string, work: Effect.Effect<A, E, Database>) =>
  Effect.provide(work, Layer.fresh(DatabaseEmbedded.layerOnDisk.pipe(Layer.provide(DataDirectory.layer(path)))))

describe("the embedded database on disk", () => {
  it.live("has what it was told after it was opened again, and a half-made one is replaced", () =>
    Effect.gen(function* () {
      const path = yield* TemporaryData.path
      yield* Effect.scoped(Layer.build(Layer.fresh(DataDirectory.layer(path))))
      mkdirSync(join(path, "database.new"))
      writeFileSync(join(path, "database.new", "PG_VERSION"), "half")
      yield* within(
        path,
        Effect.gen(function* () {
          const { sql } = yield* Database
          yield* sql`CREATE TABLE kept (id int PRIMARY KEY)`
          yield* sql`INSERT INTO kept SELECT generate_series(1, 1000)`
          yield* sql`DELETE FROM kept WHERE id > 100`
          assert.deepStrictEqual(yield* EmbeddedStorage.vacuum(sql), ["public.kept"])
          assert.deepStrictEqual(yield* EmbeddedStorage.vacuum(sql), [])
          const [{ version = "" } = {}] = yield* sql<{
            version: string
          }>`SELECT current_setting('server_version') AS version`
          assert.strictEqual(version.split(".")[0], EmbeddedStorage.postgresMajor)
        })
      )
      assert.isFalse(existsSync(join(path, "database.new")))
      const kept = yield* within(
        path,
        Effect.flatMap(Database, ({ sql }) => sql`SELECT count(*)::int AS n FROM kept`)
      )
      assert.deepStrictEqual(kept, [{ n: 100 }])
      writeFileSync(join(path, "database", "PG_VERSION"), "17\n")
      const refused = yield* Effect.flip(within(path, Effect.void))
      assert.include(refused.message, "has the format of PostgreSQL 17")
    })
  )

  it.live("ends the process where PostgreSQL panics, keeps what was committed, and is closed to other users", () =>
    Effect.gen(function* () {
      const path = yield* TemporaryData.path
      const database = join(path, "database")
      chmodSync(path, 0o755)
      const ended = yield* Effect.promise(() => run(join(import.meta.dirname, "PanickingDatabase.ts"), path))
      assert.strictEqual(ended.code, 1)
      assert.include(ended.stderr, "cannot continue: PANIC: could not create file")
      assert.strictEqual(statSync(database).mode & 0o777, 0o700)

      rmdirSync(join(database, "pg_wal", "xlogtemp.42"))
      chmodSync(database, 0o755)
      const kept = yield* within(
        path,
        Effect.flatMap(Database, ({ sql }) => sql`SELECT id FROM kept`)
      )
      assert.deepStrictEqual(kept, [{ id: 1 }])
      assert.strictEqual(statSync(database).mode & 0o777, 0o700)

      truncateSync(join(database, "global", "pg_control"), 100)
      const damaged = yield* Effect.flip(within(path, Effect.void))
      assert.strictEqual(damaged._tag, "DataUnusable")
      assert.include(damaged.message, `${database} cannot be opened: PANIC: could not read file "global/pg_control"`)
    })
  )
})

const run = (...args: ReadonlyArray<string>) =>
  new Promise<{ readonly code: unknown; readonly stderr: string }>((resolve) => {
    execFile(process.execPath, args, { timeout: 60_000, killSignal: "SIGKILL" }, (failure, _, stderr) => {
      resolve({ code: failure === null ? 0 : failure.code, stderr })
    })
  })
