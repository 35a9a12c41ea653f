import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { Database } from "../../../src/services/Database.ts"
import { admin, at, idOf, ok, suite } from "../Listener.ts"

const keys = `${admin}/keys`
const newKey = (body: object) => Effect.map(ok("POST", keys, { body }), (json) => idOf(json, "key"))
const shown = (id: string) => ok("GET", `${keys}/${id}`)

suite("What people want to know of a key", (it) => {
  it.effect("is its state and why it cannot be used", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const individual = { owner_type: "individual" }
      const active = yield* newKey(individual)
      assert.deepInclude(yield* shown(active), { state: "active", state_reason: null })
      yield* ok("POST", `${keys}/${active}/disable`)
      assert.match(String(at(yield* shown(active), "state_reason")), /^An operator disabled it/)
      const unused = yield* newKey({ ...individual, policy: { unused_key_auto_disable_after_days: 7 } })
      yield* sql`UPDATE api_keys SET disabled = true, created_at = now() - interval '8 days' WHERE id = ${unused}`
      const reason = at(yield* shown(unused), "state_reason")
      assert.match(String(reason), /^It was not used for 7 days/)
      const expired = yield* newKey({ ...individual, expires_at: "2020-01-01T00:00:00Z" })
      assert.deepInclude(yield* shown(expired), { state: "expired" })
      yield* ok("POST", `${keys}/${expired}/revoke`)
      assert.deepInclude(yield* shown(expired), { state: "revoked" })
    })
  )

  it.effect("is its project by name, and the lowest monthly budget of it and of the layers above it", () =>
    Effect.gen(function* () {
      const project = yield* Effect.map(ok("POST", `${admin}/projects`, { body: { name: "Budgets" } }), (json) =>
        idOf(json)
      )
      yield* ok("POST", `${admin}/policy-layers`, {
        body: { kind: "project", scope_id: project, policy: { monthly_budget_usd: 20 } }
      })
      const id = yield* newKey({ project_id: project, policy: { monthly_budget_usd: 50 } })
      yield* newKey({ project_id: project })
      const expected = { project_name: "Budgets", monthly_budget_usd: 20, spend_this_month_usd: 0 }
      assert.deepInclude(yield* shown(id), expected)
      const listed = yield* ok("GET", `${keys}?project_id=${project}&sort_by=spend`)
      assert(Array.isArray(listed))
      assert.deepInclude(
        listed.find((key) => at(key, "id") === id),
        expected
      )
      assert.deepInclude(yield* ok("GET", `${admin}/projects/${project}`), { key_count: 2 })
      yield* ok("POST", `${keys}/${id}/revoke`)
      const [found] = yield* Effect.map(ok("GET", `${admin}/projects?q=Budgets`), (json) => {
        assert(Array.isArray(json))
        return json
      })
      assert.strictEqual(at(found, "key_count"), 1)
    })
  )
})
