import { assert, describe, layer as describeWith, it } from "@effect/vitest"
import { Effect, Layer, Option, Redacted } from "effect"
import * as DatabasePostgres from "../../../layers/DatabasePostgres.ts"
import * as Migrations from "../../../layers/postgres/Migrations.ts"
import { bootstrap, MalformedAdminToken } from "../../../src/control/operators/OperatorTokens.ts"
import { Database } from "../../../src/services/Database.ts"
import * as EmbeddedDatabase from "../../EmbeddedDatabase.ts"
import * as MigratedDatabase from "../../MigratedDatabase.ts"
import * as TemporaryDatabase from "../../TemporaryDatabase.ts"

const given = Redacted.make(`op_live_${"f".repeat(64)}`)

const tokens = Effect.flatMap(
  Database,
  ({ sql }) => sql`
    SELECT token_prefix, NOT disabled AND revoked_at IS NULL AS active, roles, scopes FROM operator_tokens`
)

const empty = Effect.flatMap(Database, ({ sql }) => sql`DELETE FROM operator_tokens`)

const rules = <E>(name: string, database: Layer.Layer<Database, E>) => {
  const options = { excludeTestServices: true } as const

  describeWith(MigratedDatabase.of(database), options)(`the first operator token (${name})`, (it) => {
    it.effect("is made and handed over once when none is given", () =>
      Effect.gen(function* () {
        yield* empty
        const first = yield* bootstrap(Option.none())
        assert(Option.isSome(first))
        assert.match(Redacted.value(first.value), /^op_live_[0-9a-f]{64}$/)
        assert.deepStrictEqual(yield* tokens, [
          { token_prefix: Redacted.value(first.value).slice(0, 16), active: true, roles: ["owner"], scopes: ["*"] }
        ])
        assert.isTrue(Option.isNone(yield* bootstrap(Option.none())))
        assert.isTrue(Option.isNone(yield* bootstrap(Option.some(given))))
        assert.lengthOf(yield* tokens, 1)
      })
    )

    it.effect("is the given one, never handed back, and only its hash is kept", () =>
      Effect.gen(function* () {
        yield* empty
        const { sql } = yield* Database
        assert.isTrue(Option.isNone(yield* bootstrap(Option.some(given))))
        const [row] = yield* sql`SELECT row_to_json(operator_tokens)::text AS dump FROM operator_tokens`
        assert.notInclude(String(row?.["dump"]), "f".repeat(64))
        assert.include(String(row?.["dump"]), "op_live_ffffffff")
      })
    )

    it.effect("is refused when the given value is not one, unless a token is active already", () =>
      Effect.gen(function* () {
        yield* empty
        for (const wrong of [
          "",
          "op_live_short",
          "op_live_password1-short",
          `op_live_${"short".padEnd(23, "x")}`,
          `rk_live_${"f".repeat(64)}`
        ]) {
          const refusal = yield* Effect.flip(bootstrap(Option.some(Redacted.make(wrong))))
          assert.instanceOf(refusal, MalformedAdminToken)
          assert.notInclude(`${refusal}`, "short")
        }
        assert.lengthOf(yield* tokens, 0)
        yield* bootstrap(Option.none())
        assert.isTrue(Option.isNone(yield* bootstrap(Option.some(Redacted.make("wrong")))))
      })
    )

    it.effect("is one, however many start at once", () =>
      Effect.gen(function* () {
        yield* empty
        const made = yield* Effect.forEach(Array.from({ length: 8 }), () => bootstrap(Option.none()), {
          concurrency: "unbounded"
        })
        assert.strictEqual(made.filter(Option.isSome).length, 1)
        assert.lengthOf(yield* tokens, 1)
      })
    )
  })
}

rules("embedded", EmbeddedDatabase.layer)

describe.skipIf(TemporaryDatabase.server === null)("on a server", () => {
  rules("postgres", TemporaryDatabase.layer)

  it.live("two processes on one empty database make one token", () =>
    Effect.gen(function* () {
      const url = yield* TemporaryDatabase.make
      const start = Effect.andThen(Migrations.run, bootstrap(Option.none())).pipe(
        Effect.provide(Layer.fresh(DatabasePostgres.layer({ url })))
      )
      const made = yield* Effect.all([start, start], { concurrency: 2 })
      assert.strictEqual(made.filter(Option.isSome).length, 1)
    }).pipe(Effect.scoped)
  )
})
