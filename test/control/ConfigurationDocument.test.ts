import { assert } from "@effect/vitest"
import { Effect, type Schema } from "effect"
import { Database } from "../../src/services/Database.ts"
import * as Fixtures from "./Fixtures.ts"
import { admin, at, call, idOf, ok, refusalOf, suite } from "./Listener.ts"

const configuration = `${admin}/configuration`

const exported = ok("GET", configuration)
const plan = (document: unknown) => ok("POST", `${configuration}/plan`, { body: document })
const apply = (document: unknown, base_hash: unknown) =>
  call("POST", `${configuration}/apply`, { body: { base_hash, document } })

/** The document with one section in place of another. */
const withSection = (document: Schema.Json, section: string, entries: ReadonlyArray<unknown>) => ({
  ...Object(document),
  [section]: entries
})

const entriesOf = (document: Schema.Json, section: string): ReadonlyArray<Schema.Json> => {
  const entries = at(document, section)
  assert(Array.isArray(entries))
  return entries
}

const listed = (json: Schema.Json | undefined): ReadonlyArray<Schema.Json> => {
  assert(Array.isArray(json))
  return json
}

const changesOf = (planned: Schema.Json) =>
  listed(at(planned, "changes")).map((change) => `${at(change, "action")} ${at(change, "section")} ${at(change, "id")}`)

const events = Effect.flatMap(Database, ({ sql }) =>
  Effect.map(sql`SELECT action FROM audit_events ORDER BY sequence`, (rows) => rows.map((row) => String(row["action"])))
)

/** A configuration with something of every kind in it. */
const filled = Effect.gen(function* () {
  const { sql } = yield* Database
  yield* sql`TRUNCATE projects, api_keys, provider_configs, upstream_credential_mappings, model_prices CASCADE`
  const project_id = idOf(yield* ok("POST", `${admin}/projects`, { body: { name: "team" } }))
  const key = yield* ok("POST", `${admin}/keys`, {
    body: { project_id, expires_at: "2999-01-01T00:00:00Z", policy: { rpm_limit: 60, allowed_models: ["a", "b"] } }
  })
  const credential = "sk-canary-configuration"
  yield* ok("POST", `${admin}/providers`, {
    body: { provider: "upstream", name: "main", base_url: "https://main.example", credential }
  })
  yield* ok("POST", `${admin}/providers/upstream-credentials`, {
    body: { scope: "project", target_id: project_id, credential }
  })
  yield* ok("PUT", `${admin}/model-prices/a`, { body: { input_usd_per_million: 1.5, output_usd_per_million: 2 } })
  return { key: idOf(key, "key"), raw: String(at(key, "raw_key")) }
})

suite("Configuration as code", (it) => {
  it.effect("is exported whole, without a secret, and planning what was exported changes nothing", () =>
    Effect.gen(function* () {
      const { key, raw } = yield* filled
      const revoked = yield* Fixtures.key
      yield* ok("POST", `${admin}/keys/${revoked}/revoke`)
      const answer = yield* call("GET", configuration)
      assert.notInclude(answer.text, "sk-canary")
      assert.notInclude(answer.text, raw.slice(16))
      const document = answer.json
      assert.strictEqual(at(document, "format"), "svc-configuration/1")
      assert.deepStrictEqual(at(document, "projects"), [{ name: "team" }])
      assert.deepStrictEqual(at(document, "credential_mappings"), [{ scope: "project", target: "team", enabled: true }])
      assert.deepStrictEqual(at(document, "model_prices"), [
        {
          model: "a",
          input_usd_per_million: 1.5,
          output_usd_per_million: 2,
          cached_input_usd_per_million: null,
          cache_write_usd_per_million: null
        }
      ])
      assert.deepStrictEqual(at(document, "providers"), [
        {
          provider: "upstream",
          name: "main",
          base_url: "https://main.example",
          family: null,
          enabled: true,
          credential_header_mode: "authorization_bearer",
          credential_header_name: null,
          credential_header_value_format: "raw"
        }
      ])
      assert.lengthOf(entriesOf(document, "routes"), 10)
      assert.lengthOf(entriesOf(document, "keys"), 1)
      assert.deepInclude(at(document, "keys", 0), {
        id: key,
        key_prefix: raw.slice(0, 16),
        owner_type: "project",
        project: "team",
        disabled: false,
        expires_at: "2999-01-01T00:00:00.000Z"
      })
      assert.strictEqual(at(document, "keys", 0, "policy", "rpm_limit"), 60)

      const planned = yield* plan(document)
      assert.deepStrictEqual(at(planned, "changes"), [])
      const turned = Object.fromEntries(
        Object.entries(Object(document))
          .reverse()
          .map(([section, entries]) => [section, Array.isArray(entries) ? entries.toReversed() : entries])
      )
      assert.deepStrictEqual(yield* plan(turned), planned)
      assert.deepStrictEqual(yield* plan({ format: "svc-configuration/1" }), planned)
    })
  )

  it.effect("a plan says what would change and what each key loses, and writes nothing", () =>
    Effect.gen(function* () {
      const { key } = yield* filled
      const document = yield* exported
      const before = yield* events
      const [held] = entriesOf(document, "keys")
      const wanted = withSection(document, "keys", [
        { ...Object(held), policy: { ...Object(at(held, "policy")), rpm_limit: 10, allowed_models: ["b"] } }
      ])
      const planned = yield* plan(wanted)
      assert.deepStrictEqual(changesOf(planned), [`update keys ${key}`])
      const change = at(planned, "changes", 0)
      assert.deepStrictEqual(at(change, "fields"), [
        { path: "policy.allowed_models", before: ["a", "b"], after: ["b"] },
        { path: "policy.rpm_limit", before: 60, after: 10 }
      ])
      assert.strictEqual(at(change, "summary"), `Key ${key} loses models a; loses: its rpm_limit falls from 60 to 10.`)
      assert.deepStrictEqual(yield* exported, document)
      assert.deepStrictEqual(yield* events, before)
    })
  )

  it.effect(
    "applied, everything is as the document says, with one event for each object; then there is nothing to do",
    () =>
      Effect.gen(function* () {
        const { key } = yield* filled
        const document = yield* exported
        const [held] = entriesOf(document, "keys")
        const wanted = {
          ...Object(document),
          projects: [{ name: "new team" }],
          keys: [{ ...Object(held), project: "new team", policy: { allow_tools: false } }],
          providers: [
            { ...Object(at(document, "providers", 0)), enabled: false },
            { ...Object(at(document, "providers", 0)), name: "next", base_url: "https://next.example" }
          ],
          credential_mappings: [
            { scope: "key", target: key, enabled: true },
            { scope: "project", target: "new team", enabled: false }
          ],
          model_prices: [],
          routes: [{ ...Object(at(document, "routes", 0)), enabled: false, timeout_ms: 4321 }]
        }
        const planned = yield* plan(wanted)
        assert.sameMembers(changesOf(planned), [
          "create projects new team",
          `update keys ${key}`,
          "update providers upstream/main",
          "create providers upstream/next",
          "delete credential_mappings project/team",
          `create credential_mappings key/${key}`,
          "create credential_mappings project/new team",
          "delete model_prices a",
          `update routes ${at(document, "routes", 0, "route_id")}`,
          "delete projects team"
        ])
        const before = yield* events
        const applied = yield* apply(wanted, at(planned, "base_hash"))
        assert.strictEqual(applied.status, 200, applied.text)
        assert.deepStrictEqual(changesOf(applied.json), changesOf(planned))
        assert.sameMembers((yield* events).slice(before.length), [
          "projects:create",
          "keys:update",
          "providers:update",
          "providers:create",
          "upstream_credentials:delete",
          "upstream_credentials:upsert",
          "upstream_credentials:upsert",
          "prices:delete",
          "policies:route_config_update",
          "projects:delete",
          "configuration:apply"
        ])
        const state = yield* ok("GET", `${configuration}/applied`)
        assert.deepStrictEqual([at(state, "applied", "changes"), at(state, "changes_since")], [10, 0])
        const [event] = listed(yield* ok("GET", `${admin}/audit-events?action=configuration:apply&limit=1`))
        assert.strictEqual(at(state, "applied", "sequence"), at(event, "sequence"))
        assert.deepInclude(at(event, "after"), { base_hash: at(applied.json, "base_hash"), changes: 10 })
        const now = yield* plan(wanted)
        assert.deepStrictEqual(at(now, "changes"), [])
        assert.strictEqual(at(now, "base_hash"), at(applied.json, "base_hash"))
        assert.strictEqual(at(yield* ok("GET", `${admin}/audit-events/verification`), "intact"), true)
        const shown = yield* ok("GET", `${admin}/keys/${key}`)
        assert.deepStrictEqual(
          [at(shown, "policy", "allow_tools"), at(shown, "policy", "rpm_limit"), at(shown, "policy", "policy_version")],
          [false, null, 2]
        )

        const back = yield* apply(document, at(applied.json, "base_hash"))
        assert.strictEqual(back.status, 200, back.text)
        assert.deepStrictEqual(at(yield* plan(document), "changes"), [])
      })
  )

  it.effect("what is written otherwise and stored the same is no change", () =>
    Effect.gen(function* () {
      yield* filled
      const document = yield* exported
      const wanted = {
        ...Object(document),
        projects: [{ name: "  team " }],
        providers: [{ ...Object(at(document, "providers", 0)), name: "main ", base_url: "https://MAIN.example:443/" }],
        model_prices: [{ ...Object(at(document, "model_prices", 0)), input_usd_per_million: 1.5000000000001 }]
      }
      assert.deepStrictEqual(at(yield* plan(wanted), "changes"), [])
    })
  )

  it.effect("is refused when the configuration has changed since the plan", () =>
    Effect.gen(function* () {
      const { key } = yield* filled
      const document = yield* exported
      const planned = yield* plan(withSection(document, "model_prices", []))
      yield* apply(document, at(yield* plan(document), "base_hash"))
      const changesSince = Effect.map(ok("GET", `${configuration}/applied`), (state) => at(state, "changes_since"))
      assert.strictEqual(yield* changesSince, 0)
      yield* ok("POST", `${admin}/keys/${key}/disable`)
      // what changes nothing of a document does not count
      yield* ok("POST", `${admin}/keys/${key}/rotate`)
      assert.strictEqual(yield* changesSince, 1)
      const before = yield* events
      const refused = yield* apply(withSection(document, "model_prices", []), at(planned, "base_hash"))
      assert.deepStrictEqual(refusalOf(refused), { status: 409, code: "configuration_changed", param: "base_hash" })
      assert.deepStrictEqual(yield* events, before)
    })
  )

  it.effect("with more keys than a document can have is not exported, and a document without keys still applies", () =>
    Effect.gen(function* () {
      yield* filled
      const { sql } = yield* Database
      const document = yield* exported
      // what follows changes of single keys would take a minute
      yield* sql`DO $$ BEGIN
        SET LOCAL session_replication_role = replica;
        INSERT INTO api_keys (owner_type, key_prefix, key_hash, policy)
          SELECT 'individual', 'rk_live_' || i, sha256(('too many' || i)::bytea), '{}' FROM generate_series(1, 50000) AS i;
      END $$`
      const refused = yield* call("GET", configuration)
      assert.deepStrictEqual(refusalOf(refused), { status: 409, code: "configuration_too_large", param: "keys" })
      assert.include(refused.text, "There are 50001 keys")
      const { keys: _, ...rest } = Object(document)
      const withoutKeys = yield* ok("GET", `${configuration}?omit=keys`)
      assert.deepStrictEqual(withoutKeys, rest)
      const planned = yield* plan({ ...rest, model_prices: [] })
      assert.deepStrictEqual(changesOf(planned), ["delete model_prices a"])
      yield* sql`DELETE FROM api_keys WHERE key_prefix <> 'rk_live_'`
    })
  )

  it.effect("leaves out each section that the export omits, and knows no other", () =>
    Effect.gen(function* () {
      yield* filled
      const names = Object.keys(Object(yield* exported))
      const some = yield* ok("GET", `${configuration}?omit=keys&omit=model_prices&omit=studio_connection`)
      const omitted = ["keys", "model_prices", "studio_connection"]
      assert.deepStrictEqual(
        Object.keys(Object(some)),
        names.filter((name) => !omitted.includes(name))
      )
      assert.deepStrictEqual(at(yield* plan(Object(some)), "changes"), [])
      const unknown = yield* call("GET", `${configuration}?omit=key`)
      assert.deepInclude(refusalOf(unknown), { status: 422, code: "invalid_request", param: "omit.0" })
      assert.include(unknown.text, "model_prices")
    })
  )

  it.effect("of several at once with one plan, one is applied", () =>
    Effect.gen(function* () {
      yield* filled
      const document = yield* exported
      const base = at(yield* plan(document), "base_hash")
      const answers = yield* Effect.forEach(
        [1, 2, 3],
        (n) => apply(withSection(document, "projects", [{ name: "team" }, { name: `extra ${n}` }]), base),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(answers.map(({ status }) => status).sort(), [200, 409, 409])
    })
  )

  it.effect("changes nothing when one of the changes is refused, and says which and why", () =>
    Effect.gen(function* () {
      yield* filled
      const document = yield* exported
      const base = at(yield* plan(document), "base_hash")
      const nobody = "00000000-0000-4000-8000-000000000000"
      const before = [yield* exported, yield* events]
      const upstream = Object(at(document, "providers", 0))
      for (const [section, entries, message] of [
        ["projects", [], /^projects team: The project cannot be deleted, because keys, .*refer to it/],
        [
          "providers",
          [upstream, { ...upstream, name: "second" }],
          /^providers upstream\/second: Another upstream row is enabled/
        ],
        ["providers", [{ ...upstream, base_url: "https://a.example/v1?x" }], /base_url must not carry a query/],
        [
          "credential_mappings",
          [{ scope: "project", target: "nobody", enabled: true }],
          /: There is no project nobody\./
        ],
        ["credential_mappings", [{ scope: "key", target: nobody, enabled: true }], /target_id is not the id of a key/],
        [
          "credential_mappings",
          [{ scope: "key", target: "no id", enabled: true }],
          /key\/no id: The target must be the id of a key/
        ],
        ["projects", [{ name: "x".repeat(121) }, { name: "team" }], /name must have 1 to 120 characters/],
        ["projects", [{ name: "team" }, { name: " team " }], /projects lists an object twice/],
        ["keys", [{ ...Object(at(document, "keys", 0)), id: nobody }], /keys 0{8}.* a document cannot create it/],
        ["keys", [{ ...Object(at(document, "keys", 0)), project: "nobody" }], /: There is no project nobody\./]
      ] as const) {
        const wanted = { ...withSection(document, section, entries), model_prices: [] }
        const refused = yield* apply(wanted, base)
        assert.deepStrictEqual(
          refusalOf(refused),
          { status: 400, code: "invalid_configuration_document", param: section },
          refused.text
        )
        assert.match(String(at(refused.json, "error", "message")), message)
        assert.deepStrictEqual([yield* exported, yield* events], before)
      }
    })
  )

  it.effect("a document with a mistake is refused by the path of the field", () =>
    Effect.gen(function* () {
      yield* filled
      const document = yield* exported
      for (const [wrong, param] of [
        [{ ...Object(document), format: "svc-configuration/2" }, "format"],
        [{ projects: [] }, "format"],
        [withSection(document, "secrets", []), "secrets"],
        [
          withSection(document, "model_prices", [{ ...Object(at(document, "model_prices", 0)), model: "" }]),
          "model_prices.0.model"
        ],
        [
          withSection(document, "routes", [{ ...Object(at(document, "routes", 0)), timeout_ms: 0 }]),
          "routes.0.timeout_ms"
        ],
        [
          withSection(document, "keys", [{ ...Object(at(document, "keys", 0)), policy: { rpm_limit: -1 } }]),
          "keys.0.policy.rpm_limit"
        ],
        [
          withSection(document, "providers", [{ ...Object(at(document, "providers", 0)), credential: "sk" }]),
          "providers.0.credential"
        ]
      ] as const) {
        const refused = yield* call("POST", `${configuration}/plan`, { body: wrong })
        assert.deepStrictEqual(refusalOf(refused), { status: 422, code: "invalid_request", param }, refused.text)
      }
    })
  )
})
