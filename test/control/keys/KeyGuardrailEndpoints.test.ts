import { assert } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Database } from "../../../src/services/Database.ts"
import * as Fixtures from "../Fixtures.ts"
import { as, entriesOf, guardrails, type Json, keyWith, listAt, mine } from "../GuardedKeys.ts"
import { admin, at, call, ok, refusalOf, suite } from "../Listener.ts"

suite("Guardrails of a key", (it) => {
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
          always_on: true,
          failure_policy: "fail_closed",
          config_schema: {}
        }
      )
      const always = offered.filter((entry) => at(entry, "always_on") === true)
      assert.sameMembers(
        always.map((entry) => at(entry, "name")),
        [on, "pii-redact"]
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
      const after = String(at(yield* rotate({ grace_seconds: 60 }), "raw_key"))
      yield* ok("GET", mine, as({ ...key, raw: second }))
      const ended = yield* ok("POST", `${admin}/keys/${key.id}/end-grace`)
      assert.isNull(at(ended, "previous_key_expires_at"))
      yield* ok("GET", mine, as({ ...key, raw: after }))
      const stopped = yield* call("GET", mine, as({ ...key, raw: second }))
      assert.match(
        String(at(stopped.json, "error", "message")),
        /^The gateway key was rotated, and this secret expired/
      )
      const again = yield* ok("POST", `${admin}/keys/${key.id}/end-grace`)
      assert.isNull(at(again, "previous_key_expires_at"))
      yield* ok("GET", mine, as({ ...key, raw: after }))
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
      const blocked = yield* test(block, ["anything"])
      assert.strictEqual(blocked.status, 200)
      assert.strictEqual(at(blocked.json, "stopped", "code"), "guardrail_blocked")
      assert.deepStrictEqual(asTexts(at(blocked.json, "sent")).join(""), "")
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

/** Makes a guardrail at a path of the scripted server. */
const entryAt = (path: string, more: object = {}) =>
  Effect.flatMap(Fixtures.guardrail, (name) =>
    Effect.as(
      ok("PATCH", `${guardrails}/${name}`, { body: { endpoint_url: `https://guard.test${path}`, ...more } }),
      name
    )
  )

const asTexts = Schema.decodeUnknownSync(Schema.Array(Schema.String))

const resultsOf = (json: Json) =>
  listAt(json, "results").map((result) => [at(result, "guardrail_name"), at(result, "action"), at(result, "reason")])
