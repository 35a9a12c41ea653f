import { assert } from "@effect/vitest"
import { Effect } from "effect"
import * as Fixtures from "./Fixtures.ts"
import { admin, at, call, ok, refusalOf, suite } from "./Listener.ts"

/** An object that its own path shows and changes. */
const shownAt = (path: string, first: object, second: object) => ({ path, read: ok("GET", path), first, second })

const route = (family: string, id: string, first: object, second: object) => ({
  path: `${admin}/${family}/${id}/config`,
  read: Effect.map(ok("GET", `${admin}/${family}`), (routes) => {
    assert(Array.isArray(routes))
    return routes.find((one) => at(one, "route_id") === id)
  }),
  first,
  second
})

const allRoutes = Effect.map(
  Effect.all([ok("GET", `${admin}/family-a-routes`), ok("GET", `${admin}/family-b-routes`)]),
  (families) => {
    const routes = families.flatMap((some) => (Array.isArray(some) ? some : []))
    // each route has its own time
    const times = routes.map((one) => [String(at(one, "route_id")), at(one, "updated_at") ?? null])
    return { updated_at: Object.fromEntries(times), families }
  }
)

const objects = Effect.gen(function* () {
  return [
    shownAt(`${admin}/keys/${yield* Fixtures.key}`, { name: "first" }, { name: "second" }),
    shownAt(`${admin}/projects/${yield* Fixtures.project}`, { description: "first" }, { description: "second" }),
    shownAt(
      `${admin}/policy-layers/${yield* Fixtures.policyLayer}`,
      { policy: { rpm_limit: 7 } },
      { policy: { rpm_limit: 8 } }
    ),
    shownAt(
      `${admin}/providers/${yield* Fixtures.provider}`,
      { base_url: "https://first.example" },
      { base_url: "https://second.example", credential: "sk-second" }
    ),
    shownAt(`${admin}/services/${yield* Fixtures.service}`, { timeout_ms: 1000 }, { timeout_ms: 2000 }),
    shownAt(
      `${admin}/guardrails/${yield* Fixtures.guardrail}`,
      { description: "first" },
      { description: "second", bearer_token: "tok-second" }
    ),
    shownAt(`${admin}/guardrails/pii-redact`, { default_on: true }, { default_on: false }),
    shownAt(`${admin}/providers/upstream-passthrough`, { timeout_ms: 1000 }, { timeout_ms: 2000 }),
    // nothing is stored at first, so the time that was read is null
    shownAt(`${admin}/auth/front-door`, { required_role: "first" }, { required_role: "second" }),
    route("family-a-routes", "embeddings", { timeout_ms: 1000 }, { timeout_ms: 2000 }),
    route("family-b-routes", "models", { timeout_ms: 1000 }, { timeout_ms: 2000 }),
    { path: `${admin}/routes/config`, read: allRoutes, first: { timeout_ms: 1000 }, second: { timeout_ms: 2000 } },
    shownAt(
      `${admin}/studio/connection`,
      { base_url: "https://first.example" },
      { base_url: "https://second.example", token: "tok-second" }
    )
  ]
})

suite("Two people change the same thing", (it) => {
  it.effect("the price of a model is not replaced unseen", () =>
    Effect.gen(function* () {
      const path = `${admin}/model-prices/priced-by-two`
      const put = (input_usd_per_million: number, expected: object) => ({
        body: { input_usd_per_million, output_usd_per_million: 9, ...expected }
      })
      // of two who saw none, one sets it
      const both = yield* Effect.all(
        [1, 2].map((price) => call("PUT", path, put(price, { expected_updated_at: null }))),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(both.map(({ status }) => status).sort(), [200, 409])
      const first = yield* ok("GET", path)
      yield* Effect.sleep("5 millis")
      const expected_updated_at = at(first, "updated_at")
      yield* ok("PUT", path, put(3, { expected_updated_at }))
      const late = yield* call("PUT", path, put(4, { expected_updated_at }))
      assert.deepInclude(refusalOf(late), { status: 409, code: "changed_since_read", param: "expected_updated_at" })
      assert.strictEqual(at(yield* ok("GET", path), "input_usd_per_million"), 3)
      const last = yield* ok("PUT", path, put(5, {}))
      const remove = (version: typeof last) =>
        call("DELETE", `${path}?expected_updated_at=${at(version, "updated_at")}`)
      assert.deepInclude(refusalOf(yield* remove(first)), { status: 409, code: "changed_since_read" })
      assert.strictEqual((yield* remove(last)).status, 204)
      const gone = yield* call("PUT", path, put(6, { expected_updated_at }))
      assert.deepInclude(refusalOf(gone), { status: 409, code: "changed_since_read" })
    })
  )

  it.effect("the second one is refused, sees the version in force, and can apply the change to it", () =>
    Effect.gen(function* () {
      for (const { first, path, read, second } of yield* objects) {
        const expected_updated_at = at(yield* read, "updated_at")
        // two changes in the same millisecond would have the same time
        yield* Effect.sleep("5 millis")
        yield* ok("PATCH", path, { body: { ...first, expected_updated_at } })
        const inForce = yield* read
        assert.notDeepEqual(at(inForce, "updated_at"), expected_updated_at)
        const late = yield* call("PATCH", path, { body: { ...second, expected_updated_at } })
        assert.deepInclude(refusalOf(late), {
          status: 409,
          code: "changed_since_read",
          param: "expected_updated_at"
        })
        assert.deepStrictEqual(yield* read, inForce)
        yield* ok("PATCH", path, { body: { ...second, expected_updated_at: at(inForce, "updated_at") } })
      }
    })
  )

  it.effect("a change that does not say what it expects is made, as before", () =>
    Effect.gen(function* () {
      for (const { first, path, second } of yield* objects) {
        yield* ok("PATCH", path, { body: first })
        yield* ok("PATCH", path, { body: second })
      }
    })
  )

  it.effect("a change of all routes is refused if one of them was changed since", () =>
    Effect.gen(function* () {
      const { updated_at } = yield* allRoutes
      yield* Effect.sleep("5 millis")
      yield* ok("PATCH", `${admin}/family-b-routes/models/config`, { body: { timeout_ms: 3000 } })
      const body = { timeout_ms: 1000, expected_updated_at: updated_at }
      const late = yield* call("PATCH", `${admin}/routes/config`, { body })
      assert.deepInclude(refusalOf(late), { status: 409, code: "changed_since_read", param: "expected_updated_at" })
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
