import { assert } from "@effect/vitest"
import { Effect } from "effect"
import type { GuardrailPolicyPatch } from "../../../src/policy/GuardrailPolicy.ts"
import { Database } from "../../../src/services/Database.ts"
import * as Fixtures from "../Fixtures.ts"
import { guardrails, type Json, keyWith } from "../GuardedKeys.ts"
import { admin, at, call, idOf, ok, refusalOf, suite } from "../Listener.ts"

const none = { mandatory: 0, by_default: 0, optional: 0, forbidden: 0, refused: 0, none: 0 }
const outcomes = Object.keys(none)

const disableKeys = Effect.gen(function* () {
  const { sql } = yield* Database
  yield* sql`UPDATE api_keys SET disabled = true`
})

/** A key of a project and a team. */
const keyOf = Effect.fnUntraced(function* (project: string | null, team: string | null, policy: GuardrailPolicyPatch) {
  const { sql } = yield* Database
  const { id } = yield* keyWith(policy)
  yield* sql`UPDATE api_keys SET owner_type = ${project === null ? "individual" : "project"}, project_id = ${project}, team_id = ${team} WHERE id = ${id}`
  return id
})

const rowsOf = (json: Json | undefined): ReadonlyArray<Json> => (Array.isArray(json) ? json : [])
const idsOf = (json: Json | undefined) => rowsOf(json).map((row) => at(row, "id"))

suite("The coverage of a guardrail", (it) => {
  it.effect("counts and lists usable keys by what their own policy and their layers say", () =>
    Effect.gen(function* () {
      yield* disableKeys
      const name = yield* Fixtures.guardrail
      const coverage = ok("GET", `${guardrails}/${name}/coverage`)
      const keys = (outcome: string) => ok("GET", `${guardrails}/${name}/coverage/keys?outcome=${outcome}`)
      const demanding = yield* keyWith({ mandatory_guardrails: [name] })
      const offering = yield* keyWith({ optional_guardrails: [name], guardrail_config_overrides: { [name]: {} } })
      const forbidding = yield* keyWith({ forbidden_guardrails: [name] })
      const silent = yield* keyWith({ mandatory_guardrails: ["another"] })
      const revoked = yield* keyWith({ mandatory_guardrails: [name] })
      yield* ok("POST", `${admin}/keys/${revoked.id}/revoke`)
      assert.deepStrictEqual(yield* coverage, {
        keys: { ...none, mandatory: 1, optional: 1, forbidden: 1, none: 1 },
        layers: []
      })
      const all = yield* ok("GET", `${guardrails}/${name}/coverage/keys`)
      assert.deepStrictEqual(
        rowsOf(all).map((row) => [at(row, "id"), at(row, "outcome"), at(row, "selections")]),
        [
          [silent.id, "none", []],
          [forbidding.id, "forbidden", ["forbidden"]],
          [offering.id, "optional", ["optional", "configured"]],
          [demanding.id, "mandatory", ["mandatory"]]
        ]
      )
      for (const outcome of outcomes)
        assert.deepStrictEqual(
          rowsOf(yield* keys(outcome)),
          rowsOf(all).filter((row) => at(row, "outcome") === outcome)
        )

      yield* ok("PATCH", `${guardrails}/${name}`, { body: { default_on: true } })
      assert.deepStrictEqual(at(yield* coverage, "keys"), { ...none, mandatory: 1, by_default: 2, forbidden: 1 })
      assert.deepStrictEqual(idsOf(yield* keys("by_default")), [silent.id, offering.id])

      const layer = yield* ok("POST", `${admin}/policy-layers`, {
        body: { kind: "global", guardrail_policy: { mandatory_guardrails: [name] } }
      })
      const layered = yield* coverage
      assert.deepStrictEqual(at(layered, "keys"), { ...none, mandatory: 3, refused: 1 })
      assert.deepStrictEqual(at(layered, "layers"), [
        { id: idOf(layer), kind: "global", scope_id: null, scope_name: null, selections: ["mandatory"] }
      ])
      assert.deepStrictEqual(idsOf(yield* keys("refused")), [forbidding.id])
      assert.deepStrictEqual(idsOf(yield* keys("mandatory")), [silent.id, offering.id, demanding.id])

      yield* ok("PATCH", `${admin}/policy-layers/${idOf(layer)}`, { body: { enabled: false } })
      const switchedOff = yield* coverage
      assert.deepStrictEqual(at(switchedOff, "keys"), { ...none, mandatory: 1, by_default: 2, forbidden: 1 })
      assert.deepStrictEqual(at(switchedOff, "layers"), [])
      yield* ok("DELETE", `${admin}/policy-layers/${idOf(layer)}`)
    })
  )

  it.effect("follows the layers of the key's project and team", () =>
    Effect.gen(function* () {
      yield* disableKeys
      const name = yield* Fixtures.guardrail
      const [project, other] = [yield* Fixtures.project, yield* Fixtures.project]
      const layers = [
        { kind: "project", scope_id: project, guardrail_policy: { optional_guardrails: [name] } },
        { kind: "team", scope_id: "blue", guardrail_policy: { mandatory_guardrails: [name] } },
        { kind: "team", scope_id: "red", guardrail_policy: { forbidden_guardrails: [name] } }
      ]
      for (const body of layers) yield* ok("POST", `${admin}/policy-layers`, { body })
      const expected: Record<string, string> = {
        [yield* keyOf(project, null, {})]: "optional",
        [yield* keyOf(other, null, {})]: "none",
        [yield* keyOf(project, "blue", {})]: "mandatory",
        [yield* keyOf(null, "blue", { forbidden_guardrails: [name] })]: "refused",
        [yield* keyOf(project, "red", {})]: "forbidden",
        [yield* keyOf(other, "red", { guardrail_config_overrides: { [name]: {} } })]: "forbidden",
        [yield* keyOf(other, "green", { optional_guardrails: [name] })]: "optional"
      }
      const all = yield* ok("GET", `${guardrails}/${name}/coverage/keys`)
      const found = Object.fromEntries(rowsOf(all).map((row) => [at(row, "id"), at(row, "outcome")]))
      assert.deepStrictEqual(found, expected)
      const counts = at(yield* ok("GET", `${guardrails}/${name}/coverage`), "keys")
      for (const outcome of outcomes) {
        const listed = yield* ok("GET", `${guardrails}/${name}/coverage/keys?outcome=${outcome}`)
        assert.strictEqual(rowsOf(listed).length, at(counts, outcome))
        for (const id of idsOf(listed)) assert.strictEqual(expected[String(id)], outcome)
      }
      const [red] = rowsOf(yield* ok("GET", `${guardrails}/${name}/coverage/keys?outcome=forbidden`))
      assert.deepInclude(red, { project_id: other, team_id: "red", selections: ["configured"] })
      assert.match(String(at(red, "project_name")), /^project /)
    })
  )

  it.effect("lists the keys of an outcome a page at a time", () =>
    Effect.gen(function* () {
      yield* disableKeys
      const name = yield* Fixtures.guardrail
      const ids: Array<string> = []
      for (let made = 0; made < 5; made++) {
        ids.unshift((yield* keyWith({ optional_guardrails: [name] })).id)
        yield* keyWith({})
      }
      const path = `${guardrails}/${name}/coverage/keys?outcome=optional&limit=2`
      const first = yield* call("GET", path)
      const second = yield* call("GET", `${path}&cursor=${first.headers["x-next-cursor"]}`)
      const third = yield* call("GET", `${path}&cursor=${second.headers["x-next-cursor"]}`)
      assert.deepStrictEqual(idsOf(first.json), ids.slice(0, 2))
      assert.deepStrictEqual(idsOf(second.json), ids.slice(2, 4))
      assert.deepStrictEqual(idsOf(third.json), ids.slice(4))
      assert.isUndefined(third.headers["x-next-cursor"])
    })
  )

  it.effect("is refused for an unknown guardrail, and for an unknown outcome", () =>
    Effect.gen(function* () {
      const unknown = yield* call("GET", `${guardrails}/nobodys/coverage/keys`)
      assert.include(refusalOf(unknown), { status: 404, code: "not_found" })
      const wrong = yield* call("GET", `${guardrails}/pii-redact/coverage/keys?outcome=all`)
      assert.deepStrictEqual(refusalOf(wrong), { status: 422, code: "invalid_request", param: "outcome" })
    })
  )
})
