import { assert } from "@effect/vitest"
import { Effect } from "effect"
import * as Fixtures from "../Fixtures.ts"
import { admin, at, call, ok, refusalOf, suite } from "../Listener.ts"

const paths = Effect.gen(function* () {
  return [
    [`${admin}/keys/${yield* Fixtures.key}`, { name: "first" }, { name: "second" }],
    [`${admin}/projects/${yield* Fixtures.project}`, { description: "first" }, { description: "second" }],
    [
      `${admin}/policy-layers/${yield* Fixtures.policyLayer}`,
      { policy: { rpm_limit: 7 } },
      { policy: { rpm_limit: 8 } }
    ]
  ] as const
})

suite("Two people change the same thing", (it) => {
  it.effect("the second one is refused, sees the version in force, and can apply the change to it", () =>
    Effect.gen(function* () {
      for (const [path, first, second] of yield* paths) {
        const read = at(yield* ok("GET", path), "updated_at")
        // two changes in the same millisecond would have the same time
        yield* Effect.sleep("5 millis")
        yield* ok("PATCH", path, { body: { ...first, expected_updated_at: read } })
        const late = yield* call("PATCH", path, { body: { ...second, expected_updated_at: read } })
        assert.deepInclude(refusalOf(late), {
          status: 409,
          code: "changed_since_read",
          param: "expected_updated_at"
        })
        const inForce = yield* ok("GET", path)
        assert.notStrictEqual(at(inForce, "updated_at"), read)
        yield* ok("PATCH", path, { body: { ...second, expected_updated_at: at(inForce, "updated_at") } })
      }
    })
  )

  it.effect("a change that does not say what it expects is made, as before", () =>
    Effect.gen(function* () {
      for (const [path, first, second] of yield* paths) {
        yield* ok("PATCH", path, { body: first })
        yield* ok("PATCH", path, { body: second })
      }
    })
  )

  it.effect("the condition needs no scope of its own", () =>
    Effect.gen(function* () {
      const made = yield* ok("POST", `${admin}/operator-tokens`, {
        body: { name: "switch", scopes: ["keys:disable", "operators:manage"] }
      })
      const path = `${admin}/keys/${yield* Fixtures.key}`
      const expected_updated_at = at(yield* ok("GET", path), "updated_at")
      const answer = yield* call("PATCH", path, {
        authorization: `Bearer ${String(at(made, "raw_token"))}`,
        body: { disabled: true, expected_updated_at }
      })
      assert.strictEqual(answer.status, 200, answer.text)
    })
  )
})
