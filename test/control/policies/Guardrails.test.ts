import { randomUUID } from "node:crypto"
import { assert } from "@effect/vitest"
import { Effect, Schema } from "effect"
import type { GuardrailPolicyPatch } from "../../../src/policy/GuardrailPolicy.ts"
import { Database } from "../../../src/services/Database.ts"
import * as Fixtures from "../Fixtures.ts"
import { admin, at, type Call, call, idOf, ok, refusalOf, suite } from "../Listener.ts"

const guardrails = `${admin}/guardrails`
const mine = "/admin-ui/v1/guardrails"

/** Makes a guardrail at a path of the scripted server. */
const entryAt = (path: string, more: object = {}) =>
  Effect.flatMap(Fixtures.guardrail, (name) =>
    Effect.as(
      ok("PATCH", `${guardrails}/${name}`, { body: { endpoint_url: `https://guard.test${path}`, ...more } }),
      name
    )
  )

const asTexts = Schema.decodeUnknownSync(Schema.Array(Schema.String))

suite("Guardrails", (it) => {
  it.effect("the catalogue begins with pii-redact, and shows a new entry with its defaults", () =>
    Effect.gen(function* () {
      const [seeded] = entriesOf(yield* ok("GET", guardrails))
      assert.deepStrictEqual(seeded, {
        name: "pii-redact",
        description: "Replaces e-mail addresses, phone numbers and social security numbers by placeholders",
        provider_kind: "built_in",
        modes: ["pre_call", "post_call", "during_call"],
        default_on: false,
        failure_policy: "fail_closed",
        config_schema: { restore_output: "boolean" },
        runtime_config: { restore_output: true },
        enabled: true,
        endpoint_configured: false,
        endpoint_url: null,
        timeout_ms: null,
        stream_mode: null,
        window_chars: null,
        token_configured: false
      })
      const body = { name: "new.one", endpoint_url: "https://guard.example/check?x=1", failure_policy: "fail_open" }
      assert.deepStrictEqual(yield* ok("POST", guardrails, { body }), {
        ...body,
        description: "",
        provider_kind: "http",
        modes: ["pre_call", "post_call"],
        default_on: false,
        config_schema: {},
        runtime_config: {},
        enabled: true,
        endpoint_configured: true,
        timeout_ms: 1500,
        stream_mode: "buffer",
        window_chars: 512,
        token_configured: false
      })
      assert.deepStrictEqual(
        entriesOf(yield* ok("GET", guardrails)).map((entry) => at(entry, "name")),
        ["new.one", "pii-redact"]
      )
      yield* ok("DELETE", `${guardrails}/new.one`)
    })
  )

  it.effect(
    "what is named like a secret is refused wherever it would be shown, and what only resembles one is not",
    () =>
      Effect.gen(function* () {
        const name = yield* Fixtures.guardrail
        const refused = Effect.fnUntraced(function* (method: "PATCH" | "POST", path: string, body: Schema.Json) {
          const answer = yield* call(method, `${admin}/${path}`, { body })
          assert.deepInclude(refusalOf(answer), { status: 400, code: "invalid_guardrail_request" })
          assert.include(answer.text, "bearer_token")
          assert.notInclude(answer.text, "canary")
        })
        for (const member of [
          "token",
          "client_secret",
          "Password",
          "api_key",
          "x-api-key",
          "Authorization",
          "accessToken"
        ]) {
          yield* refused("PATCH", `guardrails/${name}`, { runtime_config: { [member]: "canary" } })
        }
        const guardrail_policy = { guardrail_config_overrides: { [name]: { headers: { authorization: "canary" } } } }
        yield* refused("POST", "keys", { owner_type: "individual", guardrail_policy })
        yield* refused("POST", "policy-layers", { kind: "team", scope_id: "secretive", guardrail_policy })
        const document = yield* ok("GET", `${admin}/configuration`)
        assert(typeof document === "object" && document !== null && !Array.isArray(document))
        const entries = entriesOf(document).map((entry) =>
          at(entry, "name") === name && typeof entry === "object" && entry !== null
            ? { ...entry, runtime_config: { secret: "canary" } }
            : entry
        )
        const changed = { ...document, guardrails: entries }
        const plan = yield* call("POST", `${admin}/configuration/plan`, { body: changed })
        const base_hash = plan.status === 200 ? at(plan.json, "base_hash") : "none"
        const apply = yield* call("POST", `${admin}/configuration/apply`, { body: { base_hash, document: changed } })
        assert.strictEqual(apply.status, 400, apply.text)
        const harmless = { max_tokens: 5, detect_secret: true, token: "", tokens: "word", keyword: "password" }
        const kept = yield* ok("PATCH", `${admin}/guardrails/${name}`, { body: { runtime_config: harmless } })
        assert.deepStrictEqual(at(kept, "runtime_config"), harmless)
      })
  )

  it.effect("a deleted one is in no policy any more: neither a layer's nor a key's", () =>
    Effect.gen(function* () {
      const name = yield* Fixtures.guardrail
      const guardrail_policy = {
        mandatory_guardrails: [name],
        optional_guardrails: ["pii-redact"],
        guardrail_config_overrides: { [name]: { strict: true } }
      }
      const layer = yield* ok("POST", `${admin}/policy-layers`, {
        body: { kind: "team", scope_id: "forgetful", guardrail_policy }
      })
      const key = at(
        yield* ok("POST", `${admin}/keys`, { body: { owner_type: "individual", guardrail_policy } }),
        "key",
        "id"
      )
      yield* ok("DELETE", `${guardrails}/${name}`)
      const layers = yield* ok("GET", `${admin}/policy-layers`)
      const left = Array.isArray(layers) ? layers.find((one) => at(one, "id") === at(layer, "id")) : undefined
      for (const holder of [left ?? null, yield* ok("GET", `${admin}/keys/${key}`)]) {
        assert.notInclude(JSON.stringify(at(holder, "guardrail_policy")), name)
        assert.include(JSON.stringify(at(holder, "guardrail_policy")), "pii-redact")
      }
    })
  )

  it.effect("what is wrong is named, and nothing of it is kept", () =>
    Effect.gen(function* () {
      const name = yield* Fixtures.guardrail
      const good = { name: "wrong", endpoint_url: "https://guard.example", failure_policy: "fail_open" }
      const cases: ReadonlyArray<readonly [string, string, object, number, string, string]> = [
        ["POST", "", { ...good, name }, 400, "invalid_guardrail_request", "name"],
        ["POST", "", { ...good, endpoint_url: "ftp://x" }, 400, "invalid_guardrail_request", "endpoint_url"],
        ["POST", "", { ...good, endpoint_url: "http://u:p@x" }, 400, "invalid_guardrail_request", "endpoint_url"],
        ["POST", "", { ...good, bearer_token: "a b" }, 400, "invalid_guardrail_request", "bearer_token"],
        [
          "POST",
          "",
          { ...good, runtime_config: { a: "x".repeat(20_000) } },
          400,
          "invalid_guardrail_request",
          "runtime_config"
        ],
        ["POST", "", { ...good, name: "not a name" }, 422, "invalid_request", "name"],
        ["POST", "", { ...good, failure_policy: "fail" }, 422, "invalid_request", "failure_policy"],
        [
          "POST",
          "",
          { ...good, runtime_config: { a: [{ apiKey: "k" }] } },
          400,
          "invalid_guardrail_request",
          "runtime_config.a.apiKey"
        ],
        [
          "POST",
          "",
          { ...good, endpoint_url: "https://guard.example/?a=1&access_token=k" },
          400,
          "invalid_guardrail_request",
          "endpoint_url"
        ],
        ["POST", "", { ...good, runtime_config: [] }, 422, "invalid_request", "runtime_config"],
        ["POST", "", { ...good, modes: ["sometimes"] }, 422, "invalid_request", "modes.0"],
        ["POST", "", { ...good, token: "x" }, 422, "invalid_request", "token"],
        ["POST", "", { ...good, stream_mode: "sometimes" }, 422, "invalid_request", "stream_mode"],
        ["POST", "", { ...good, window_chars: 63 }, 422, "invalid_request", "window_chars"],
        ["POST", "", { ...good, window_chars: 16_385 }, 422, "invalid_request", "window_chars"],
        ["PATCH", `/${name}`, { modes: [] }, 400, "invalid_guardrail_request", "modes"],
        ["PATCH", "/unknown", { enabled: false }, 400, "invalid_guardrail_request", "name"],
        ["PATCH", "/pii-redact", { endpoint_url: "https://x" }, 400, "invalid_guardrail_request", "endpoint_url"],
        ["PATCH", "/pii-redact", { description: "mine" }, 400, "invalid_guardrail_request", "description"],
        ["PATCH", "/pii-redact", { bearer_token: null }, 400, "invalid_guardrail_request", "bearer_token"],
        ["PATCH", "/pii-redact", { stream_mode: "window" }, 400, "invalid_guardrail_request", "stream_mode"],
        ["PATCH", "/pii-redact", { window_chars: 64 }, 400, "invalid_guardrail_request", "window_chars"],
        [
          "PATCH",
          "/pii-redact",
          { runtime_config: { restore_output: 1 } },
          400,
          "invalid_guardrail_request",
          "runtime_config.restore_output"
        ],
        ["DELETE", "/pii-redact", {}, 400, "invalid_guardrail_request", "name"],
        ["DELETE", "/unknown", {}, 400, "invalid_guardrail_request", "name"]
      ]
      const before = yield* ok("GET", guardrails)
      for (const [method, path, body, status, code, param] of cases) {
        const answer = yield* call(
          method === "POST" ? "POST" : method === "PATCH" ? "PATCH" : "DELETE",
          guardrails + path,
          {
            ...(method !== "DELETE" && { body })
          }
        )
        assert.deepStrictEqual(refusalOf(answer), { status, code, param }, `${method} ${path} ${param}`)
      }
      assert.deepStrictEqual(yield* ok("GET", guardrails), before)
    })
  )

  it.effect(
    "a patch changes what it names; a token goes in and is never shown; timeouts are moved into their bounds",
    () =>
      Effect.gen(function* () {
        const name = yield* Fixtures.guardrail
        const path = `${guardrails}/${name}`
        const patched = yield* ok("PATCH", path, {
          body: {
            bearer_token: "sk-cAnArY",
            timeout_ms: 1,
            stream_mode: "window",
            window_chars: 1024,
            modes: ["post_call", "post_call"],
            runtime_config: { a: 1 }
          }
        })
        assert.deepInclude(patched, {
          token_configured: true,
          timeout_ms: 100,
          stream_mode: "window",
          window_chars: 1024,
          modes: ["post_call"],
          runtime_config: { a: 1 },
          failure_policy: "fail_closed"
        })
        assert.strictEqual(at(yield* ok("PATCH", path, { body: { timeout_ms: 60_000 } }), "timeout_ms"), 10_000)
        const { sql } = yield* Database
        const everywhere = JSON.stringify([
          patched,
          yield* ok("GET", `${admin}/audit-events?target_id=${name}`),
          yield* sql`SELECT sealed_token FROM guardrail_definitions WHERE name = ${name}`
        ])
        assert.notInclude(everywhere, "cAnArY")
        assert.strictEqual(at(yield* ok("PATCH", path, { body: { bearer_token: null } }), "token_configured"), false)
        yield* ok("PATCH", `${guardrails}/pii-redact`, { body: { default_on: true, enabled: false } })
        const restored = yield* ok("PATCH", `${guardrails}/pii-redact`, { body: { default_on: false, enabled: true } })
        assert.deepInclude(restored, { default_on: false, enabled: true, runtime_config: { restore_output: true } })
      })
  )

  it.effect("deleting a guardrail takes it out of every key's policy, and leaves the rest of it", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const name = yield* Fixtures.guardrail
      const holder = yield* keyWith({
        mandatory_guardrails: [name, "pii-redact"],
        forbidden_guardrails: [name],
        guardrail_config_overrides: { [name]: { a: 1 }, "pii-redact": { restore_output: false } }
      })
      const other = yield* keyWith({ optional_guardrails: ["pii-redact"] })
      assert.strictEqual((yield* call("DELETE", `${guardrails}/${name}`)).status, 204)
      const held = yield* sql`
        SELECT guardrail_policy, policy_version FROM api_keys WHERE id IN ${sql.in([holder.id, other.id])} ORDER BY policy_version`
      assert.deepStrictEqual(held, [
        { guardrail_policy: { optional_guardrails: ["pii-redact"] }, policy_version: 1n },
        {
          guardrail_policy: {
            mandatory_guardrails: ["pii-redact"],
            forbidden_guardrails: [],
            guardrail_config_overrides: { "pii-redact": { restore_output: false } }
          },
          policy_version: 2n
        }
      ])
    })
  )

  it.effect("executions can be filtered, paged and summed", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const key_id = randomUUID()
      for (let second = 0; second < 5; second++) {
        const mode = second % 2 === 0 ? "pre_call" : "post_call"
        yield* sql`INSERT INTO guardrail_execution_events (id, created_at, request_id, key_id, route, model, provider,
          guardrail_name, mode, action, failure_policy, latency_ms, reason, metadata)
          VALUES (${randomUUID()}, ${new Date(Date.UTC(2026, 4, 5, 12, 0, second))}, ${`r-${second}`}, ${key_id},
          '/v1/responses', 'm', 'upstream', 'pii-redact', ${mode}, ${second === 4 ? "block" : "modify"}, 'fail_closed', ${second},
          ${second === 4 ? "why" : null}, '{"email_count":1}')`
      }
      const about = `${guardrails}/executions?key_id=${key_id}`
      const first = yield* ok("GET", `${about}&limit=2`)
      assert.deepStrictEqual<unknown>(at(first, "executions", 0), {
        id: at(first, "executions", 0, "id"),
        request_id: "r-4",
        key_id,
        project_id: null,
        route: "/v1/responses",
        model: "m",
        provider: "upstream",
        guardrail_name: "pii-redact",
        mode: "pre_call",
        action: "block",
        failure_policy: "fail_closed",
        latency_ms: 4,
        reason: "why",
        metadata: { email_count: 1 },
        created_at: "2026-05-05T12:00:04.000Z"
      })
      const second = yield* ok("GET", `${about}&limit=2&cursor=${at(first, "next_cursor")}`)
      const third = yield* ok("GET", `${about}&limit=2&cursor=${at(second, "next_cursor")}`)
      assert.deepStrictEqual([first, second, third].flatMap(requestsOf), ["r-4", "r-3", "r-2", "r-1", "r-0"])
      assert.isNull(at(third, "next_cursor"))
      assert.deepStrictEqual(requestsOf(yield* ok("GET", `${about}&limit=2&offset=1`)), ["r-3", "r-2"])
      for (const [filter, expected] of [
        ["mode=post_call", ["r-3", "r-1"]],
        ["action=block", ["r-4"]],
        ["guardrail=other", []],
        [
          "route=/v1/responses&model=m&provider=upstream&from=2026-05-05T12:00:01Z&to=2026-05-05T12:00:03Z",
          ["r-2", "r-1"]
        ]
      ] as const) {
        assert.deepStrictEqual<unknown>(requestsOf(yield* ok("GET", `${about}&${filter}`)), expected, filter)
      }
      const sum = { guardrail_name: "pii-redact", failure_policy: "fail_closed" }
      assert.deepStrictEqual(yield* ok("GET", `${guardrails}/summary?key_id=${key_id}`), {
        summary: [
          { ...sum, mode: "post_call", action: "modify", count: 2, total_latency_ms: 4 },
          { ...sum, mode: "pre_call", action: "block", count: 1, total_latency_ms: 4 },
          { ...sum, mode: "pre_call", action: "modify", count: 2, total_latency_ms: 2 }
        ]
      })
      const backwards = yield* call("GET", `${about}&from=2026-05-05T12:00:03Z&to=2026-05-05T12:00:01Z`)
      assert.deepStrictEqual(refusalOf(backwards), { status: 400, code: "invalid_usage_query", param: "from" })
    })
  )

  it.effect("key endpoints: every kind of wrong key is refused before anything else is looked at", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const [disabled, revoked, expired] = [yield* keyWith({}), yield* keyWith({}), yield* keyWith({})]
      yield* ok("POST", `${admin}/keys/${disabled.id}/disable`)
      yield* ok("POST", `${admin}/keys/${revoked.id}/revoke`)
      yield* sql`UPDATE api_keys SET expires_at = now() - interval '1 second' WHERE id = ${expired.id}`
      const operator = yield* call("GET", mine)
      assert.deepStrictEqual(refusalOf(operator), { status: 401, code: "malformed_authorization", param: null })
      for (const [authorization, code] of [
        [null, "missing_authorization"],
        ["Bearer rk_live_", "malformed_authorization"],
        [`Basic ${disabled.raw}`, "malformed_authorization"],
        [`Bearer rk_live_${"0".repeat(64)}`, "invalid_virtual_key"],
        [`Bearer ${disabled.raw}`, "disabled_virtual_key"],
        [`Bearer ${revoked.raw}`, "revoked_virtual_key"],
        [`Bearer ${expired.raw}`, "expired_virtual_key"]
      ] as const) {
        for (const wrong of [
          yield* call("GET", mine, { authorization }),
          yield* call("POST", `${mine}/test`, { authorization, text: "{" })
        ]) {
          assert.deepStrictEqual(refusalOf(wrong), { status: 401, code, param: null }, code)
          assert.strictEqual(wrong.headers["www-authenticate"], "Bearer")
        }
      }
    })
  )

  it.effect("key endpoints: asking is a use of the key", () =>
    Effect.gen(function* () {
      const key = yield* keyWith({})
      const lastUse = Effect.map(ok("GET", `${admin}/keys/${key.id}`), (shown) => at(shown, "last_used_at"))
      assert.isNull(yield* lastUse)
      yield* ok("GET", mine, as(key))
      assert.isString(yield* lastUse)
    })
  )

  it.effect("key endpoints: asking is no use of a key that was not used for too long: it is disabled", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      yield* ok("POST", `${admin}/policy-layers`, {
        body: { kind: "team", scope_id: "idle", policy: { unused_key_auto_disable_after_days: 7 } }
      })
      const [own, layered, recent] = [yield* keyWith({}), yield* keyWith({}), yield* keyWith({})]
      for (const { id } of [own, recent]) {
        yield* ok("PATCH", `${admin}/keys/${id}`, { body: { policy: { unused_key_auto_disable_after_days: 7 } } })
      }
      yield* ok("PATCH", `${admin}/keys/${layered.id}`, { body: { team_id: "idle" } })
      const usedBefore = (id: string, days: number) => sql`
        UPDATE api_keys SET last_used_at = now() - ${days}::int * interval '1 day', enabled_at = NULL WHERE id = ${id}`
      for (const { id } of [own, layered]) yield* usedBefore(id, 8)
      yield* usedBefore(recent.id, 6)
      for (const key of [own, layered]) {
        const answer = yield* call("GET", mine, as(key))
        assert.deepInclude(refusalOf(answer), { status: 401, code: "disabled_virtual_key" })
        const events = yield* ok("GET", `${admin}/audit-events?target_id=${key.id}&action=keys:disable`)
        const [event = null] = Array.isArray(events) ? events : listAt(events, "events")
        assert.strictEqual(at(event, "after", "unused_for_days"), 7)
        assert.strictEqual(at(event, "request_id"), answer.headers["x-request-id"])
      }
      yield* ok("GET", mine, as(recent))
    })
  )

  it.effect("key endpoints: a key whose policy cannot be read is refused as the gateway refuses it", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const key = yield* keyWith({})
      yield* sql`UPDATE api_keys SET policy = '{"allowed_routes":["/v9"]}' WHERE id = ${key.id}`
      assert.deepInclude(refusalOf(yield* call("GET", mine, as(key))), { status: 503, code: "store_unavailable" })
    })
  )

  it.effect("a key's holder sees what guards it or may be asked for, and nothing of how", () =>
    Effect.gen(function* () {
      const [on, optional, forbidden, off] = [
        yield* Fixtures.guardrail,
        yield* Fixtures.guardrail,
        yield* Fixtures.guardrail,
        yield* Fixtures.guardrail
      ]
      yield* ok("PATCH", `${guardrails}/${on}`, { body: { default_on: true } })
      yield* ok("PATCH", `${guardrails}/${off}`, { body: { enabled: false } })
      const key = yield* keyWith({
        mandatory_guardrails: ["pii-redact", off],
        optional_guardrails: [optional, forbidden],
        forbidden_guardrails: [forbidden]
      })
      const offered = entriesOf(yield* ok("GET", mine, as(key)))
      assert.sameMembers(
        offered.map((entry) => at(entry, "name")),
        [on, optional, "pii-redact"]
      )
      assert.deepStrictEqual(
        offered.find((entry) => at(entry, "name") === on),
        {
          name: on,
          description: "",
          modes: ["pre_call", "post_call"],
          default_on: true,
          failure_policy: "fail_closed",
          config_schema: {}
        }
      )
      for (const name of [on, optional, forbidden, off]) yield* ok("DELETE", `${guardrails}/${name}`)
    })
  )

  it.effect("key endpoints: a secret that was rotated away works for as long as its grace", () =>
    Effect.gen(function* () {
      const key = yield* keyWith({})
      const rotate = (body: object) => ok("POST", `${admin}/keys/${key.id}/rotate`, { body })
      const second = String(at(yield* rotate({ grace_seconds: 60 }), "raw_key"))
      for (const raw of [key.raw, second]) yield* ok("GET", mine, as({ ...key, raw }))
      const { sql } = yield* Database
      yield* sql`UPDATE api_keys SET previous_key_expires_at = '2026-05-05T12:00:00Z' WHERE id = ${key.id}`
      const over = yield* call("GET", mine, as(key))
      assert.deepStrictEqual(refusalOf(over), { status: 401, code: "invalid_virtual_key", param: null })
      assert.strictEqual(
        at(over.json, "error", "message"),
        "The gateway key was rotated, and this secret expired at 2026-05-05T12:00:00.000Z. Use the new secret."
      )
      const third = String(at(yield* rotate({}), "raw_key"))
      yield* ok("GET", mine, as({ ...key, raw: third }))
      for (const raw of [key.raw, second]) {
        assert.strictEqual(refusalOf(yield* call("GET", mine, as({ ...key, raw }))).code, "invalid_virtual_key")
      }
    })
  )

  it.effect("the test endpoint answers as the reference's example does", () =>
    Effect.gen(function* () {
      const key = yield* keyWith({ optional_guardrails: ["pii-redact"] })
      const answer = yield* ok("POST", `${mine}/test`, {
        ...as(key),
        body: {
          guardrails: ["pii-redact"],
          mode: "pre_call",
          input: { messages: [{ role: "user", content: "email john@example.com" }] }
        }
      })
      assert.isAtMost(Number(at(answer, "results", 0, "latency_ms")), 1000)
      assert.deepStrictEqual<unknown>(answer, {
        input: { messages: [{ role: "user", content: "email [EMAIL_1]" }] },
        applied_guardrails: ["pii-redact"],
        results: [
          {
            guardrail_name: "pii-redact",
            mode: "pre_call",
            action: "modify",
            failure_policy: "fail_closed",
            latency_ms: at(answer, "results", 0, "latency_ms"),
            reason: null,
            metadata: { email_count: 1, phone_count: 0, ssn_count: 0 }
          }
        ]
      })
    })
  )

  it.effect("the test endpoint selects, asks and fails as a request does, and leaves no trace", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const names = {
        allow: yield* entryAt("/allow"),
        block: yield* entryAt("/block"),
        modify: yield* entryAt("/modify"),
        absent: yield* entryAt("/absent"),
        open: yield* entryAt("/absent", { failure_policy: "fail_open" }),
        late: yield* entryAt("/allow", { modes: ["post_call"] })
      }
      const forbidden = yield* Fixtures.guardrail
      const key = yield* keyWith({
        optional_guardrails: [...Object.values(names), "gone"],
        forbidden_guardrails: [forbidden]
      })
      const test = (mode: string, ...guardrails: ReadonlyArray<string>) =>
        call("POST", `${mine}/test`, { ...as(key), body: { guardrails, mode, input: { messages: [] } } })
      const refused = (code: string, status: number, param: string | null = null) => ({ status, code, param })

      const none = yield* test("pre_call")
      assert.deepStrictEqual(none.json, { input: { messages: [] }, applied_guardrails: [], results: [] })
      const passed = yield* test("pre_call", names.allow, names.modify, names.open)
      assert.deepStrictEqual(at(passed.json, "input"), { changed: true })
      assert.deepStrictEqual(resultsOf(passed.json), [
        [names.allow, "allow", null],
        [names.modify, "modify", null],
        [names.open, "warn", "guardrail_unavailable"]
      ])
      assert.deepStrictEqual(at(passed.json, "results", 0, "metadata"), { score: 0.1 })
      const late = yield* test("post_call", names.modify, names.late)
      assert.deepStrictEqual(at(late.json, "input"), { answered: true })

      assert.deepStrictEqual(refusalOf(yield* test("pre_call", names.block)), refused("guardrail_blocked", 403))
      assert.deepStrictEqual(refusalOf(yield* test("pre_call", names.absent)), refused("guardrail_unavailable", 502))
      assert.deepStrictEqual(
        refusalOf(yield* test("pre_call", names.late)),
        refused("invalid_guardrail_request", 400, "guardrails")
      )
      assert.deepStrictEqual(refusalOf(yield* test("during_call")), refused("invalid_guardrail_request", 400, "chunks"))
      for (const name of [forbidden, "pii-redact"]) {
        assert.deepStrictEqual(
          refusalOf(yield* test("pre_call", name)),
          refused("guardrail_forbidden", 403, "guardrails")
        )
      }
      assert.deepStrictEqual(
        refusalOf(yield* test("pre_call", "gone")),
        refused("invalid_guardrail_request", 400, "guardrails")
      )
      const mistyped = yield* test("sideways")
      assert.deepStrictEqual(refusalOf(mistyped), refused("invalid_request", 422, "mode"))

      assert.deepStrictEqual(yield* sql`SELECT 1 FROM guardrail_execution_events WHERE key_id = ${key.id}`, [])
      assert.deepStrictEqual(yield* sql`SELECT 1 FROM usage_events WHERE key_id = ${key.id}`, [])
    })
  )

  it.effect("the test endpoint takes the chunks of a stream, and returns what is sent after each", () =>
    Effect.gen(function* () {
      const pii = yield* keyWith({ mandatory_guardrails: ["pii-redact"] })
      const test = (key: typeof pii, chunks: ReadonlyArray<string>) =>
        call("POST", `${mine}/test`, { ...as(key), body: { mode: "during_call", chunks } })
      const redacted = yield* test(pii, ["Write to ", "jane@exam", "ple.com", " now. ", "Or call 555"])
      assert.deepStrictEqual(at(redacted.json, "sent"), ["Write to ", "", "", "[EMAIL_1] now. ", "Or call ", "555"])
      assert.deepStrictEqual(at(redacted.json, "results", 0, "metadata", "email_count"), 1)

      const allow = yield* entryAt("/allow", { modes: ["during_call"], stream_mode: "window", window_chars: 64 })
      const http = yield* keyWith({ mandatory_guardrails: ["pii-redact", allow] })
      const judged = yield* test(http, ["One sentence. ", "x".repeat(100), " The end."])
      assert.strictEqual(asTexts(at(judged.json, "sent")).join(""), `One sentence. ${"x".repeat(100)} The end.`)
      const block = yield* keyWith({ mandatory_guardrails: [yield* entryAt("/block", { modes: ["post_call"] })] })
      assert.strictEqual(refusalOf(yield* test(block, ["anything"])).code, "guardrail_blocked")
    })
  )

  it.effect("a policy that configures what it forbids is refused, where it is saved and where it is tried out", () =>
    Effect.gen(function* () {
      const contradiction = {
        forbidden_guardrails: ["pii-redact"],
        guardrail_config_overrides: { "pii-redact": { restore_output: false } }
      }
      const key = yield* keyWith(contradiction)
      const tried = yield* call("POST", `${mine}/test`, { ...as(key), body: { mode: "pre_call", input: {} } })
      assert.deepStrictEqual(refusalOf(tried), { status: 403, code: "guardrail_forbidden", param: null })
      const refused = { status: 403, code: "guardrail_forbidden", param: "guardrail_policy" }
      const body = { owner_type: "individual", guardrail_policy: contradiction }
      assert.deepStrictEqual(refusalOf(yield* call("POST", `${admin}/keys`, { body })), refused)
      const patch = { body: { guardrail_policy: contradiction } }
      assert.deepStrictEqual(refusalOf(yield* call("PATCH", `${admin}/keys/${key.id}`, patch)), refused)
    })
  )

  it.effect("a mandatory guardrail that is gone makes the test fail as it would a request", () =>
    Effect.gen(function* () {
      const key = yield* keyWith({ mandatory_guardrails: ["nowhere"] })
      const answer = yield* call("POST", `${mine}/test`, { ...as(key), body: { mode: "pre_call", input: {} } })
      assert.deepStrictEqual(refusalOf(answer), { status: 502, code: "guardrail_unavailable", param: null })
    })
  )
})

interface Holder {
  readonly id: string
  readonly raw: string
}

const as = ({ raw }: Holder): Call => ({ authorization: `Bearer ${raw}` })

/** A key with this guardrail policy. */
const keyWith = Effect.fnUntraced(function* (policy: GuardrailPolicyPatch) {
  const { sql } = yield* Database
  const minted = yield* ok("POST", `${admin}/keys`, { body: { owner_type: "individual" } })
  const holder: Holder = { id: idOf(minted, "key"), raw: String(at(minted, "raw_key")) }
  yield* sql`UPDATE api_keys SET guardrail_policy = ${JSON.stringify(policy)}::jsonb WHERE id = ${holder.id}`
  return holder
})

type Json = Parameters<typeof at>[0]

const listAt = (json: Json, field: string): ReadonlyArray<Json> => {
  const list = at(json, field)
  return Array.isArray(list) ? list : []
}
const entriesOf = (json: Json) => listAt(json, "guardrails")
const requestsOf = (json: Json) => listAt(json, "executions").map((execution) => at(execution, "request_id"))
const resultsOf = (json: Json) =>
  listAt(json, "results").map((result) => [at(result, "guardrail_name"), at(result, "action"), at(result, "reason")])
