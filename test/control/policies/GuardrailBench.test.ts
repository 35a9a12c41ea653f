import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { Database } from "../../../src/services/Database.ts"
import * as Fixtures from "../Fixtures.ts"
import { guardrails } from "../GuardedKeys.ts"
import { at, call, ok, refusalOf, suite } from "../Listener.ts"

const pii = `${guardrails}/pii-redact`
const message = (content: string) => ({ messages: [{ role: "user", content }] })

suite("The bench of guardrails", (it) => {
  it.effect("shows what would be sent, and the answer with the values restored", () =>
    Effect.gen(function* () {
      const tried = yield* ok("POST", `${pii}/test`, {
        body: {
          request: message("Write to jane@example.com."),
          response: { choices: [{ index: 0, message: { role: "assistant", content: "To [EMAIL_1]." } }] },
          chunks: ["Sent to [EMA", "IL_1], and to bob@exam", "ple.com."]
        }
      })
      assert.deepStrictEqual(at(tried, "placeholders"), { "[EMAIL_1]": "jane@example.com" })
      assert.deepStrictEqual(at(tried, "request", "body"), message("Write to [EMAIL_1]."))
      assert.strictEqual(at(tried, "response", "body", "choices", 0, "message", "content"), "To jane@example.com.")
      assert.deepStrictEqual(at(tried, "stream", "sent"), ["Sent to ", "jane@example.com, and to ", "", "[EMAIL_2]."])
      assert.strictEqual(at(tried, "stream", "results", 0, "action"), "modify")
      assert.isNull(at(tried, "stream", "stopped"))
    })
  )

  it.effect("tries a configuration that is not stored, also of a disabled guardrail", () =>
    Effect.gen(function* () {
      yield* ok("PATCH", pii, { body: { enabled: false } })
      const body = { request: message("jane@example.com or 10.1.2.3") }
      const stored = yield* ok("POST", `${pii}/test`, { body })
      assert.deepStrictEqual(at(stored, "request", "body"), message("[EMAIL_1] or 10.1.2.3"))
      const runtime_config = { detectors: { email: false, ip_address: true } }
      const other = yield* ok("POST", `${pii}/test`, { body: { ...body, runtime_config } })
      assert.deepStrictEqual(at(other, "request", "body"), message("jane@example.com or [IP_1]"))
      yield* ok("PATCH", pii, { body: { enabled: true } })
      const wrong = yield* call("POST", `${pii}/test`, {
        body: { ...body, runtime_config: { detectors: { mail: true } } }
      })
      assert.include(refusalOf(wrong), { status: 400, code: "invalid_guardrail_request" })
    })
  )

  it.effect("says what a block would answer, and refuses what the guardrail does not check", () =>
    Effect.gen(function* () {
      const name = yield* Fixtures.guardrail
      yield* ok("PATCH", `${guardrails}/${name}`, { body: { modes: ["pre_call"], failure_policy: "fail_closed" } })
      const wrong = yield* call("POST", `${guardrails}/${name}/test`, { body: { chunks: ["a"] } })
      assert.deepStrictEqual(refusalOf(wrong), { status: 400, code: "invalid_guardrail_request", param: "chunks" })
      const nothing = yield* call("POST", `${pii}/test`, { body: {} })
      assert.deepStrictEqual(refusalOf(nothing), { status: 400, code: "invalid_guardrail_request", param: "request" })
      const unknown = yield* call("POST", `${guardrails}/nobodys/test`, { body: { request: {} } })
      assert.deepStrictEqual(refusalOf(unknown), { status: 400, code: "invalid_guardrail_request", param: "name" })
      const picture = { type: "image_url", image_url: { url: "https://x.test/a.png" } }
      const blocked = yield* ok("POST", `${pii}/test`, {
        body: { request: { messages: [{ role: "user", content: [picture] }] } }
      })
      assert.isNull(at(blocked, "request", "body"))
      assert.strictEqual(at(blocked, "request", "stopped", "code"), "guardrail_blocked")
    })
  )
})

suite("The series of executions", (it) => {
  it.effect("has a bucket for each action of an hour", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      yield* sql`
        INSERT INTO guardrail_execution_events (id, request_id, key_id, route, provider, guardrail_name, mode, action,
          failure_policy, latency_ms, metadata, created_at)
        SELECT gen_random_uuid(), 'r', gen_random_uuid(), '/v1/responses', 'upstream', 'series', 'pre_call', action, 'fail_open', latency, '{}', at
        FROM (VALUES ('allow', 3, timestamptz '2026-01-02T10:05:00Z'), ('allow', 5, '2026-01-02T10:50:00Z'),
          ('block', 9, '2026-01-02T10:55:00Z'), ('warn', 1, '2026-01-02T11:00:00Z')) AS t (action, latency, at)`
      const answer = yield* ok("GET", `${guardrails}/timeseries?guardrail=series&from=2026-01-01&to=2026-01-03`)
      const bucket = (at: string, action: string, count: number, total: number, max: number) => ({
        bucket: `2026-01-02T${at}:00:00.000Z`,
        action,
        count,
        total_latency_ms: total,
        max_latency_ms: max
      })
      assert.deepStrictEqual(answer, {
        interval: "hour",
        buckets: [
          bucket("11", "warn", 1, 1, 1),
          bucket("10", "block", 1, 9, 9),
          bucket("10", "allow", 2, 8, 5)
        ].toSorted((a, b) => (a.bucket + b.action < b.bucket + a.action ? -1 : 1))
      })
    })
  )
})
