import { readdirSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Redacted } from "effect"
import * as DatabaseEmbedded from "../../layers/DatabaseEmbedded.ts"
import * as DatabasePostgres from "../../layers/DatabasePostgres.ts"
import * as Migrations from "../../layers/postgres/Migrations.ts"
import { Database } from "../../src/services/Database.ts"
import * as TemporaryDatabase from "../TemporaryDatabase.ts"

const directory = (name: string) => fileURLToPath(new URL(name, import.meta.url))

it("numbers the migrations from 1 without a gap: a lower number than the last applied would never run", () => {
  const numbers = readdirSync(directory("../../migrations")).map((file) => Number(file.split("_", 1)[0]))
  assert.deepStrictEqual(
    numbers.sort((a, b) => a - b),
    numbers.map((_, at) => at + 1)
  )
})

for (const [name, layer] of [
  ["embedded", DatabaseEmbedded.layer],
  ["postgres", TemporaryDatabase.layer]
] as const) {
  describe.skipIf(name === "postgres" && TemporaryDatabase.server === null)(`Migrations: ${name}`, () => {
    it.live("brings an empty database to the product's schema, and finds nothing to do the second time", () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        assert.isAbove((yield* Migrations.run).length, 0)
        assert.deepStrictEqual(yield* sql`SELECT epoch FROM control_epoch`, [{ epoch: 1n }])
        assert.deepStrictEqual(yield* Migrations.run, [])
      }).pipe(Effect.provide(layer))
    )

    it.live("gives the routes and the wildcard of a new installation the limits that it is told, and of no other", () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        const limits = { timeoutMs: 300_000, maxRequestBodyBytes: 33_554_432, maxResponseBodyBytes: 67_108_864 }
        const found = sql`SELECT DISTINCT timeout_ms, max_request_body_bytes, max_response_body_bytes, limits_streams FROM (
          SELECT timeout_ms, max_request_body_bytes, max_response_body_bytes, limits_streams FROM canonical_routes UNION ALL
          SELECT timeout_ms, max_request_body_bytes, max_response_body_bytes, limits_streams FROM upstream_passthrough_settings
        ) AS settings`
        yield* Migrations.runWithLimits(limits)
        const begun = {
          timeout_ms: 300_000,
          max_request_body_bytes: 33_554_432,
          max_response_body_bytes: 67_108_864,
          limits_streams: false
        }
        assert.deepStrictEqual(yield* found, [begun])
        yield* Migrations.runWithLimits({ ...limits, timeoutMs: 1 })
        assert.deepStrictEqual(yield* found, [begun])
      }).pipe(Effect.provide(layer))
    )

    it.live("leaves nothing of a migration that failed, nor of those before it", () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        const failing = Migrations.runFrom(directory("./migrations-failing"))
        assert.strictEqual((yield* Effect.flip(failing))._tag, "MigrationError")
        assert.deepStrictEqual(yield* sql`SELECT to_regclass('first_step')::text AS first`, [{ first: null }])
      }).pipe(Effect.provide(layer))
    )
  })
}

describe.skipIf(TemporaryDatabase.server === null)("Migrations: two processes", () => {
  it.live(
    "start on one empty database at once: each migration runs once",
    () =>
      Effect.gen(function* () {
        const migrated = (url: Redacted.Redacted) =>
          Migrations.run.pipe(Effect.provide(DatabasePostgres.layer({ url })))
        for (let round = 0; round < 10; round++) {
          const url = yield* TemporaryDatabase.make
          const ran = yield* Effect.all([migrated(url), migrated(url)], { concurrency: 2 })
          assert.sameMembers(
            ran.map((migrations) => migrations.length > 0),
            [true, false]
          )
        }
      }).pipe(Effect.scoped),
    600_000
  )
})
