import { assert } from "@effect/vitest"
import { Deferred, Effect, Fiber, Predicate, type Schema } from "effect"
import { Database } from "../../../src/services/Database.ts"
import { Redis } from "../../../src/services/Redis.ts"
import { eventually } from "../../Eventually.ts"
import * as Proxy from "../../gateway/Proxy.ts"
import { admin, at, call, idOf, ok, refusalOf } from "../Listener.ts"
import * as Metered from "./Metered.ts"

const pick = (json: Schema.Json, ...fields: ReadonlyArray<string>) =>
  Object.fromEntries(fields.map((field) => [field, at(json, field)]))

const amounts = (json: Schema.Json) => pick(json, "state", "limit", "used", "reserved", "remaining")

Metered.suite("State of limits", (it) => {
  it.effect("a key's limits show what was used, what running requests hold, and when the rest would be gone", () =>
    Effect.gen(function* () {
      yield* Metered.priced
      const key = yield* Metered.newKey({
        policy: { rpm_limit: 100, max_requests_per_day: 4, max_tokens_per_day: 1000, daily_budget_usd: 1 }
      })
      const before = yield* Metered.limitsOf(`scope=key&id=${key.id}`)
      assert.deepStrictEqual(
        before.map((one) => pick(one, "state", "used", "forecast")),
        before
          .map(() => ({ state: "restored", used: 0, forecast: null }))
          .with(indexOf(before, "rpm_limit"), {
            state: "counted",
            used: 0,
            forecast: null
          })
      )

      const held = yield* Deferred.make<void>()
      const first = yield* Metered.gateway()
      const slow = yield* Metered.gateway((sink, request) =>
        Effect.andThen(Deferred.await(held), Metered.answered(sink, request))
      )
      yield* first.ask(Metered.chatOf(key))
      const running = yield* Effect.forkChild(slow.ask(Metered.chatOf(key, 6)))
      const state = Metered.limitsOf(`scope=key&id=${key.id}`)
      yield* eventually(state, (limits) => at(Metered.meter(limits, "max_requests_per_day"), "used") === 2)
      const during = yield* state
      assert.deepStrictEqual(during.map((one) => at(one, "meter"))[0], "max_requests_per_day")
      const tokens = Metered.meter(during, "max_tokens_per_day")
      const reserved = Number(at(tokens, "reserved"))
      assert.isAbove(reserved, 6)
      assert.deepStrictEqual(amounts(tokens), {
        state: "counted",
        limit: 1000,
        used: 10,
        reserved,
        remaining: 990 - reserved
      })
      assert.deepInclude(amounts(Metered.meter(during, "daily_budget_usd")), { limit: 1, used: 0.1 })
      const midnight = new Date(new Date().setUTCHours(24, 0, 0, 0)).toISOString()
      assert.strictEqual(at(tokens, "resets_at"), midnight)

      yield* Deferred.succeed(held, undefined)
      yield* Fiber.join(running)
      yield* first.ask(Metered.chatOf(key))
      yield* first.ask(Metered.chatOf(key))
      const after = yield* state
      const requests = Metered.meter(after, "max_requests_per_day")
      assert.deepStrictEqual(pick(requests, "used", "reserved", "remaining", "share"), {
        used: 4,
        reserved: 0,
        remaining: 0,
        share: 1
      })
      assert.isAtMost(Date.parse(String(at(requests, "forecast"))), Date.now())
      assert.strictEqual((yield* first.ask(Metered.chatOf(key))).status, 429)
      assert.deepStrictEqual(amounts(Metered.meter(after, "max_tokens_per_day")), {
        state: "counted",
        limit: 1000,
        used: 40,
        reserved: 0,
        remaining: 960
      })
      yield* gone(key.id)
      const restored = yield* state
      assert.deepStrictEqual(amounts(Metered.meter(restored, "max_tokens_per_day")), {
        state: "restored",
        limit: 1000,
        used: 40,
        reserved: 0,
        remaining: 960
      })
    })
  )

  it.effect("the global layer shows what all keys share, and nothing before there is one", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* Metered.limitsOf("scope=global"), [])
      const body = { kind: "global", shared: { daily_budget_usd: 40 } }
      const id = idOf(yield* ok("POST", `${admin}/policy-layers`, { body }))
      const ofAll = yield* Metered.limitsOf("scope=global")
      assert.strictEqual(ofAll.length, 1)
      assert.deepInclude(ofAll[0], { meter: "daily_budget_usd", scope: "global", scope_id: null, limit: 40 })
      yield* ok("DELETE", `${admin}/policy-layers/${id}`)
    })
  )

  it.effect("layers show what their keys share, and what their routes alone allow", () =>
    Effect.gen(function* () {
      yield* Metered.priced
      const layer = (body: object) => Effect.map(ok("POST", `${admin}/policy-layers`, { body }), (json) => idOf(json))
      const team = yield* layer({ kind: "team", scope_id: "blue & green", shared: { monthly_budget_usd: 2 } })
      const route = yield* layer({ kind: "route", scope_id: Proxy.chat, policy: { rpm_limit: 7 } })
      const keys = yield* Effect.forEach(["one", "two"], (name) =>
        Metered.newKey({ name, team_id: "blue & green", policy: { rpm_limit: 50, daily_budget_usd: 0.4 } })
      )
      const gateway = yield* Metered.gateway()
      const [one, two] = keys
      assert(one !== undefined && two !== undefined)
      yield* Effect.forEach([one, two, two], (key) => gateway.ask(Metered.chatOf(key)))
      yield* gateway.written
      const shared = { meter: "monthly_budget_usd", scope: "team", scope_id: "blue & green", used: 0.3, share: 0.15 }
      const ofLayer = yield* Metered.limitsOf(`scope=layer&id=${team}`)
      assert.strictEqual(ofLayer.length, 1)
      assert.deepInclude(ofLayer[0], shared)

      const ofKey = yield* Metered.limitsOf(`scope=key&id=${two.id}`)
      assert.deepStrictEqual(
        ofKey
          .map((found) => [
            at(found, "meter"),
            at(found, "scope"),
            at(found, "within"),
            at(found, "limit"),
            at(found, "used")
          ])
          .sort(),
        [
          ["daily_budget_usd", "key", null, 0.4, 0.2],
          ["monthly_budget_usd", "team", null, 2, 0.3],
          ["rpm_limit", "key", null, 50, at(Metered.meter(ofKey, "rpm_limit"), "used")],
          ["rpm_limit", "key", `route:${Proxy.chat}`, 7, at(Metered.meter(ofKey, "rpm_limit"), "used")]
        ]
      )
      assert.deepStrictEqual(
        ofKey.map((found) => pick(found, "team_id", "project_name", "owner_email")),
        ofKey.map(() => ({ team_id: "blue & green", project_name: null, owner_email: null }))
      )
      const ofTeam = yield* Metered.limitsOf("scope=team&id=blue%20%26%20green&limit=3")
      assert.deepStrictEqual(
        ofTeam.map((found) => [at(found, "meter"), at(found, "scope_name"), at(found, "share")]).slice(0, 2),
        [
          ["daily_budget_usd", "two", 0.5],
          ["daily_budget_usd", "one", 0.25]
        ]
      )
      yield* ok("DELETE", `${admin}/policy-layers/${route}`)
      const project = idOf(yield* ok("POST", `${admin}/projects`, { body: { name: "search" } }))
      yield* layer({ kind: "project", scope_id: project, shared: { daily_budget_usd: 9 } })
      const [ofProject] = yield* Metered.limitsOf(`scope=project&id=${project}`)
      assert.deepInclude(ofProject, { scope_id: project, scope_name: "project:search", project_name: "search" })

      const whole = Metered.listed(yield* ok("GET", `${admin}/limits/state?scope=all&limit=500`))
      const ofTwo = whole.filter((found) => at(found, "scope_id") === two.id)
      assert.deepInclude(ofTwo[0], { scope_name: "two", share: 0.5 })
      const page = yield* ok("GET", `${admin}/limits/state?scope=all&limit=2`)
      const nearest = (limits: ReadonlyArray<Schema.Json>) => limits.slice(0, 2).map((found) => at(found, "share"))
      assert.deepStrictEqual(nearest(Metered.listed(page)), nearest(whole))
      assert.isAtLeast(Number(at(page, "keys_looked_at")), 2)
      assert.isAtLeast(Number(at(page, "left_out")), 1)
      const tight = yield* Metered.newKey({ policy: { max_requests_per_day: 1 } })
      const loose = yield* Metered.newKey({ policy: { max_requests_per_day: 2, rpm_limit: 1 } })
      yield* Effect.forEach([tight, loose], (key) => gateway.ask(Metered.chatOf(key)))
      const near = yield* call("GET", `${admin}/keys?near_limit=true&limit=2`)
      assert.deepStrictEqual([at(near.json, 0, "id"), at(near.json, 1)], [tight.id, undefined])
      const before = yield* call(
        "GET",
        `${admin}/keys?near_limit=true&limit=500&cursor=${near.headers["x-next-cursor"]}`
      )
      assert.notInclude(before.text, two.id)
      yield* gone(two.id)
      const cold = Metered.listed(yield* ok("GET", `${admin}/limits/state?scope=all`))
      const lost = cold.find((found) => at(found, "scope_id") === two.id && at(found, "meter") === "daily_budget_usd")
      assert(lost !== undefined)
      assert.deepStrictEqual(pick(lost, "state", "used", "remaining", "share"), {
        state: "restored",
        used: 0.2,
        remaining: 0.2,
        share: 0.5
      })
    })
  )

  it.effect("a list restores the first lost counters of its keys, and no more than ten", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const policy = { policy: { daily_budget_usd: 5 } }
      const ids = yield* Effect.forEach(Array.from({ length: 11 }), () =>
        Effect.map(Metered.newKey(policy), ({ id }) => id)
      )
      yield* sql`UPDATE api_keys SET last_used_at = now() + interval '1 minute' WHERE id = ANY(${ids}::uuid[])`
      const found = Metered.listed(yield* ok("GET", `${admin}/limits/state?scope=all&limit=500`)).filter((one) =>
        ids.includes(String(at(one, "scope_id")))
      )
      const of = (state: string) => found.filter((one) => at(one, "state") === state)
      assert.deepStrictEqual([of("restored").length, of("unknown").length], [10, 1])
      assert.deepStrictEqual(pick(of("restored")[0] ?? {}, "used", "remaining", "share"), {
        used: 0,
        remaining: 5,
        share: 0
      })
      assert.deepStrictEqual(pick(of("unknown")[0] ?? {}, "used", "remaining", "share", "forecast"), {
        used: null,
        remaining: null,
        share: null,
        forecast: null
      })
    })
  )

  it.effect("what is used is set back to zero, also for counters that are restored later", () =>
    Effect.gen(function* () {
      yield* Metered.priced
      const key = yield* Metered.newKey({ policy: { max_requests_per_day: 2, daily_budget_usd: 1, rpm_limit: 9 } })
      const first = yield* Metered.gateway()
      const ask = (gateway: typeof first) => Effect.map(gateway.ask(Metered.chatOf(key)), ({ status }) => status)
      assert.deepStrictEqual([yield* ask(first), yield* ask(first), yield* ask(first)], [200, 200, 429])
      const ofKey = { scope: "key", scope_id: key.id, reason: "a <b>mistake</b> of ours" }
      const reset = (body: object) => call("POST", `${admin}/limits/reset`, { body: { ...ofKey, ...body } })
      const amounts = Effect.map(Metered.limitsOf(`scope=key&id=${key.id}`), (limits) =>
        ["max_requests_per_day", "daily_budget_usd"].map((name) => {
          const { state, used } = pick(Metered.meter(limits, name), "state", "used")
          return [state, used]
        })
      )

      const requests = yield* reset({ meter: "max_requests_per_day" })
      assert.deepInclude(requests.json, { used_before: 2, window: "day", meter: "max_requests_per_day" })
      assert.deepStrictEqual(yield* amounts, [
        ["counted", 0],
        ["counted", 0.2]
      ])
      yield* eventually(ask(first), (status) => status === 200)
      assert.deepInclude((yield* reset({ meter: "daily_budget_usd" })).json, { used_before: 0.3 })
      assert.deepStrictEqual(yield* amounts, [
        ["counted", 1],
        ["counted", 0]
      ])

      yield* first.written
      yield* gone(key.id)
      assert.deepStrictEqual(yield* amounts, [
        ["restored", 1],
        ["restored", 0]
      ])
      assert.deepInclude((yield* reset({ meter: "max_requests_per_day" })).json, { used_before: 1 })
      // A restoration that has read the records before the reset has nothing left to restore.
      assert.deepStrictEqual(yield* amounts, [
        ["counted", 0],
        ["restored", 0]
      ])
      assert.strictEqual(yield* ask(yield* Metered.gateway()), 200)
      assert.deepStrictEqual(yield* amounts, [
        ["counted", 1],
        ["counted", 0.1]
      ])

      const events = yield* ok("GET", `${admin}/audit-events?target_id=${key.id}&limit=1`)
      const event = at(events, 0)
      assert.deepInclude(event, { action: "limits:reset", target_type: "key" })
      assert.deepInclude(at(event, "after"), { ...ofKey, used_before: 1 })
      const refused = Effect.fnUntraced(function* (body: object) {
        const { param, status } = refusalOf(yield* reset(body))
        return [status, param]
      })
      assert.deepStrictEqual(yield* refused({ meter: "monthly_budget_usd" }), [404, "meter"])
      assert.deepStrictEqual(yield* refused({ meter: "rpm_limit" }), [422, "meter"])
      assert.deepStrictEqual(yield* refused({ meter: "daily_budget_usd", scope_id: null }), [404, "scope_id"])
      assert.deepStrictEqual(yield* refused({ meter: "daily_budget_usd", scope: "global" }), [404, "scope_id"])
    })
  )

  it.effect("what the keys of a layer share is set back to zero for all of them, without what still runs", () =>
    Effect.gen(function* () {
      yield* Metered.priced
      const layer = yield* ok("POST", `${admin}/policy-layers`, {
        body: { kind: "team", scope_id: "reset & go", shared: { max_tokens_per_day: 500 } }
      })
      const key = yield* Metered.newKey({ team_id: "reset & go" })
      const held = yield* Deferred.make<void>()
      const gateway = yield* Metered.gateway()
      const slow = yield* Metered.gateway((sink, request) =>
        Effect.andThen(Deferred.await(held), Metered.answered(sink, request))
      )
      yield* gateway.ask(Metered.chatOf(key))
      const running = yield* Effect.forkChild(slow.ask(Metered.chatOf(key)))
      const tokens = Effect.map(Metered.limitsOf(`scope=key&id=${key.id}`), (limits) =>
        pick(Metered.meter(limits, "max_tokens_per_day"), "used", "reserved")
      )
      yield* eventually(tokens, ({ reserved }) => Number(reserved) > 0)
      const { reserved } = yield* tokens
      const reset = yield* ok("POST", `${admin}/limits/reset`, {
        body: { scope: "team", scope_id: "reset & go", meter: "max_tokens_per_day", reason: "a demo" }
      })
      assert.strictEqual(at(reset, "used_before"), 10)
      const events = yield* ok("GET", `${admin}/audit-events?action=limits:reset&limit=1`)
      assert.strictEqual(at(events, 0, "target_id"), idOf(layer))
      assert.deepStrictEqual(yield* tokens, { used: 0, reserved })
      yield* Deferred.succeed(held, undefined)
      yield* Fiber.join(running)
      assert.deepStrictEqual(yield* tokens, { used: 10, reserved: 0 })
    })
  )

  it.effect("a limit whose records cannot be read in time is not said to have room", () =>
    Effect.gen(function* () {
      const { sql, transaction } = yield* Database
      yield* Metered.priced
      const key = yield* Metered.newKey({ policy: { rpm_limit: 100, daily_budget_usd: 1 } })
      const { body, target } = Metered.chatOf(key)
      const simulate = Effect.map(
        ok("POST", `${admin}/policy/simulate`, { body: { key_id: key.id, path: target, body } }),
        (result) => pick(result, "final_decision")["final_decision"]
      )
      const waiting = Effect.gen(function* () {
        yield* sql`LOCK TABLE usage_events IN ACCESS EXCLUSIVE MODE`
        return yield* simulate
      })
      assert.deepInclude(yield* transaction(waiting), { allowed: true, limits_checked: false })
      assert.deepInclude(yield* simulate, { allowed: true, limits_checked: true })
    })
  )

  it.effect("a key and its project's layer have the owners of the project, unless the key has its own", () =>
    Effect.gen(function* () {
      const project = idOf(
        yield* ok("POST", `${admin}/projects`, { body: { name: "Owned", owner_email: "p@x.example" } })
      )
      yield* ok("POST", `${admin}/policy-layers`, {
        body: { kind: "project", scope_id: project, shared: { monthly_budget_usd: 9 } }
      })
      const of = { owner_type: "project", project_id: project, policy: { daily_budget_usd: 1 } }
      const theirs = yield* Metered.newKey(of)
      const own = yield* Metered.newKey({ ...of, owner_email: "k@x.example" })
      const ownersOf = (id: string) =>
        Effect.map(Metered.limitsOf(`scope=key&id=${id}`), (limits) =>
          limits.map((found) => ["scope", "owner_email", "project_name"].map((field) => at(found, field))).sort()
        )
      const layer = ["project", "p@x.example", "Owned"]
      assert.deepStrictEqual(yield* ownersOf(theirs.id), [["key", "p@x.example", "Owned"], layer])
      assert.deepStrictEqual(yield* ownersOf(own.id), [["key", "k@x.example", "Owned"], layer])
    })
  )

  it.effect("refuses what is no scope, and ids that are none", () =>
    Effect.gen(function* () {
      const nobody = "00000000-0000-4000-8000-000000000000"
      const asked = (query: string) =>
        Effect.map(call("GET", `${admin}/limits/state?${query}`), (answer) => {
          const { param, status } = refusalOf(answer)
          return [status, param]
        })
      assert.deepStrictEqual(
        yield* Effect.forEach(
          [
            "scope=key",
            "scope=project&id=blue",
            `scope=all&id=${nobody}`,
            `scope=key&id=${nobody}`,
            `scope=layer&id=${nobody}`,
            "scope=everything",
            "scope=all&cursor=abc",
            `scope=global&id=${nobody}`,
            "scope=global&cursor=abc"
          ],
          asked
        ),
        [
          [422, "id"],
          [422, "id"],
          [422, "id"],
          [404, "id"],
          [404, "id"],
          [422, "scope"],
          [422, "cursor"],
          [422, "id"],
          [422, "cursor"]
        ]
      )
      assert.deepStrictEqual(yield* Metered.limitsOf("scope=team&id=nobody"), [])
    })
  )

  it.effect("a page looks at a bounded number of keys, and the next one at those before", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      yield* sql`INSERT INTO api_keys (owner_type, key_prefix, key_hash, policy, last_used_at)
        SELECT 'individual', 'rk_live_' || i, sha256(('page' || i)::bytea), '{"daily_budget_usd":1,"rpm_limit":9}',
          now() - i * interval '1 millisecond' FROM generate_series(1, 1200) AS i`
      yield* sql`ANALYZE api_keys`
      let seen = 0
      let path = `${admin}/limits/state?scope=all&limit=1`
      for (let pages = 0; path !== ""; pages++) {
        assert.isBelow(pages, 5)
        const answer = yield* call("GET", path)
        seen += Number(at(answer.json, "keys_looked_at"))
        assert.isAtMost(Number(at(answer.json, "keys_looked_at")), 500)
        const next = answer.headers["x-next-cursor"]
        path = next === undefined ? "" : `${admin}/limits/state?scope=all&limit=1&cursor=${next}`
        if (next !== undefined) {
          const other = yield* call("GET", `${admin}/limits/state?scope=team&id=blue&cursor=${next}`)
          assert.strictEqual(refusalOf(other).param, "cursor")
        }
      }
      assert.isAtLeast(seen, 1200)
    })
  )
})

const indexOf = (limits: ReadonlyArray<Schema.Json>, name: string) =>
  limits.findIndex((one) => Predicate.hasProperty(one, "meter") && one.meter === name)

/** Redis loses what it knew about the counters of a key. */
const gone = (id: string) => Effect.flatMap(Redis, (redis) => redis.command("DEL", redis.key(`limits:known:${id}`)))
