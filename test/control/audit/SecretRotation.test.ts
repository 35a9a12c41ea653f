import { assert, describe, layer as describeWith } from "@effect/vitest"
import { Effect, Layer, Option, Redacted } from "effect"
import { RequestId } from "../../../src/control/api/schema/Errors.ts"
import { Operator } from "../../../src/control/api/schema/Security.ts"
import { Audit } from "../../../src/control/audit/Audit.ts"
import { AuditChain } from "../../../src/control/audit/AuditChain.ts"
import { rotate, sealedColumns } from "../../../src/control/audit/SecretRotation.ts"
import { Database } from "../../../src/services/Database.ts"
import { Vault } from "../../../src/state/Vault.ts"
import * as EmbeddedDatabase from "../../EmbeddedDatabase.ts"
import * as MigratedDatabase from "../../MigratedDatabase.ts"
import * as TemporaryDatabase from "../../TemporaryDatabase.ts"

const key = (fill: number) => Option.some(Redacted.make<Uint8Array>(Buffer.alloc(32, fill)))
const [none, a, b] = [Option.none(), key(1), key(2)]

const author = Layer.mergeAll(
  Layer.succeed(Operator, { tokenId: null, scopes: ["*"], ip: null, userAgent: "a command" }),
  Layer.succeed(RequestId, "rotation")
)

/** One run of the command with those keys. */
const run = (...keys: Parameters<typeof Vault.layer>) =>
  Effect.provide(rotate, [Audit.layer, Vault.layer(...keys), author])

const sealed = Effect.flatMap(
  Database,
  ({ sql }) => sql<{ id: string; sealed: string }>`
    SELECT id::text AS id, sealed_credential AS sealed FROM provider_configs WHERE sealed_credential IS NOT NULL ORDER BY name`
)

/** What a gateway with those keys reads. */
const opened = (...keys: Parameters<typeof Vault.layer>) =>
  Effect.gen(function* () {
    const vault = yield* Vault
    return yield* Effect.forEach(yield* sealed, ({ id, sealed }) =>
      vault.open(sealed, `provider_configs/${id}`).pipe(
        Effect.map(Redacted.value),
        Effect.catch(({ reason }) => Effect.succeed(reason))
      )
    )
  }).pipe(Effect.provide(Vault.layer(...keys)))

/** Two rows under the first key and one in clear. */
const filled = Effect.gen(function* () {
  const { sql } = yield* Database
  yield* sql`DELETE FROM provider_configs`
  const add = (name: string) =>
    Effect.gen(function* () {
      const vault = yield* Vault
      const [row] = yield* sql<{
        id: string
      }>`INSERT INTO provider_configs (provider, name, base_url) VALUES ('internal-service', ${name}, 'http://x') RETURNING id::text AS id`
      const text = vault.seal(Redacted.make(`canary-${name}`), `provider_configs/${row?.id}`)
      yield* sql`UPDATE provider_configs SET sealed_credential = ${text} WHERE id = ${row?.id}`
    })
  yield* Effect.provide(Effect.forEach(["1", "2"], add), Vault.layer(a))
  yield* Effect.provide(add("3"), Vault.layer(none))
  yield* sql`INSERT INTO provider_configs (provider, name, base_url) VALUES ('internal-service', 'without', 'http://x')`
})

const canaries = ["canary-1", "canary-2", "canary-3"]

const rules = <E>(name: string, database: Layer.Layer<Database, E>) =>
  describeWith(Layer.provideMerge(AuditChain.layer, MigratedDatabase.of(database)), {
    excludeTestServices: true
  })(`Secret rotation (${name})`, (it) => {
    it.effect("knows every sealed column that there is", () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        const found = yield* sql`
          SELECT table_name || '.' || column_name AS name FROM information_schema.columns
          WHERE table_schema = 'public' AND column_name LIKE 'sealed\\_%'`
        assert.sameMembers(
          sealedColumns.map(({ column, table }) => `${table}.${column}`),
          found.map((row) => String(row["name"]))
        )
      })
    )

    it.effect("seals everything under the new key, so that neither clear text nor the old key is left", () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        yield* filled
        assert.deepStrictEqual(yield* opened(b, a), canaries)
        const done = yield* run(b, a)
        assert.strictEqual(done.resealed["provider_configs.sealed_credential"], 3)
        assert.strictEqual(done.kept, 0)
        assert.deepStrictEqual(yield* opened(b, a), canaries)
        assert.deepStrictEqual(yield* opened(b), canaries)
        assert.deepStrictEqual(yield* opened(a), ["other_key", "other_key", "other_key"])
        const [dump] = yield* sql`SELECT string_agg(p::text, '') AS dump FROM provider_configs p`
        assert.notInclude(String(dump?.["dump"]), "canary")

        const again = yield* run(b, a)
        assert.strictEqual(again.resealed["provider_configs.sealed_credential"], 0)
        assert.strictEqual(again.kept, 3)
      })
    )

    it.effect("is one event, with numbers and no secret, in a chain that stays whole", () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        yield* filled
        yield* run(b, a)
        const [event] = yield* sql`SELECT * FROM audit_events ORDER BY sequence DESC LIMIT 1`
        assert.deepInclude(event, {
          action: "secrets:rotate",
          target_type: "vault",
          actor_token_id: null,
          request_id: "rotation",
          user_agent: "a command"
        })
        assert.deepInclude(event?.["after_json"], { "provider_configs.sealed_credential": 3 })
        assert.isTrue((yield* (yield* AuditChain).verify({})).intact)
      })
    )

    it.effect("changes nothing at all when one of them cannot be opened, and says which", () =>
      Effect.gen(function* () {
        yield* filled
        const before = yield* sealed
        const refusal = yield* Effect.flip(run(b))
        assert(refusal._tag === "UnreadableSecret")
        assert.strictEqual(refusal.reason, "other_key")
        assert.include(
          before.map(({ id }) => `provider_configs/${id}`),
          refusal.context
        )
        assert.deepStrictEqual(yield* sealed, before)
      })
    )
  })

rules("embedded", EmbeddedDatabase.layer)

describe.skipIf(TemporaryDatabase.server === null)("on a server", () => rules("postgres", TemporaryDatabase.layer))
