import { assert } from "@effect/vitest"
import { Effect, Predicate, type Schema } from "effect"
import * as Fixtures from "../Fixtures.ts"
import { admin, at, call, idOf, ok, refusalOf, suite } from "../Listener.ts"

const layers = `${admin}/policy-layers`

const newKey = (body: object) =>
  Effect.map(ok("POST", `${admin}/keys`, { body: { owner_type: "individual", ...body } }), (json) => idOf(json, "key"))

const fieldOf = (effective: Schema.Json, field: string) => {
  const fields = at(effective, "fields")
  assert(Array.isArray(fields))
  return fields.find((one) => Predicate.hasProperty(one, "field") && one.field === field)
}

const effective = (query: string) => ok("GET", `${admin}/policy/effective?${query}`)
const impact = (body: object) => ok("POST", `${admin}/policy/impact`, { body })

suite("The effective policy", (it) => {
  it.effect("has for each field the value that holds, the layers that set it, and those that are less strict", () =>
    Effect.gen(function* () {
      const team_id = "effective"
      yield* ok("POST", layers, {
        body: { kind: "team", scope_id: team_id, policy: { rpm_limit: 40, allowed_models: ["a", "b"] } }
      })
      const id = yield* newKey({
        name: "ada",
        team_id,
        policy: { rpm_limit: 90, allowed_models: ["b", "c"], deny: false }
      })
      const shown = yield* effective(`key_id=${id}`)
      assert.deepStrictEqual(fieldOf(shown, "rpm_limit"), {
        field: "rpm_limit",
        value: 40,
        set_by: [`team:${team_id}`],
        layers: [
          { layer: `team:${team_id}`, value: 40 },
          { layer: "key", value: 90 }
        ],
        raised: false
      })
      // a list is what all of its layers have in common, so all of them set it
      assert.deepInclude(fieldOf(shown, "allowed_models"), { value: ["b"], set_by: [`team:${team_id}`, "key"] })
      assert.deepInclude(fieldOf(shown, "deny"), { value: false, set_by: [], layers: [] })
      const named = at(shown, "layers")
      assert(Array.isArray(named))
      assert.deepStrictEqual(
        named.map((layer) => at(layer, "name")),
        [team_id, "ada"]
      )
    })
  )

  it.effect("names an exception that raises a limit", () =>
    Effect.gen(function* () {
      const id = yield* newKey({ policy: { rpm_limit: 5 } })
      yield* ok("POST", `${admin}/limits/${id}/raise`, { body: Fixtures.raise })
      assert.deepInclude(fieldOf(yield* effective(`key_id=${id}`), "rpm_limit"), { value: 9, set_by: [], raised: true })
    })
  )

  it.effect("is that of a project or a team without a key, and refuses what does not exist", () =>
    Effect.gen(function* () {
      const project = yield* Fixtures.project
      yield* ok("POST", layers, { body: { kind: "project", scope_id: project, policy: { allow_tools: false } } })
      assert.deepInclude(fieldOf(yield* effective(`project_id=${project}`), "allow_tools"), {
        value: false,
        set_by: [`project:${project}`]
      })
      const missing = "00000000-0000-4000-8000-000000000000"
      assert.deepInclude(refusalOf(yield* call("GET", `${admin}/policy/effective?key_id=${missing}`)), { status: 404 })
      assert.deepInclude(refusalOf(yield* call("GET", `${admin}/policy/effective?project_id=${missing}`)), {
        status: 404,
        code: "missing_project"
      })
    })
  )

  it.effect("leaves out layers that are switched off, which keep their settings", () =>
    Effect.gen(function* () {
      const team_id = "off"
      const body = { kind: "team", scope_id: team_id, enabled: false, policy: { rpm_limit: 3 } }
      const layer = yield* ok("POST", layers, { body })
      const id = yield* newKey({ team_id })
      const request = { path: "/v1/models", method: "GET", key_id: id }
      const limitNow = Effect.map(ok("POST", `${admin}/policy/simulate`, { body: request }), (result) =>
        at(result, "rate_limit_projection", "rpm_limit")
      )
      assert.deepInclude(fieldOf(yield* effective(`key_id=${id}`), "rpm_limit"), { value: null, layers: [] })
      assert.isNull(yield* limitNow)
      const changed = yield* ok("PATCH", `${layers}/${idOf(layer)}`, { body: { enabled: true } })
      assert.strictEqual(at(changed, "policy", "rpm_limit"), 3)
      assert.deepInclude(fieldOf(yield* effective(`key_id=${id}`), "rpm_limit"), { value: 3 })
      assert.strictEqual(yield* limitNow, 3)
    })
  )
})

suite("The impact of a change of a policy", (it) => {
  it.effect("names the keys that get another policy, with what each gains and loses, and changes nothing", () =>
    Effect.gen(function* () {
      const team_id = "impact"
      const stricter = yield* newKey({ name: "stricter", team_id, policy: { rpm_limit: 10 } })
      const hit = yield* newKey({ name: "hit", team_id, policy: { rpm_limit: 60 } })
      yield* newKey({ name: "elsewhere", team_id: "others" })
      const layer = { kind: "team", scope_id: team_id, policy: { rpm_limit: 30 }, shared: { monthly_budget_usd: 50 } }
      const found = yield* impact({ layer })
      assert.deepInclude(found, { keys_covered: 2, keys_looked_at: 2, keys_changed: 1 })
      assert.deepStrictEqual(at(found, "shared"), [{ path: "monthly_budget_usd", before: null, after: 50 }])
      const keys = at(found, "keys")
      assert(Array.isArray(keys))
      assert.deepStrictEqual(
        keys.map((key) => [at(key, "id"), at(key, "effects")]),
        [[hit, ["loses: its rpm_limit falls from 60 to 30"]]]
      )
      assert.deepInclude(fieldOf(yield* effective(`key_id=${stricter}`), "rpm_limit"), { value: 10, set_by: ["key"] })
      assert.deepInclude(fieldOf(yield* effective(`key_id=${hit}`), "rpm_limit"), { value: 60 })
    })
  )

  it.effect("of a layer that would be switched off, or of the policy of one key", () =>
    Effect.gen(function* () {
      const team_id = "freed"
      yield* ok("POST", layers, { body: { kind: "team", scope_id: team_id, policy: { allow_tools: false } } })
      const id = yield* newKey({ team_id, policy: { rpm_limit: 5 } })
      const freed = yield* impact({ layer: { kind: "team", scope_id: team_id, enabled: false } })
      assert.deepStrictEqual(at(freed, "keys", "0", "effects"), ["gains tools"])
      const own = yield* impact({ key_id: id, policy: { rpm_limit: 9, allow_tools: true } })
      assert.deepInclude(own, { keys_covered: 1, keys_changed: 1 })
      // the layer forbids tools whatever the key says
      assert.deepStrictEqual(at(own, "keys", "0", "effects"), ["gains: its rpm_limit rises from 5 to 9"])
    })
  )

  it.effect("refuses a layer that could not be set, and a question about nothing", () =>
    Effect.gen(function* () {
      const wrong = yield* call("POST", `${admin}/policy/impact`, {
        body: { layer: { kind: "project", scope_id: "x" } }
      })
      assert.deepInclude(refusalOf(wrong), { status: 400, code: "invalid_policy_payload", param: "layer.scope_id" })
      assert.deepInclude(refusalOf(yield* call("POST", `${admin}/policy/impact`, { body: {} })), { status: 422 })
    })
  )
})

suite("A simulation", (it) => {
  it.effect("decides as if a layer were set, and as if one were gone", () =>
    Effect.gen(function* () {
      const team_id = "tried"
      const id = yield* newKey({ team_id })
      const body = { model: "gpt-5", messages: [{ role: "user", content: "hello" }] }
      const decide = (layer?: object) =>
        Effect.map(
          ok("POST", `${admin}/policy/simulate`, {
            body: { path: "/v1/chat/completions", key_id: id, body, ...(layer && { layer }) }
          }),
          (result) => [at(result, "final_decision", "allowed"), at(result, "final_decision", "layers")]
        )
      const denying = { kind: "team", scope_id: team_id, policy: { allowed_models: ["other"] } }
      assert.deepStrictEqual(yield* decide(), [true, []])
      assert.deepStrictEqual(yield* decide(denying), [false, [`team:${team_id}`]])
      yield* ok("POST", layers, { body: denying })
      assert.deepStrictEqual(yield* decide(), [false, [`team:${team_id}`]])
      assert.deepStrictEqual(yield* decide({ ...denying, enabled: false }), [true, []])
    })
  )

  it.effect("counts the limits that the layer shares, and selects its guardrails", () =>
    Effect.gen(function* () {
      const team_id = "tried sharing"
      const id = yield* newKey({ team_id })
      const stored = { kind: "team", scope_id: team_id, shared: { rpm_limit: 9 } }
      yield* ok("POST", layers, { body: stored })
      const body = { model: "gpt-5", messages: [{ role: "user", content: "hello" }] }
      const decide = (change?: object) =>
        ok("POST", `${admin}/policy/simulate`, {
          body: { path: "/v1/chat/completions", key_id: id, body, ...(change && { layer: { ...stored, ...change } }) }
        })
      const sharedOf = (result: Schema.Json) => at(result, "shared_limits", 0, "rpm_limit")
      const now = yield* decide()
      assert.strictEqual(sharedOf(now), 9)
      assert.deepStrictEqual(at(now, "guardrail_plan"), [])
      const tried = yield* decide({
        shared: { rpm_limit: 0 },
        guardrail_policy: { mandatory_guardrails: ["pii-redact"] }
      })
      assert.strictEqual(sharedOf(tried), 0)
      assert.deepStrictEqual(at(tried, "guardrail_plan"), ["pii-redact"])
      assert.deepInclude(at(tried, "final_decision"), { allowed: false, layers: [`team:${team_id}`] })
      const clash = yield* decide({
        guardrail_policy: { mandatory_guardrails: ["pii-redact"], forbidden_guardrails: ["pii-redact"] }
      })
      assert.deepInclude(at(clash, "final_decision"), { allowed: false, error_code: "guardrail_forbidden" })
      assert.strictEqual(sharedOf(yield* decide()), 9)
    })
  )
})

suite("The fields of policies", (it) => {
  it.effect("are described for forms, with their bounds and choices", () =>
    Effect.gen(function* () {
      const described = yield* ok("GET", `${admin}/policy/fields`)
      const fields = at(described, "fields")
      assert(Array.isArray(fields))
      const presets = yield* ok("GET", `${admin}/policy/presets`)
      const names = Object.keys(Object(at(presets, "0", "policy")))
      assert.deepStrictEqual(
        fields.map((field) => at(field, "field")),
        names
      )
      for (const field of fields) assert.isAbove(String(at(field, "help")).length, 10)
      const find = (name: string) => fields.find((field) => at(field, "field") === name)
      assert.deepInclude(find("rpm_limit"), { kind: "count", minimum: 0, unrestricted: null })
      assert.deepInclude(find("daily_budget_usd"), { kind: "dollars", maximum: 9_000_000 })
      assert.deepInclude(find("allowed_hours_utc"), { kind: "numbers", minimum: 0, maximum: 23 })
      assert.deepInclude(find("unpriced_models"), { kind: "choice", choices: ["flat", "dearest", "refuse"] })
      assert.deepInclude(find("allow_tools"), { kind: "boolean", unrestricted: true })
      assert.include(at(find("allowed_routes"), "choices"), "/v1/responses")
    })
  )
})
