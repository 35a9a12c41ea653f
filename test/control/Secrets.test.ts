import { assert, layer as describeWith } from "@effect/vitest"
import { Effect, Layer, Logger, Option, References } from "effect"
import { Database } from "../../src/services/Database.ts"
import * as EmbeddedDatabase from "../EmbeddedDatabase.ts"
import * as Fixtures from "./Fixtures.ts"
import { admin, at, call, idOf, layer, operatorToken, refusalOf } from "./Listener.ts"

const canary = "sk-cAnArY-0123456789"

const lines: Array<string> = []
const logs = Layer.mergeAll(
  Logger.layer([Logger.map(Logger.formatJson, (line) => void lines.push(line))]),
  Layer.succeed(References.MinimumLogLevel, "All")
)

const options = { excludeTestServices: true } as const

describeWith(Layer.provideMerge(layer(EmbeddedDatabase.layer), logs), options)("Secrets", (it) => {
  it.effect("a credential is in no answer, no audit event, no log line and no table, whatever is done with it", () =>
    Effect.gen(function* () {
      const answers: Array<string> = []
      const send = (...request: Parameters<typeof call>) =>
        Effect.tap(call(...request), ({ headers, text }) =>
          Effect.sync(() => answers.push(text, JSON.stringify(headers)))
        )
      const providers = `${admin}/providers`
      const mappings = `${providers}/upstream-credentials`
      const row = { provider: "upstream", name: "canary", base_url: "https://upstream.example", credential: canary }

      const made = yield* send("POST", providers, { body: row })
      const path = `${providers}/${idOf(made.json)}`
      yield* send("POST", providers, { body: row })
      yield* send("POST", providers, { body: { ...row, name: "", credential: `${canary} ` } })
      yield* send("POST", providers, { body: { ...row, credential: [canary] } })
      yield* send("POST", providers, { body: { ...row, credentials: canary } })
      yield* send("POST", providers, { text: JSON.stringify(row).slice(0, -1) })
      yield* send("PATCH", path, { body: { credential: `${canary}\u0000` } })
      yield* send("PATCH", path, { body: { credential: canary, credential_header_name: "authorization" } })
      yield* send("PATCH", path, { body: { credential: canary } })
      const target_id = yield* Fixtures.key
      const mapped = yield* send("POST", mappings, { body: { scope: "key", target_id, credential: canary } })
      yield* send("POST", mappings, { body: { scope: "project", target_id, credential: canary } })
      yield* send("POST", mappings, { body: { scope: "key", target_id, credential: `${canary}\n` } })
      yield* send("POST", `${mappings}/${idOf(mapped.json)}/disable`)
      const frontDoor = `${admin}/auth/front-door`
      const trusted = { trusted_gateway_header_enabled: true, trusted_gateway_header_secret: canary }
      yield* send("PATCH", frontDoor, { body: trusted })
      yield* send("PATCH", frontDoor, { body: { ...trusted, trusted_gateway_header_secret: `${canary}\n` } })
      yield* send("PATCH", frontDoor, { body: { ...trusted, trusted_gateway_header_secret: { canary } } })
      yield* send("PATCH", frontDoor, { body: { ...trusted, svc_key_header: "authorization" } })
      const services = `${admin}/services`
      yield* send("POST", services, { body: { name: "canary", credential: canary } })
      yield* send("POST", services, { body: { name: "canary", credential: canary } })
      yield* send("POST", services, { body: { name: "wrong", credential: `${canary}\n` } })
      yield* send("POST", services, { body: { name: "wrong", upstream_base_url: `http://u:${canary}@127.0.0.1` } })
      yield* send("PATCH", `${services}/canary`, { body: { credential: canary, timeout_ms: 0 } })
      yield* send("PATCH", `${services}/canary`, { body: { credential: canary } })
      for (const list of [providers, mappings, services, path, frontDoor, `${admin}/audit-events`])
        yield* send("GET", list)
      const dump = yield* everything
      yield* send("DELETE", `${mappings}/${idOf(mapped.json)}`)
      yield* send("DELETE", path)
      for (const column of ["sealed_credential", "sealed_secret"]) assert.include(dump, column)
      for (const [where, text] of [
        ["an answer", answers.join("\n")],
        ["a log line", lines.join("\n")],
        ["a table", dump]
      ] as const) {
        assert.notInclude(text, "cAnArY", where)
      }
    })
  )

  it.effect("raw keys and tokens are in the one answer that makes them and nowhere else", () =>
    Effect.gen(function* () {
      const key = yield* call("POST", `${admin}/keys`, { body: { owner_type: "individual" } })
      const audit = yield* call("GET", `${admin}/audit-events`)
      const rotated = yield* call("POST", `${admin}/operator-token/rotate`)
      const secrets = [at(key.json, "raw_key"), at(rotated.json, "raw_token"), operatorToken].map(String)
      const places = [audit.text, lines.join("\n"), yield* everything]
      for (const secret of secrets) {
        for (const place of places) assert.notInclude(place, secret.slice(16))
      }
      for (const { headers } of [key, rotated]) assert.strictEqual(headers["cache-control"], "no-store")
    })
  )
})

// Without a key the vault keeps credentials as they are, and the database would repeat them in the details of an error.
describeWith(Layer.provideMerge(layer(EmbeddedDatabase.layer, { vaultKey: Option.none() }), logs), options)(
  "Failures",
  (it) => {
    it.effect("a failure of ours is said without a word of the request, logged under its id, and leaves no event", () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        yield* sql`ALTER TABLE provider_configs ADD CHECK (name <> 'impossible')`
        const broken = yield* call("POST", `${admin}/providers`, {
          headers: { "x-request-id": "broken-1" },
          body: { provider: "upstream", name: "impossible", base_url: "https://upstream.example", credential: canary }
        })
        assert.deepStrictEqual(refusalOf(broken), { status: 500, code: "internal_error", param: null })
        assert.strictEqual(at(broken.json, "error", "request_id"), "broken-1")
        assert.deepStrictEqual(yield* sql`SELECT 1 FROM audit_events`, [])
        const logged = lines.filter((line) => line.includes("broken-1"))
        assert.lengthOf(logged, 1)
        assert.include(logged[0], "provider_configs_name_check")
        for (const text of [broken.text, ...lines]) assert.notInclude(text, "cAnArY")
      })
    )
  }
)

/** Every row of every table, as text. */
const everything = Effect.gen(function* () {
  const { sql } = yield* Database
  const tables = yield* sql<{ readonly name: string }>`
    SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'`
  const rows = yield* Effect.forEach(tables, ({ name }) => sql`SELECT to_jsonb(t)::text AS row FROM ${sql(name)} t`)
  return rows
    .flat()
    .map((row) => row["row"])
    .join("\n")
})
