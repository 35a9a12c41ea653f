import { assert } from "@effect/vitest"
import { Effect, Predicate } from "effect"
import type { HttpMethod } from "effect/http"
import { Database } from "../../src/services/Database.ts"
import * as NewerRows from "../NewerRows.ts"
import * as Fixtures from "./Fixtures.ts"
import { admin, at, call, idOf, ok, refusalOf, suite } from "./Listener.ts"

/** Changes a stored object to what a newer version may have made of it. */
const newer = (statement: string, ...parameters: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const { sql } = yield* Database
    yield* sql.unsafe(NewerRows.unconstrained)
    yield* sql.unsafe(statement, [...parameters])
  })

const price = Effect.as(
  ok("PUT", `${admin}/model-prices/newer`, { body: { input_usd_per_million: 1, output_usd_per_million: 2 } }),
  "newer"
)

interface Kind {
  readonly path: string
  readonly table: string
  readonly make: Effect.Effect<string, unknown, Effect.Services<ReturnType<typeof call>>>
  readonly statement: string
  /** Calls that need no more of the object than its id: what stands behind it in the path. */
  readonly ends: ReadonlyArray<readonly [method: HttpMethod.HttpMethod, path: string, body?: unknown]>
  readonly change?: readonly [method: HttpMethod.HttpMethod, body: unknown]
}

const kinds: ReadonlyArray<Kind> = [
  {
    path: "keys",
    table: "api_keys",
    make: Fixtures.key,
    statement: `UPDATE api_keys SET policy = '{"allowed_routes":["/v9"]}', policy_version = 1152921504606846976 WHERE id = $1`,
    ends: [
      ["POST", "/disable"],
      ["POST", "/revoke"]
    ],
    change: ["PATCH", { team_id: "x" }]
  },
  {
    path: "keys",
    table: "api_keys",
    make: Fixtures.key,
    statement: `UPDATE api_keys SET expires_at = 'infinity', created_at = 'infinity' WHERE id = $1`,
    ends: [
      ["POST", "/disable"],
      ["POST", "/revoke"]
    ]
  },
  {
    path: "operator-tokens",
    table: "operator_tokens",
    make: Fixtures.token,
    statement: `UPDATE operator_tokens SET scopes = '{usage:read,teams:manage}' WHERE id = $1`,
    ends: [["POST", "/revoke"]]
  },
  {
    path: "providers",
    table: "provider_configs",
    make: Fixtures.provider,
    statement: `UPDATE provider_configs SET credential_header_mode = 'signature' WHERE id = $1`,
    ends: [
      ["POST", "/disable"],
      ["DELETE", ""]
    ],
    change: ["PATCH", { name: "other" }]
  },
  {
    path: "providers/upstream-credentials",
    table: "upstream_credential_mappings",
    make: Fixtures.mapping,
    statement: `UPDATE upstream_credential_mappings SET scope = 'service' WHERE id = $1`,
    ends: [
      ["POST", "/disable"],
      ["DELETE", ""]
    ]
  },
  {
    path: "services",
    table: "service_registrations",
    make: Fixtures.service,
    statement: `UPDATE service_registrations SET cost_mode = 'auction' WHERE name = $1`,
    ends: [
      ["POST", "/disable"],
      ["DELETE", ""]
    ],
    change: ["PATCH", { timeout_ms: 5 }]
  },
  {
    path: "guardrails",
    table: "guardrail_definitions",
    make: Fixtures.guardrail,
    statement: `UPDATE guardrail_definitions SET provider_kind = 'wasm' WHERE name = $1`,
    ends: [
      ["PATCH", "", { enabled: false }],
      ["DELETE", ""]
    ],
    change: ["PATCH", { default_on: true }]
  },
  ...["stream_mode = 'sentence'", "window_chars = 0"].map((newerValue) => ({
    path: "guardrails",
    table: "guardrail_definitions",
    make: Fixtures.guardrail,
    statement: `UPDATE guardrail_definitions SET ${newerValue} WHERE name = $1`,
    ends: [
      ["PATCH", "", { enabled: false }],
      ["DELETE", ""]
    ] satisfies Kind["ends"],
    change: ["PATCH", { default_on: true }] satisfies Kind["change"]
  })),
  {
    path: "policy-layers",
    table: "policy_layers",
    make: Fixtures.policyLayer,
    statement: `UPDATE policy_layers SET layer_kind = 'department' WHERE id = $1`,
    ends: [["DELETE", ""]],
    change: ["PATCH", { shared: { rpm_limit: 1 } }]
  },
  {
    path: "model-prices",
    table: "model_prices",
    make: price,
    statement: `UPDATE model_prices SET updated_at = 'infinity' WHERE model = $1`,
    ends: [["DELETE", ""]]
  },
  {
    path: "projects",
    table: "projects",
    make: Fixtures.project,
    statement: `UPDATE projects SET created_at = 'infinity' WHERE id = $1`,
    ends: [["DELETE", ""]],
    change: ["PATCH", { name: "another" }]
  }
]

const names = (list: unknown): ReadonlyArray<unknown> => {
  const all = Predicate.hasProperty(list, "guardrails") ? list.guardrails : list
  assert(Array.isArray(all))
  return all.map((one) => one.id ?? one.name ?? one.model)
}

suite("A row that this version cannot decode", (it) => {
  it.effect.each(kinds)("$path: is named by the list that leaves it out", ({ make, path, statement }) =>
    Effect.gen(function* () {
      const other = yield* make
      const id = path === "model-prices" ? other : yield* make
      yield* newer(statement, id)
      const list = yield* call("GET", `${admin}/${path}`)
      assert.strictEqual(list.status, 200, list.text)
      assert.include((list.headers["x-unreadable-rows"] ?? "").split(","), encodeURIComponent(id))
      assert.notInclude(names(list.json), id)
      if (other !== id) assert.include(names(list.json), other)
    })
  )

  it.effect.each(kinds)(
    "$path: cannot be shown or changed, and that is no defect",
    ({ change, make, path, statement, table }) =>
      Effect.gen(function* () {
        const id = yield* make
        yield* newer(statement, id)
        const calls = [
          yield* call("GET", `${admin}/${path}/${id}`),
          ...(change === undefined ? [] : [yield* call(change[0], `${admin}/${path}/${id}`, { body: change[1] })])
        ]
        for (const answer of calls) {
          assert.deepStrictEqual(refusalOf(answer), { status: 503, code: "store_unavailable", param: null })
          assert.include(String(at(answer.json, "error", "message")), `${id} of the table ${table}`)
        }
      })
  )

  it.effect.each(kinds)("$path: can be taken out of use by its id, and the record says what it was", (kind) =>
    Effect.gen(function* () {
      const id = yield* kind.make
      yield* newer(kind.statement, id)
      for (const [method, path, body] of kind.ends) {
        const answer = yield* call(method, `${admin}/${kind.path}/${id}${path}`, { body })
        if (method === "DELETE") assert.strictEqual(answer.status, 204, answer.text)
        else assert.deepStrictEqual([answer.status, answer.json], [200, { id, unreadable: true }])
        const event = at(yield* ok("GET", `${admin}/audit-events?limit=1`), 0)
        assert.strictEqual(at(event, "target_id"), id)
        assert.deepStrictEqual(at(event, "before"), { id, unreadable: true })
      }
      const { sql } = yield* Database
      const column = { services: "name", guardrails: "name", "model-prices": "model" }[kind.path] ?? "id"
      const [row] = yield* sql<{ readonly ended: boolean }>`
        SELECT ${sql.literal(kind.path === "operator-tokens" || kind.path === "keys" ? "revoked_at IS NOT NULL" : "false")} AS ended
        FROM ${sql(kind.table)} WHERE ${sql(column)}::text = ${id}`
      assert.isTrue(row === undefined || row.ended)
    })
  )

  it.effect("a price is not taken for none by whoever saw none, and is replaced by anybody else", () =>
    Effect.gen(function* () {
      const path = `${admin}/model-prices/${yield* price}`
      yield* newer(`UPDATE model_prices SET updated_at = 'infinity' WHERE model = $1`, "newer")
      const body = { input_usd_per_million: 3, output_usd_per_million: 4 }
      const unseen = yield* call("PUT", path, { body: { ...body, expected_updated_at: null } })
      assert.deepInclude(refusalOf(unseen), { status: 409, code: "changed_since_read", param: "expected_updated_at" })
      assert.strictEqual(at(yield* ok("PUT", path, { body }), "input_usd_per_million"), 3)
    })
  )

  it.effect("a route can be disabled, and mended by a value that this version knows", () =>
    Effect.gen(function* () {
      const path = `${admin}/family-a-routes`
      yield* newer(NewerRows.statements.route)
      const list = yield* call("GET", path)
      assert.deepStrictEqual([list.status, list.headers["x-unreadable-rows"]], [200, "embeddings"])
      assert.strictEqual((yield* call("POST", `${path}/embeddings/enable`)).status, 503)
      assert.deepStrictEqual(yield* ok("POST", `${path}/embeddings/disable`), { id: "embeddings", unreadable: true })
      const mended = yield* ok("PATCH", `${path}/embeddings/mode`, { body: { mode: "managed_by_gateway" } })
      assert.isFalse(at(mended, "enabled"))
    })
  )

  it.effect("a guardrail is removed whatever the fields of a newer policy that names it look like", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const [name, layer, key] = [yield* Fixtures.guardrail, yield* Fixtures.policyLayer, yield* Fixtures.key]
      const other = yield* Fixtures.policyLayer
      const policy = { mandatory_guardrails: [name, "kept"], primary: name, by: { [name]: 1 }, first: "kept", most: 3 }
      for (const [table, id] of [
        ["policy_layers", layer],
        ["api_keys", key]
      ] as const) {
        yield* newer(`UPDATE ${table} SET guardrail_policy = $1::text::jsonb WHERE id = $2`, JSON.stringify(policy), id)
      }
      yield* newer(`UPDATE policy_layers SET guardrail_policy = to_jsonb($1::text) WHERE id = $2`, name, other)
      const answer = yield* call("DELETE", `${admin}/guardrails/${name}`)
      assert.strictEqual(answer.status, 204, answer.text)
      const held = yield* sql`SELECT guardrail_policy FROM policy_layers WHERE id = ${layer}
        UNION ALL SELECT guardrail_policy FROM api_keys WHERE id = ${key}`
      for (const row of held) {
        assert.deepStrictEqual(row["guardrail_policy"], {
          mandatory_guardrails: ["kept"],
          by: {},
          first: "kept",
          most: 3
        })
      }
      assert.lengthOf(held, 2)
      for (const id of [layer, other]) yield* ok("DELETE", `${admin}/policy-layers/${id}`)
    })
  )

  it.effect("a key with an infinite time cannot be simulated, and that is no defect either", () =>
    Effect.gen(function* () {
      const key_id = yield* Fixtures.key
      yield* newer("UPDATE api_keys SET expires_at = 'infinity' WHERE id = $1", key_id)
      const body = { key_id, method: "POST", path: "/v1/chat/completions", body: { model: "m", messages: [] } }
      const answer = yield* call("POST", `${admin}/policy/simulate`, { body })
      assert.deepStrictEqual(refusalOf(answer), { status: 503, code: "store_unavailable", param: null })
    })
  )

  it.effect("a page keeps its place for it: the list goes on behind it", () =>
    Effect.gen(function* () {
      yield* newer("DELETE FROM api_keys WHERE created_at = 'infinity'")
      const [first, second, third] = [yield* Fixtures.key, yield* Fixtures.key, yield* Fixtures.key]
      yield* newer(`UPDATE api_keys SET policy = '{"allowed_routes":["/v9"]}' WHERE id = $1`, third)
      const page = yield* call("GET", `${admin}/keys?limit=1`)
      assert.deepStrictEqual([page.json, page.headers["x-unreadable-rows"]], [[], third])
      const next = page.headers["x-next-cursor"] ?? ""
      assert.deepStrictEqual(names(yield* ok("GET", `${admin}/keys?limit=2&cursor=${next}`)), [second, first])
    })
  )

  it.effect("a header names it however long its name is, and whatever characters it has", () =>
    Effect.gen(function* () {
      // of 256 characters that the path may have; the 200th is half of one
      const models = Array.from({ length: 20 }, (_, at) => `${String.fromCharCode(97 + at)}${"😀".repeat(127)}`)
      for (const model of models) {
        const body = { input_usd_per_million: 1, output_usd_per_million: 2 }
        yield* ok("PUT", `${admin}/model-prices/${encodeURIComponent(model)}`, { body })
        yield* newer("UPDATE model_prices SET updated_at = 'infinity' WHERE model = $1", model)
      }
      const list = yield* call("GET", `${admin}/model-prices`)
      assert.strictEqual(list.status, 200, list.text)
      const named = list.headers["x-unreadable-rows"] ?? ""
      assert.isBelow(named.length, 5_000)
      for (const name of named.split(",")) assert.include([...models, "newer"], decodeURIComponent(name))
      for (const model of models) {
        const answer = yield* call("DELETE", `${admin}/model-prices/${encodeURIComponent(model)}`)
        assert.strictEqual(answer.status, 204, answer.text)
        const event = at(yield* ok("GET", `${admin}/audit-events?limit=1`), 0)
        assert.deepStrictEqual(at(event, "before"), { id: model, unreadable: true })
      }
    })
  )

  it.effect("settings of which there is one set cannot be shown; the wildcard's are mended by a patch", () =>
    Effect.gen(function* () {
      yield* newer(NewerRows.statements.passthrough)
      const path = `${admin}/providers/upstream-passthrough`
      assert.strictEqual(refusalOf(yield* call("GET", path)).code, "store_unavailable")
      yield* ok("PATCH", path, { body: { admin_api_exposure: "disabled", enabled: false } })
      yield* newer(NewerRows.statements.authSettings)
      yield* newer(`UPDATE gateway_auth_settings SET accepted_algorithms = '{XS512}'`)
      assert.strictEqual(refusalOf(yield* call("GET", `${admin}/auth/front-door`)).code, "store_unavailable")
      yield* newer("DELETE FROM gateway_auth_settings")
    })
  )

  it.effect("a configuration document is not made of a part of a table", () =>
    Effect.gen(function* () {
      const id = yield* Fixtures.policyLayer
      yield* newer(`UPDATE policy_layers SET layer_kind = 'department' WHERE id = $1`, id)
      const answer = yield* call("GET", `${admin}/configuration`)
      assert.deepStrictEqual(refusalOf(answer), { status: 503, code: "store_unavailable", param: null })
      yield* ok("DELETE", `${admin}/policy-layers/${id}`)
    })
  )

  it.effect("an operator token has the scopes that this version knows, and no others", () =>
    Effect.gen(function* () {
      const made = yield* ok("POST", `${admin}/operator-tokens`, {
        body: { name: "newer", scopes: ["usage:read", "operators:manage"] }
      })
      const authorization = `Bearer ${at(made, "raw_token")}`
      yield* newer(
        `UPDATE operator_tokens SET scopes = '{usage:read,operators:manage,teams:manage}' WHERE id = $1`,
        idOf(made, "token")
      )
      assert.strictEqual((yield* call("GET", `${admin}/usage/summary`, { authorization })).status, 200)
      const refused = yield* call("GET", `${admin}/audit-events`, { authorization })
      assert.strictEqual(refusalOf(refused).code, "insufficient_operator_scope")
      // its scopes cannot be handed on whole
      const rotated = yield* call("POST", `${admin}/operator-token/rotate`, { authorization })
      assert.strictEqual(refusalOf(rotated).code, "store_unavailable")
    })
  )

  it.effect("a token whose row cannot be read is revoked by nobody but who may do everything", () =>
    Effect.gen(function* () {
      const id = yield* Fixtures.token
      yield* newer(`UPDATE operator_tokens SET scopes = '{usage:read,teams:manage}' WHERE id = $1`, id)
      const body = { name: "manager", scopes: ["operators:manage", "usage:read"] }
      const manager = `Bearer ${at(yield* ok("POST", `${admin}/operator-tokens`, { body }), "raw_token")}`
      const refused = yield* call("POST", `${admin}/operator-tokens/${id}/revoke`, { authorization: manager })
      assert.strictEqual(refusalOf(refused).code, "insufficient_operator_scope")
      yield* ok("POST", `${admin}/operator-tokens/${id}/revoke`)
    })
  )

  it.effect("a version of the registry: the list goes on, and going back to it is refused", () =>
    Effect.gen(function* () {
      yield* newer(`DELETE FROM service_registrations WHERE cost_mode = 'auction'`)
      const activate = ok("POST", `${admin}/services/import/activate`, { body: { services: [{ name: "imported" }] } })
      const version = at(yield* activate, "snapshot", "version")
      yield* newer(
        `UPDATE service_registry_snapshots SET services_json = '[{"name":"imported","cost_mode":"auction"}]' WHERE version = $1`,
        String(version)
      )
      const list = yield* call("GET", `${admin}/services/import/versions`)
      assert.deepStrictEqual([list.status, list.headers["x-unreadable-rows"]], [200, String(version)])
      const back = yield* call("POST", `${admin}/services/import/rollback/${version}`)
      assert.strictEqual(refusalOf(back).code, "store_unavailable")
      yield* activate
    })
  )

  it.effect("a service is left alone by an import of the registry, which goes on for the others", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      yield* newer(`DELETE FROM service_registrations WHERE cost_mode = 'auction'`)
      const [name, studio] = [yield* Fixtures.service, yield* Fixtures.service]
      yield* newer(`UPDATE service_registrations SET cost_mode = 'auction' WHERE name = $1`, name)
      yield* newer(
        `UPDATE service_registrations SET cost_mode = 'auction', studio_service_id = 'newer-1' WHERE name = $1`,
        studio
      )
      const rows = sql`SELECT name, enabled, sync_status, timeout_ms FROM service_registrations
        WHERE name IN (${name}, ${studio}) ORDER BY name`
      const before = yield* rows
      const services = [
        { name: "readable", timeout_ms: 5 },
        { name, timeout_ms: 5 },
        { name: "other-name", studio_service_id: "newer-1" }
      ]
      const path = `${admin}/services/import`
      const preview = yield* call("POST", `${path}/preview`, { body: { services } })
      assert.deepStrictEqual(at(preview.json, "diff", "added"), ["readable"], preview.text)
      const activated = yield* call("POST", `${path}/activate`, { body: { services } })
      assert.strictEqual(activated.status, 200, activated.text)
      const version = at(activated.json, "snapshot", "version")
      const back = yield* call("POST", `${path}/rollback/${version}`)
      assert.strictEqual(back.status, 200, back.text)
      for (const { headers } of [preview, activated, back]) {
        assert.deepStrictEqual((headers["x-unreadable-rows"] ?? "").split(",").sort(), [name, studio].sort())
      }
      assert.deepStrictEqual(yield* rows, before)
      assert.strictEqual(at(yield* ok("GET", `${admin}/services/readable`), "timeout_ms"), 5)
      // one by one, the others can be imported as well, and these cannot
      yield* ok("POST", path, { body: { studio_service_id: "readable-1", name: "one-more" } })
      for (const entry of [
        { studio_service_id: "newer-1", name: "other-name" },
        { studio_service_id: "newer-2", name }
      ]) {
        assert.strictEqual(refusalOf(yield* call("POST", path, { body: entry })).code, "store_unavailable")
      }
      for (const one of [name, studio]) yield* ok("DELETE", `${admin}/services/${one}`)
    })
  )

  it.effect("the OpenAPI document says so of every list", () =>
    Effect.gen(function* () {
      const document = yield* ok("GET", "/admin-ui/openapi.json")
      for (const { path } of kinds) {
        const headers = at(document, "paths", `${admin}/${path}`, "get", "responses", "200", "headers")
        assert.isDefined(at(headers, "x-unreadable-rows"), path)
      }
    })
  )
})
