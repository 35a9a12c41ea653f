import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { eventually } from "../../Eventually.ts"
import * as Proxy from "../../gateway/Proxy.ts"
import { admin, at, call, idOf, ok, refusalOf } from "../Listener.ts"
import * as Metered from "./Metered.ts"

const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString()

const raise = (id: string, body: object) => call("POST", `${admin}/limits/${id}/raise`, { body })

const dailyLimit = (id: string) =>
  Effect.map(Metered.limitsOf(`scope=key&id=${id}`), (limits) => Metered.meter(limits, "max_requests_per_day"))

/** A key that may send three requests a day, of which its team allows one. */
const narrowed = Effect.fnUntraced(function* (team: string) {
  yield* Metered.priced
  yield* ok("POST", `${admin}/policy-layers`, {
    body: { kind: "team", scope_id: team, policy: { max_requests_per_day: 1 } }
  })
  return yield* Metered.newKey({ team_id: team, policy: { max_requests_per_day: 3, rpm_limit: 1000 } })
})

Metered.suite("Raised limits", (it) => {
  it.effect("are in force in every process until their time, keep what was counted, and end by themselves", () =>
    Effect.gen(function* () {
      const key = yield* narrowed("raised")
      const gateways = yield* Effect.all([Metered.gateway(), Metered.gateway()])
      const ask = (index: 0 | 1) => gateways[index].ask(Metered.chatOf(key))
      assert.deepStrictEqual([(yield* ask(0)).status, (yield* ask(1)).status], [200, 429])

      const exported = yield* ok("GET", `${admin}/configuration`)
      const until = inSeconds(8)
      const raised = yield* ok("POST", `${admin}/limits/${key.id}/raise`, {
        body: { max_requests_per_day: 3, until, reason: "a demo" }
      })
      assert.deepInclude(raised, { key_id: key.id, limits: { max_requests_per_day: 3 }, until, ended_at: null })
      assert.deepStrictEqual(yield* ok("GET", `${admin}/configuration`), exported)
      const plan = yield* ok("POST", `${admin}/configuration/plan`, { body: exported })
      assert.deepStrictEqual(at(plan, "changes"), [])

      yield* eventually(ask(1), ({ status }) => status === 200)
      const second = yield* eventually(ask(0), ({ status }) => status === 200)
      assert.deepInclude(yield* dailyLimit(key.id), { limit: 3, used: 3, remaining: 0, raised_until: until })
      const third = yield* ask(0)
      assert.strictEqual(third.status, 429)
      assert.include(third.text, "(3 requests a day)")

      const applied = [{ id: idOf(raised), limits: { max_requests_per_day: 3 }, until }]
      const simulated = yield* ok("POST", `${admin}/policy/simulate`, { body: { key_id: key.id, path: Proxy.chat } })
      assert.deepStrictEqual(at(simulated, "limit_raises"), applied)
      assert.strictEqual(at(simulated, "rate_limit_projection", "max_requests_per_day"), 3)
      yield* gateways[0].written
      const explained = yield* ok("GET", `${admin}/policy/explain/${second.header("x-request-id")}`)
      assert.deepStrictEqual(at(explained, "decided", "limit_raises"), applied)
      assert.deepStrictEqual(at(explained, "now", "limit_raises"), applied)

      yield* eventually(dailyLimit(key.id), (limit) => at(limit, "limit") === 1)
      assert.deepInclude(yield* dailyLimit(key.id), { used: 3, remaining: 0, raised_until: null })
      for (const index of [0, 1] as const) {
        const refused = yield* ask(index)
        assert.strictEqual(refused.status, 429)
        assert.include(refused.text, "(1 requests a day)")
      }
      const after = yield* ok("GET", `${admin}/policy/explain/${second.header("x-request-id")}`)
      assert.deepStrictEqual(at(after, "decided", "limit_raises"), applied)
      assert.deepStrictEqual(at(after, "now", "limit_raises"), [])
    })
  )

  it.effect("end early, and are listed and audited", () =>
    Effect.gen(function* () {
      const key = yield* narrowed("ended")
      const gateway = yield* Metered.gateway()
      const body = { max_requests_per_day: 5, until: inSeconds(3600), reason: "by mistake" }
      const first = idOf((yield* raise(key.id, body)).json)
      const second = idOf((yield* raise(key.id, { ...body, max_requests_per_day: 9 })).json)
      assert.strictEqual(at(yield* dailyLimit(key.id), "limit"), 9)
      yield* ok("POST", `${admin}/limits/${key.id}/raises/${second}/end`)
      assert.strictEqual(at(yield* dailyLimit(key.id), "limit"), 5)
      yield* ok("POST", `${admin}/limits/${key.id}/raises/${first}/end`)
      yield* gateway.ask(Metered.chatOf(key))
      assert.strictEqual((yield* gateway.ask(Metered.chatOf(key))).status, 429)
      const page = yield* call("GET", `${admin}/limits/${key.id}/raises?limit=1`)
      const rest = yield* call("GET", `${admin}/limits/${key.id}/raises?cursor=${page.headers["x-next-cursor"]}`)
      assert.deepStrictEqual(
        [at(page.json, 0, "id"), at(rest.json, 0, "id"), at(rest.json, 0, "ended_at") === null],
        [second, first, false]
      )
      const events = yield* ok("GET", `${admin}/audit-events?target_id=${key.id}`)
      assert(Array.isArray(events))
      assert.deepStrictEqual(
        events.map((event) => at(event, "action")).filter((action) => String(action).startsWith("limits:")),
        ["limits:end_raise", "limits:end_raise", "limits:raise", "limits:raise"]
      )
      const other = yield* Metered.newKey({})
      assert.strictEqual((yield* call("POST", `${admin}/limits/${other.id}/raises/${first}/end`)).status, 404)
    })
  )

  it.effect("are higher than what is in force, and end within a month", () =>
    Effect.gen(function* () {
      const key = yield* narrowed("refused")
      const day = 86_400
      const good = { max_requests_per_day: 2, until: inSeconds(day), reason: "why not" }
      const refusal = (body: object, id = key.id) => Effect.map(raise(id, body), refusalOf)
      const cases: ReadonlyArray<readonly [object, string | null]> = [
        [{ ...good, max_requests_per_day: 1 }, "max_requests_per_day"],
        [{ ...good, monthly_budget_usd: 5 }, "monthly_budget_usd"],
        [{ until: good.until, reason: "nothing" }, null],
        [{ ...good, until: inSeconds(-1) }, "until"],
        [{ ...good, until: inSeconds(32 * day) }, "until"]
      ]
      for (const [body, param] of cases) {
        assert.deepStrictEqual(yield* refusal(body), { status: 400, code: "invalid_policy_payload", param })
      }
      const malformed = [
        { ...good, until: undefined },
        { ...good, reason: undefined },
        { ...good, rpm_limit: null },
        { ...good, deny: false }
      ]
      for (const body of malformed) assert.strictEqual((yield* refusal(body)).status, 422)
      assert.strictEqual((yield* refusal(good, "00000000-0000-4000-8000-000000000000")).status, 404)
      yield* ok("POST", `${admin}/keys/${key.id}/revoke`)
      assert.deepStrictEqual(yield* refusal(good), { status: 409, code: "key_revoked", param: null })
    })
  )
})
