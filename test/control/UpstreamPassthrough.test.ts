import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { defaults } from "../../src/policy/routes/Passthrough.ts"
import { Database } from "../../src/services/Database.ts"
import { admin, at, call, ok, refusalOf, suite } from "./Listener.ts"

const path = `${admin}/providers/upstream-passthrough`

const without = (json: unknown): unknown => ({ ...Object(json), updated_at: undefined })
const seeded = { ...defaults, updated_at: undefined }

suite("Upstream passthrough", (it) => {
  it.effect("begins as the reference has it, takes any subset, and clears with null", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(without(yield* ok("GET", path)), seeded)
      const wanted = {
        enabled: true,
        allowed_paths: ["/v1/*", "/ui", "/ui/*"],
        allowed_methods: ["get", "POST", "Patch"],
        ui_exposure: "trusted_ingress",
        admin_api_exposure: "explicitly_exposed",
        guardrails: "skip",
        body_policies: "skip",
        ownership: "key",
        timeout_ms: 600_000,
        max_request_body_bytes: 104_857_600,
        max_response_body_bytes: 1,
        limits_streams: true
      }
      const set = yield* ok("PATCH", path, { body: wanted })
      assert.deepStrictEqual(without(set), {
        ...wanted,
        allowed_methods: ["GET", "POST", "PATCH"],
        updated_at: undefined
      })
      assert.deepStrictEqual(yield* ok("GET", path), set)
      const one = yield* ok("PATCH", path, { body: { timeout_ms: 5 } })
      assert.deepStrictEqual(without(one), { ...Object(without(set)), timeout_ms: 5 })
      assert.deepStrictEqual(yield* ok("PATCH", path, { body: {} }), one)
      const cleared = Object.fromEntries(Object.keys(wanted).map((name) => [name, null]))
      assert.deepStrictEqual(without(yield* ok("PATCH", path, { body: cleared })), seeded)
      const limited = yield* ok("PATCH", path, { body: { max_response_body_bytes: 5 } })
      assert.strictEqual(at(limited, "limits_streams"), true)
      const reset = yield* ok("PATCH", path, { body: { max_response_body_bytes: null } })
      assert.deepStrictEqual(without(reset), seeded)
    })
  )

  it.effect("refuses what no request could go by, names the field, and writes nothing", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const events = Effect.map(sql`SELECT 1 FROM audit_events`, ({ length }) => length)
      const before = yield* ok("GET", path)
      const written = yield* events
      const wrong: ReadonlyArray<readonly [field: string, ...values: ReadonlyArray<unknown>]> = [
        ["ui_exposure", "everyone", "", "Disabled", " disabled"],
        ["admin_api_exposure", "trusted_ingress", "everyone"],
        ["guardrails", "ignore", ""],
        ["body_policies", "Skip"],
        ["ownership", "team"],
        ["timeout_ms", 0, -1, 600_001],
        ["max_request_body_bytes", 0, 104_857_601],
        ["max_response_body_bytes", 0, 104_857_601],
        ["allowed_paths", [], Array.from({ length: 65 }, (_, i) => `/p${i}`), [""], ["v1/*"], ["*"], ["/v1/../key"]],
        ["allowed_paths", ["/v1 /x"], ["/v1//x"], ["/a\\b"], ["/v1/%2e"], ["/v1?x"], ["/v1#x"], ["/v1;x"], ["/é"]],
        ["allowed_paths", ["/v1/*/x"], ["/**"], ["/v1/*", "nope"], [`/${"x".repeat(512)}`]],
        [
          "allowed_methods",
          [],
          Array.from({ length: 17 }, () => "GET"),
          [""],
          ["GE T"],
          ["GET,POST"],
          ["TRACE"],
          ["connect"]
        ]
      ]
      for (const [field, ...values] of wrong) {
        for (const value of values) {
          const refused = yield* call("PATCH", path, { body: { enabled: true, [field]: value } })
          assert.deepStrictEqual(
            refusalOf(refused),
            { status: 400, code: "invalid_provider_config_payload", param: field },
            JSON.stringify(value)
          )
        }
      }
      const mistyped = [
        { enabled: "yes" },
        { allowed_paths: "/v1/*" },
        { allowed_methods: [1] },
        { timeout_ms: "5" },
        { timeout_ms: 1.5 },
        { enable: true }
      ]
      for (const body of mistyped) {
        const { code, status } = refusalOf(yield* call("PATCH", path, { body }))
        assert.deepStrictEqual([status, code], [422, "invalid_request"], JSON.stringify(body))
      }
      assert.deepStrictEqual(yield* ok("GET", path), before)
      assert.strictEqual(yield* events, written)
    })
  )

  it.effect("says how the admin API is exposed to a trusted ingress in place of trusted_ingress", () =>
    Effect.gen(function* () {
      const refused = yield* call("PATCH", path, { body: { admin_api_exposure: "trusted_ingress" } })
      assert.include(String(at(refused.json, "error", "message")), "explicitly_exposed")
    })
  )
})
