import { assert } from "@effect/vitest"
import { Effect, type Schema } from "effect"
import { admin, at, type Call, call, idOf, ok, refusalOf, suite } from "../Listener.ts"
import { type HeldKey, newKey } from "./Metered.ts"

const mine = "/admin-ui/v1/me/raise-requests"
const theirs = `${admin}/limits/raise-requests`

const as = ({ raw }: HeldKey): Call => ({ authorization: `Bearer ${raw}` })
const ask = (key: HeldKey, body: object) => call("POST", mine, { ...as(key), body })
const until = new Date(Date.now() + 3_600_000).toISOString().replace(/\.\d+/, ".000")
const limited = (settings: object = {}) =>
  newKey({ name: "ada", owner_email: "ada@example.org", policy: { daily_budget_usd: 5, rpm_limit: 10 }, ...settings })

const listed = (json: Schema.Json | undefined): ReadonlyArray<Schema.Json> => {
  assert(Array.isArray(json))
  return json
}

suite("Requests for a raise", (it) => {
  it.effect("are granted with an exception, and the holder sees what was granted and the answer", () =>
    Effect.gen(function* () {
      const key = yield* limited()
      const asked = yield* ask(key, { reason: "a demo today", meter: "daily_budget_usd", amount: 25 })
      assert.strictEqual(asked.status, 200, asked.text)
      const id = idOf(asked.json)
      assert.deepInclude(asked.json, {
        state: "open",
        meter: "daily_budget_usd",
        amount: 25,
        reason: "a demo today",
        answer: null,
        granted: null
      })
      const [open] = listed(yield* ok("GET", `${theirs}?state=open&key_id=${key.id}`))
      assert.deepInclude(open, { id, key_id: key.id, key_name: "ada", owner_email: "ada@example.org" })

      const granted = yield* ok("POST", `${theirs}/${id}/grant`, {
        body: { daily_budget_usd: 20, until, reason: "demo of ada", answer: "20 must do" }
      })
      assert.deepInclude(granted, { state: "granted", answer: "20 must do" })
      const [raise] = listed(yield* ok("GET", `${admin}/limits/${key.id}/raises`))
      assert.deepInclude(raise, { limits: { daily_budget_usd: 20 }, until, reason: "demo of ada" })

      const [seen] = listed(yield* ok("GET", mine, as(key)))
      assert.deepInclude(seen, { id, state: "granted", answer: "20 must do" })
      assert.deepStrictEqual(at(seen, "granted"), {
        id: at(raise, "id") ?? null,
        limits: { daily_budget_usd: 20 },
        until
      })
      for (const hidden of ["answered_by", "key_id", "owner_email", "key_name"]) {
        assert.isUndefined(at(seen, hidden), hidden)
      }
      assert.notInclude(JSON.stringify(seen), "demo of ada")
      assert.deepStrictEqual(yield* ok("GET", `${theirs}?state=open&key_id=${key.id}`), [])

      const actions = listed(yield* ok("GET", `${admin}/audit-events?target_id=${key.id}`)).map((event) => [
        at(event, "action"),
        at(event, "actor_token_id") !== null
      ])
      assert.deepStrictEqual(actions, [
        ["limits:grant_raise", true],
        ["limits:request_raise", false],
        ["keys:create", true]
      ])
    })
  )

  it.effect("for a model are granted by the key's own policy, and the holder sees it", () =>
    Effect.gen(function* () {
      const key = yield* limited({ policy: { allowed_models: ["small"], rpm_limit: 10 } })
      const test = { ...as(key), body: { protocol: "chat", model: "large" } }
      const refused = yield* ok("POST", "/admin-ui/v1/me/test", test)
      assert.deepInclude(refused, { allowed: false, refused_model: "large" })
      const asked = yield* ask(key, { reason: "a long text", model: "large" })
      assert.deepInclude(asked.json, { state: "open", model: "large", meter: null, amount: null })
      const grant = (path: string, body: object = {}) => call("POST", `${theirs}/${idOf(asked.json)}/${path}`, { body })
      const limit = yield* grant("grant", { rpm_limit: 20, until, reason: "why" })
      assert.deepInclude(refusalOf(limit), { status: 400, code: "invalid_policy_payload" })

      const granted = yield* grant("grant-model", { answer: "use it well" })
      assert.deepInclude(granted.json, { state: "granted", model: "large", granted: null }, granted.text)
      assert.deepStrictEqual(at(yield* ok("GET", `${admin}/keys/${key.id}`), "policy", "allowed_models"), [
        "small",
        "large"
      ])
      const [seen] = listed(yield* ok("GET", mine, as(key)))
      assert.deepInclude(seen, { state: "granted", model: "large", answer: "use it well" })
      assert.deepInclude(yield* ok("POST", "/admin-ui/v1/me/test", test), { allowed: true, refused_model: null })
      const [event] = listed(yield* ok("GET", `${admin}/audit-events?target_id=${key.id}`))
      assert.deepInclude(event, { action: "limits:grant_model" })
      assert.strictEqual((yield* grant("grant-model")).status, 409)
    })
  )

  it.effect("for a model stay open while a layer refuses it, or while its price is missing", () =>
    Effect.gen(function* () {
      const key = yield* limited({
        team_id: "readers",
        policy: { allowed_models: ["small"], unpriced_models: "refuse" }
      })
      const asked = yield* ask(key, { reason: "a long text", model: "vast" })
      const grant = call("POST", `${theirs}/${idOf(asked.json)}/grant-model`, { body: {} })
      const refusedBy = (words: string) =>
        Effect.map(grant, (answer) => {
          assert.deepInclude(refusalOf(answer), { status: 400, code: "invalid_policy_payload" })
          assert.include(answer.text, words)
        })
      const layer = yield* ok("POST", `${admin}/policy-layers`, {
        body: { kind: "team", scope_id: "readers", policy: { allowed_models: ["small"] } }
      })
      yield* refusedBy("team:readers refuses vast")
      yield* call("DELETE", `${admin}/policy-layers/${idOf(layer)}`)
      yield* refusedBy("vast has no price")
      assert.deepStrictEqual(at(yield* ok("GET", `${admin}/keys/${key.id}`), "policy", "allowed_models"), ["small"])
      yield* ok("PUT", `${admin}/model-prices/vast`, { body: { input_usd_per_million: 1, output_usd_per_million: 1 } })
      assert.deepInclude((yield* grant).json, { state: "granted" })
      const limit = yield* ask(key, { reason: "more" })
      const answer = yield* call("POST", `${theirs}/${idOf(limit.json)}/grant-model`, { body: {} })
      assert.deepInclude(refusalOf(answer), { status: 400, code: "invalid_policy_payload" })
      const most = Array.from({ length: 1000 }, (_, n) => `m${n}`)
      const full = yield* limited({ policy: { allowed_models: most } })
      const further = yield* ask(full, { reason: "one more", model: "vast" })
      const tooMany = yield* call("POST", `${theirs}/${idOf(further.json)}/grant-model`, { body: {} })
      assert.deepInclude(refusalOf(tooMany), { status: 400, code: "invalid_policy_payload" })
      assert.deepStrictEqual(at(yield* ok("GET", `${admin}/keys/${full.id}`), "policy", "allowed_models"), most)
      const all = yield* limited({ policy: {} })
      const any = yield* ask(all, { reason: "any", model: "vast" })
      assert.deepInclude((yield* call("POST", `${theirs}/${idOf(any.json)}/grant-model`, { body: {} })).json, {
        state: "granted"
      })
      assert.isNull(at(yield* ok("GET", `${admin}/keys/${all.id}`), "policy", "allowed_models"))
    })
  )

  it.effect("are refused with a sentence, and answered once", () =>
    Effect.gen(function* () {
      const key = yield* limited()
      const id = idOf((yield* ask(key, { reason: "more" })).json)
      const refuse = (answer: string) => call("POST", `${theirs}/${id}/refuse`, { body: { answer } })
      const grant = call("POST", `${theirs}/${id}/grant`, { body: { daily_budget_usd: 9, until, reason: "late" } })
      assert.strictEqual((yield* refuse("")).status, 422)
      const answers = yield* Effect.all([refuse("not this month"), grant, refuse("no")], { concurrency: "unbounded" })
      assert.deepStrictEqual(answers.map(({ status }) => status).sort(), [200, 409, 409])
      assert.deepStrictEqual(refusalOf(yield* refuse("again")), {
        status: 409,
        code: "raise_request_answered",
        param: null
      })
      const [seen] = listed(yield* ok("GET", mine, as(key)))
      assert.include(["refused", "granted"], at(seen, "state"))
    })
  )

  it.effect("leave everything as it was where the exception is not valid", () =>
    Effect.gen(function* () {
      const key = yield* limited()
      const id = idOf((yield* ask(key, { reason: "more" })).json)
      for (const limits of [{}, { daily_budget_usd: 4 }, { monthly_budget_usd: 100 }]) {
        const answer = yield* call("POST", `${theirs}/${id}/grant`, { body: { ...limits, until, reason: "why" } })
        assert.deepInclude(refusalOf(answer), { status: 400, code: "invalid_policy_payload" })
      }
      assert.deepStrictEqual(yield* ok("GET", `${admin}/limits/${key.id}/raises`), [])
      assert.strictEqual(at(listed(yield* ok("GET", mine, as(key))), 0, "state"), "open")
      yield* ok("POST", `${admin}/keys/${key.id}/revoke`)
      const late = yield* call("POST", `${theirs}/${id}/grant`, { body: { rpm_limit: 20, until, reason: "why" } })
      assert.deepInclude(refusalOf(late), { status: 409, code: "key_revoked" })
    })
  )

  it.effect("are three at once for a key, also of six in the same moment", () =>
    Effect.gen(function* () {
      const key = yield* limited()
      const all = yield* Effect.forEach([1, 2, 3, 4, 5, 6], (i) => ask(key, { reason: `please ${i}` }), {
        concurrency: "unbounded"
      })
      assert.lengthOf(
        all.filter(({ status }) => status === 200),
        3
      )
      const refused = yield* ask(key, { reason: "one more" })
      assert.deepStrictEqual(refusalOf(refused), { status: 429, code: "too_many_raise_requests", param: null })
      assert.lengthOf(listed(yield* ok("GET", mine, as(key))), 3)
      const other = yield* limited()
      assert.strictEqual((yield* ask(other, { reason: "another key" })).status, 200)
    })
  )

  it.effect("say what is wrong with them", () =>
    Effect.gen(function* () {
      const key = yield* limited()
      for (const body of [
        {},
        { reason: "" },
        { reason: "x".repeat(501) },
        { reason: "two\nlines" },
        { reason: "r", meter: "max_cost_per_request" },
        { reason: "r", meter: "rpm_limit", amount: -1 },
        { reason: "r", model: "" },
        { reason: "r", model: "gpt-*" },
        { reason: "r", model: "\u{1F600}".repeat(129) },
        { reason: "r", key_id: key.id }
      ]) {
        assert.strictEqual((yield* ask(key, body)).status, 422, JSON.stringify(body))
      }
      const both = yield* ask(key, { reason: "r", meter: "rpm_limit", model: "gpt-5" })
      assert.deepStrictEqual(refusalOf(both), { status: 400, code: "invalid_policy_payload", param: "model" })
      const amount = yield* ask(key, { reason: "r", amount: 4 })
      assert.deepStrictEqual(refusalOf(amount), { status: 400, code: "invalid_policy_payload", param: "meter" })
    })
  )

  it.effect("are seen by their own key and by operators, and by no other key in any way", () =>
    Effect.gen(function* () {
      const [a, b] = yield* Effect.all([limited(), limited({ name: "bob" })])
      const id = idOf((yield* ask(a, { reason: "secret of ada" })).json)
      for (const parameter of ["", `?key_id=${a.id}`, `?state=open`, `?id=${id}`, `?limit=500`]) {
        const seen = yield* call("GET", `${mine}${parameter}`, as(b))
        assert.include([200, 422], seen.status)
        assert.notInclude(seen.text.replaceAll(parameter.slice(1), ""), id)
        assert.notInclude(seen.text, "secret of ada")
      }
      for (const [method, path] of [
        ["GET", `${mine}/${id}`],
        ["POST", `${mine}/${id}/grant`],
        ["POST", `${mine}/${id}/refuse`]
      ] as const) {
        assert.strictEqual(
          (yield* call(method, path, { ...as(b), ...(method === "POST" && { body: {} }) })).status,
          404
        )
      }
      for (const path of [theirs, `${theirs}?key_id=${a.id}`]) {
        assert.strictEqual((yield* call("GET", path, as(a))).status, 401)
      }
      const answer = yield* call("POST", `${theirs}/${id}/refuse`, { ...as(a), body: { answer: "by myself" } })
      assert.strictEqual(answer.status, 401)
    })
  )

  it.effect("are listed page by page, the newest first", () =>
    Effect.gen(function* () {
      const key = yield* limited()
      const ids: Array<string> = []
      for (const reason of ["one", "two", "three"]) ids.unshift(idOf((yield* ask(key, { reason })).json))
      const first = yield* call("GET", `${theirs}?key_id=${key.id}&limit=2`)
      const rest = yield* call("GET", `${theirs}?key_id=${key.id}&limit=2&cursor=${first.headers["x-next-cursor"]}`)
      assert.deepStrictEqual(
        [...listed(first.json), ...listed(rest.json)].map((one) => at(one, "id")),
        ids
      )
      assert.isUndefined(rest.headers["x-next-cursor"])
    })
  )
})
