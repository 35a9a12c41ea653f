import { assert } from "@effect/vitest"
import { Effect } from "effect"
import * as Proxy from "../../gateway/Proxy.ts"
import { admin, at, call, ok } from "../Listener.ts"
import * as Metered from "../limits/Metered.ts"

const me = "/admin-ui/v1/me"
const as = ({ raw }: Metered.HeldKey) => ({ authorization: `Bearer ${raw}` })
const test = (key: Metered.HeldKey, model: string = Metered.model, protocol = "chat") =>
  ok("POST", `${me}/test`, { ...as(key), body: { protocol, model } })

Metered.suite("The test of a key by its holder", (it) => {
  it.effect("says what the gateway says, before and after a limit is used up", () =>
    Effect.gen(function* () {
      yield* Metered.priced
      const key = yield* Metered.newKey({ policy: { max_requests_per_day: 1, allowed_models: [Metered.model] } })
      for (const protocol of ["chat", "responses", "messages"]) {
        assert.deepInclude(yield* test(key, Metered.model, protocol), { allowed: true, error_code: null })
      }
      assert.deepInclude(yield* test(key, "another"), {
        allowed: false,
        error_code: "policy_denied",
        sentence: "This key may not use this model."
      })
      const gateway = yield* Metered.gateway()
      assert.strictEqual((yield* gateway.ask(Metered.chatOf(key))).status, 200)
      assert.strictEqual((yield* gateway.ask(Metered.chatOf(key))).status, 429)
      assert.deepInclude(yield* test(key), {
        allowed: false,
        error_code: "rate_limit_exceeded",
        meter: "max_requests_per_day",
        sentence: "This key's requests of this day (1) were used up."
      })
    })
  )

  it.effect("counts what the request may cost at most, as the gateway does", () =>
    Effect.gen(function* () {
      yield* Metered.priced
      const key = yield* Metered.newKey({ policy: { daily_budget_usd: 1 } })
      assert.deepInclude(yield* test(key), { allowed: true })
      const gateway = yield* Metered.gateway()
      assert.strictEqual((yield* gateway.ask(Metered.chatOf(key))).status, 200)
      // the first request has left 90 cents, and the assumed output of the next one may take all that the limit allows
      const { body: _, ...chat } = Metered.chatOf(key)
      const open = { ...chat, body: { model: Metered.model, messages: [{ role: "user", content: "hello" }] } }
      const refused = yield* test(key)
      assert.deepInclude(refused, { allowed: false, error_code: "budget_exceeded", meter: "daily_budget_usd" })
      assert.match(
        String(at(refused, "sentence")),
        /^The request could cost up to \$(1|0\.9\d+), and \$0\.9 was left of this key's budget of this day \(\$1\)\.$/
      )
      assert.include(String(at(refused, "what_to_do")), "Ask for fewer output tokens (max_tokens)")
      assert.strictEqual((yield* gateway.ask(open)).status, 402)
      yield* gateway.written
      const row = at(yield* ok("GET", `${me}/requests?status=failure`, as(key)), "rows", 0)
      assert.strictEqual(at(row, "refusal", "sentence"), at(refused, "sentence"))
      const explained = yield* ok("GET", `${admin}/policy/explain/${at(row, "request_id")}`)
      assert.strictEqual(at(explained, "decided", "sentence"), at(refused, "sentence"))
      assert.deepInclude(Object(at(explained, "now", "decision")), {
        allowed: false,
        check: "daily_budget_usd",
        layers: ["key"],
        limits_checked: true
      })
      const simulated = yield* ok("POST", `${admin}/policy/simulate`, {
        body: { key_id: key.id, path: Proxy.chat, body: open.body }
      })
      assert.deepInclude(Object(at(simulated, "final_decision")), { allowed: false, error_code: "budget_exceeded" })
      // a smaller request fits
      assert.strictEqual((yield* gateway.ask(Metered.chatOf(key))).status, 200)
    })
  )

  it.effect("counts what a request without a price costs", () =>
    Effect.gen(function* () {
      yield* Metered.priced
      const key = yield* Metered.newKey({ policy: { daily_budget_usd: 0.005, unpriced_models: "flat" } })
      // the flat cost is an estimate, which may take what the limit allows, but only once
      assert.deepInclude(yield* test(key, "has-no-price"), { allowed: true })
      const gateway = yield* Metered.gateway()
      const request = { ...Metered.chatOf(key), body: { model: "has-no-price", messages: [] } }
      assert.strictEqual((yield* gateway.ask(request)).status, 200)
      assert.strictEqual((yield* gateway.ask(request)).status, 402)
      assert.deepInclude(yield* test(key, "has-no-price"), {
        allowed: false,
        error_code: "budget_exceeded",
        meter: "daily_budget_usd"
      })
    })
  )

  it.effect("names no layer, no other key and no price, and writes no event", () =>
    Effect.gen(function* () {
      const key = yield* Metered.newKey({ team_id: "secret-team" })
      yield* ok("POST", `${admin}/policy-layers`, {
        body: { kind: "team", scope_id: "secret-team", policy: { deny: true } }
      })
      const denied = yield* call("POST", `${me}/test`, { ...as(key), body: { protocol: "chat", model: "m" } })
      assert.strictEqual(at(denied.json, "allowed"), false)
      assert.notInclude(denied.text, "secret-team")
      const events = yield* ok("GET", `${admin}/audit-events?target_id=${key.id}`)
      assert(Array.isArray(events))
      assert.deepStrictEqual(
        events.map((event) => at(event, "action")),
        ["keys:create"]
      )
      for (const body of [
        { protocol: "chat" },
        { protocol: "files", model: "m" },
        { protocol: "chat", model: "m", key_id: key.id }
      ]) {
        assert.strictEqual((yield* call("POST", `${me}/test`, { ...as(key), body })).status, 422)
      }
    })
  )

  it.effect("runs once at a time for a key", () =>
    Effect.gen(function* () {
      const key = yield* Metered.newKey({})
      const answers = yield* Effect.forEach(
        Array.from({ length: 6 }),
        () => call("POST", `${me}/test`, { ...as(key), body: { protocol: "chat", model: "m" } }),
        { concurrency: "unbounded" }
      )
      for (const { status } of answers) assert.include([200, 429], status)
      assert.isTrue(answers.some(({ status }) => status === 200))
    })
  )

  it.effect("has the history of the secret beside it, without who acted", () =>
    Effect.gen(function* () {
      const key = yield* Metered.newKey({ holder_rotation: true })
      const other = yield* Metered.newKey({})
      yield* ok("POST", `${admin}/keys/${other.id}/rotate`, { body: {} })
      yield* ok("POST", `${admin}/keys/${key.id}/disable`)
      yield* ok("POST", `${admin}/keys/${key.id}/enable`)
      const rotated = yield* ok("POST", `${me}/rotate`, { ...as(key), body: {} })
      const history = yield* ok("GET", `${me}/history`, { authorization: `Bearer ${at(rotated, "raw_key")}` })
      assert(Array.isArray(history))
      assert.deepStrictEqual(
        history.map((entry) => at(entry, "action")),
        ["rotated_by_holder", "enabled", "disabled", "created"]
      )
      assert.deepStrictEqual(Object.keys(Object(history[0])).sort(), ["action", "at"])
    })
  )
})
