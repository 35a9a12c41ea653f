import { assert } from "@effect/vitest"
import { Effect, type Schema } from "effect"
import { Database } from "../../../src/services/Database.ts"
import { eventually } from "../../Eventually.ts"
import * as Proxy from "../../gateway/Proxy.ts"
import { admin, at, call, idOf, ok, operatorToken, refusalOf } from "../Listener.ts"
import * as Metered from "../limits/Metered.ts"

const me = "/admin-ui/v1/me"
const views = ["", "/limits", "/usage", "/models", "/requests", "/guardrails", "/history", "/raise-requests"]

const as = ({ raw }: Metered.HeldKey) => ({ authorization: `Bearer ${raw}` })

const rotate = (raw: string, body?: object) =>
  call("POST", `${me}/rotate`, {
    authorization: `Bearer ${raw}`,
    headers: { "x-forwarded-for": "192.0.2.7", "user-agent": "a-holder/1.0" },
    ...(body && { body })
  })

const rowsOf = (json: Schema.Json): ReadonlyArray<Schema.Json> => {
  const rows = at(json, "rows")
  assert(Array.isArray(rows))
  return rows
}

/** Two keys of one project and team, each with requests that succeeded and requests that were refused. */
const neighbours = Effect.gen(function* () {
  yield* Metered.priced
  const { sql } = yield* Database
  yield* sql`TRUNCATE usage_events`
  const project_id = idOf(yield* ok("POST", `${admin}/projects`, { body: { name: `both ${Math.random()}` } }))
  const team_id = `team of ${project_id}`
  yield* ok("POST", `${admin}/policy-layers`, {
    body: { kind: "team", scope_id: team_id, shared: { monthly_budget_usd: 1000 } }
  })
  const settings = { owner_type: "project", project_id, team_id, owner_email: "owner@example.org" }
  const mine = yield* Metered.newKey({ ...settings, name: "mine", policy: { max_requests_per_day: 2 } })
  const theirs = yield* Metered.newKey({
    ...settings,
    name: "secret-name",
    policy: { max_requests_per_day: 3, allowed_models: [Metered.model, "secret-model"] }
  })
  const gateway = yield* Metered.gateway()
  for (const key of [mine, mine, mine, theirs, theirs, theirs, theirs]) yield* gateway.ask(Metered.chatOf(key))
  yield* gateway.ask({ ...Metered.chatOf(theirs), body: { model: "secret-model", messages: [] } })
  yield* gateway.written
  const foreign = yield* sql<{ readonly request_id: string; readonly id: string }>`
    SELECT request_id, id::text AS id FROM usage_events WHERE key_id = ${theirs.id}`
  assert.lengthOf(foreign, 5)
  const secrets = [
    theirs.id,
    theirs.raw,
    theirs.raw.slice(0, 16),
    "secret-name",
    "secret-model",
    ...foreign.flatMap(({ id, request_id }) => [id, request_id])
  ]
  return { mine, theirs, project_id, team_id, secrets, gateway }
})

Metered.suite("The holder's view", (it) => {
  it.effect("shows a key to its holder, with refusals in plain words", () =>
    Effect.gen(function* () {
      const { mine, project_id, team_id } = yield* neighbours
      const shown = yield* ok("GET", me, as(mine))
      assert.deepInclude(shown, { id: mine.id, name: "mine", project_id, team_id, holder_rotation: false })
      assert.strictEqual(at(shown, "policy", "max_requests_per_day"), 2)
      const byHeader = yield* ok("GET", me, { authorization: null, headers: { "x-api-key": mine.raw } })
      assert.strictEqual(idOf(byHeader), mine.id)

      const limits = yield* ok("GET", `${me}/limits`, as(mine))
      assert.deepInclude(Metered.meter(Metered.listed(limits), "max_requests_per_day"), {
        limit: 2,
        used: 2,
        remaining: 0,
        scope_id: mine.id
      })
      assert.notInclude(JSON.stringify(limits), "owner@example.org")
      assert.deepStrictEqual(at(limits, "shared"), [
        {
          meter: "monthly_budget_usd",
          unit: "usd",
          window: "month",
          scope_name: `team:${team_id}`,
          limit: 1000,
          resets_at: at(limits, "shared", 0, "resets_at") ?? null,
          full: false
        }
      ])

      const usage = yield* ok("GET", `${me}/usage?from=today&interval=day`, as(mine))
      assert.deepInclude(at(usage, "summary"), { request_count: 3, success_count: 2, total_tokens: 20 })
      assert.strictEqual(at(usage, "buckets", 0, "summary", "request_count"), 3)
      const split = yield* ok("GET", `${me}/usage?from=today&interval=day&split=model`, as(mine))
      assert.strictEqual(at(split, "buckets", 0, "name"), Metered.model)
      assert.strictEqual((yield* call("GET", `${me}/usage?interval=day&split=key`, as(mine))).status, 422)

      const models = yield* ok("GET", `${me}/models`, as(mine))
      assert.deepStrictEqual(models, {
        allowed: null,
        priced: [{ model: Metered.model, input_usd_per_million: 10_000, output_usd_per_million: 10_000, note: null }],
        used: [{ model: Metered.model, input_usd_per_million: 10_000, output_usd_per_million: 10_000, note: null }]
      })

      const first = yield* ok("GET", `${me}/requests?limit=1`, as(mine))
      assert.deepInclude(rowsOf(first)[0], { status: "failure", error_code: "rate_limit_exceeded" })
      assert.strictEqual(at(rowsOf(first)[0], "meter"), "max_requests_per_day")
      assert.deepStrictEqual(at(rowsOf(first)[0], "refusal"), {
        sentence: "This key's requests of this day (2) were used up.",
        what_to_do: "Wait for 00:00 UTC, or ask whoever gave you the key for a higher limit."
      })
      const rest = yield* ok("GET", `${me}/requests?cursor=${at(first, "next_cursor")}`, as(mine))
      assert.deepStrictEqual(
        rowsOf(rest).map((row) => [at(row, "status_code"), at(row, "total_tokens"), at(row, "refusal")]),
        [
          [200, 10, null],
          [200, 10, null]
        ]
      )

      yield* ok("PUT", `${admin}/model-prices/gpt-5.5`, {
        body: { input_usd_per_million: 5, output_usd_per_million: 30 }
      })
      const { priced } = Object(yield* ok("GET", `${me}/models`, as(mine)))
      assert.deepInclude(priced[0], { model: "gpt-5.5", note: "Prompts of more than 272,000 tokens cost more." })

      // what the key has used, and may not use any more, is no model of it
      yield* ok("PATCH", `${admin}/keys/${mine.id}`, { body: { policy: { allowed_models: ["another"] } } })
      assert.deepStrictEqual(yield* ok("GET", `${me}/models`, as(mine)), { allowed: ["another"], priced: [], used: [] })
    })
  )

  it.effect("never shows anything of another key, by any parameter, cursor or header", () =>
    Effect.gen(function* () {
      const { mine, project_id, secrets, team_id, theirs } = yield* neighbours
      const cursor = at(yield* ok("GET", `${me}/requests?limit=2`, as(theirs)), "next_cursor")
      const keysCursor =
        (yield* call("GET", `${admin}/limits/state?scope=all&limit=1`)).headers["x-next-cursor"] ?? "e30"
      const parameters = [
        "",
        `?key_id=${theirs.id}`,
        `?id=${theirs.id}`,
        `?scope=key&id=${theirs.id}`,
        `?scope=all`,
        `?project_id=${project_id}`,
        `?team_id=${encodeURIComponent(team_id)}`,
        `?cursor=${cursor}`,
        `?cursor=${keysCursor}`,
        `?model=secret-model`,
        `?model=secret-model&from=2020-01-01`,
        `?status=failure&limit=500`,
        `?interval=hour&split=key`,
        `?sort_by=cost`,
        `?all=true`
      ]
      const headers: ReadonlyArray<Readonly<Record<string, string>>> = [
        {},
        { "x-svc-key": theirs.raw },
        { "x-svc-key-id": theirs.id },
        { cookie: `key=${theirs.raw}` }
      ]
      for (const view of views) {
        for (const parameter of parameters) {
          const answer = yield* call("GET", `${me}${view}${parameter}`, as(mine))
          assert.include([200, 422], answer.status, `${view}${parameter}: ${answer.text}`)
          leaksNothing(answer.text.replaceAll(parameter.slice(1), ""), `${view}${parameter}`)
        }
        for (const header of headers) {
          leaksNothing((yield* call("GET", `${me}${view}`, { ...as(mine), headers: header })).text, view)
        }
        for (const path of [`${me}/${theirs.id}${view}`, `${me}${view}/${theirs.id}`]) {
          assert.strictEqual((yield* call("GET", path, as(mine))).status, 404, path)
        }
        const both = yield* call("GET", `${me}${view}`, { ...as(mine), headers: { "x-api-key": theirs.raw } })
        assert.deepInclude(refusalOf(both), { status: 401, code: "malformed_authorization" })
        const operator = yield* call("GET", `${me}${view}`, { authorization: `Bearer ${operatorToken}` })
        assert.deepInclude(refusalOf(operator), { status: 401, code: "malformed_authorization" })
        const byHeader = yield* call("GET", `${me}${view}`, {
          authorization: null,
          headers: { "x-api-key": operatorToken }
        })
        assert.deepInclude(refusalOf(byHeader), { status: 401, code: "malformed_authorization" })
      }
      for (const path of ["keys", `keys/${mine.id}`, "usage/summary", "limits/state?scope=all"]) {
        assert.strictEqual((yield* call("GET", `${admin}/${path}`, as(mine))).status, 401)
      }

      function leaksNothing(text: string, where: string) {
        for (const secret of secrets) assert.notInclude(text, secret, where)
      }
    })
  )

  it.effect("closes to keys that are unknown, disabled, revoked or expired, with a sentence", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const [disabled, revoked, expired] = yield* Effect.all([
        Metered.newKey({}),
        Metered.newKey({}),
        Metered.newKey({})
      ])
      yield* ok("POST", `${admin}/keys/${disabled.id}/disable`)
      yield* ok("POST", `${admin}/keys/${revoked.id}/revoke`)
      yield* sql`UPDATE api_keys SET expires_at = now() - interval '1 second' WHERE id = ${expired.id}`
      for (const [raw, code] of [
        [`rk_live_${"0".repeat(64)}`, "invalid_virtual_key"],
        [disabled.raw, "disabled_virtual_key"],
        [revoked.raw, "revoked_virtual_key"],
        [expired.raw, "expired_virtual_key"]
      ] as const) {
        const answers = [
          ...(yield* Effect.forEach(views, (view) => call("GET", `${me}${view}`, { authorization: `Bearer ${raw}` }))),
          yield* rotate(raw)
        ]
        for (const answer of answers) {
          assert.deepStrictEqual(refusalOf(answer), { status: 401, code, param: null })
          assert.match(String(at(answer.json, "error", "message")), /\.$/)
        }
      }
    })
  )

  it.effect("lets a holder stop the replaced secret, with the current secret alone", () =>
    Effect.gen(function* () {
      const key = yield* Metered.newKey({})
      const end = (raw: string) => call("POST", `${me}/end-grace`, { authorization: `Bearer ${raw}`, body: {} })
      assert.deepInclude(refusalOf(yield* end(key.raw)), { status: 403, code: "rotation_forbidden" })
      yield* ok("PATCH", `${admin}/keys/${key.id}`, { body: { holder_rotation: true } })
      const raw = String(at((yield* rotate(key.raw, { grace_seconds: 60 })).json, "raw_key"))
      assert.deepInclude(refusalOf(yield* end(key.raw)), { status: 403, code: "rotation_forbidden" })
      for (let times = 0; times < 2; times++) {
        const ended = yield* end(raw)
        assert.deepStrictEqual([ended.status, ended.json], [200, { previous_key_expires_at: null }], ended.text)
      }
      const show = (secret: string) => call("GET", me, { authorization: `Bearer ${secret}` })
      assert.deepStrictEqual([(yield* show(key.raw)).status, (yield* show(raw)).status], [401, 200])
      const events = yield* ok("GET", `${admin}/audit-events?target_id=${key.id}&action=keys:end_grace_by_holder`)
      assert.deepInclude([events].flat()[0], { actor_token_id: null, target_type: "key" })
    })
  )

  it.effect("lets a holder revoke a key where an operator allows it, with the current secret alone", () =>
    Effect.gen(function* () {
      const key = yield* Metered.newKey({})
      const revoke = (raw: string) => call("POST", `${me}/revoke`, { authorization: `Bearer ${raw}`, body: {} })
      assert.deepInclude(refusalOf(yield* revoke(key.raw)), { status: 403, code: "rotation_forbidden" })
      yield* ok("PATCH", `${admin}/keys/${key.id}`, { body: { holder_rotation: true } })
      const raw = String(at((yield* rotate(key.raw, { grace_seconds: 60 })).json, "raw_key"))
      assert.deepInclude(refusalOf(yield* revoke(key.raw)), { status: 403, code: "rotation_forbidden" })
      const revoked = yield* revoke(raw)
      assert.strictEqual(revoked.status, 200, revoked.text)
      assert.notStrictEqual(at(revoked.json, "revoked_at"), null)
      for (const secret of [key.raw, raw]) assert.strictEqual((yield* revoke(secret)).status, 401)
      const [event] = [
        yield* ok("GET", `${admin}/audit-events?target_id=${key.id}&action=keys:revoke_by_holder`)
      ].flat()
      assert.deepInclude(event, { actor_token_id: null, target_type: "key" })
    })
  )

  it.effect("lets a holder rotate a key where an operator allows it, with the current secret alone", () =>
    Effect.gen(function* () {
      const key = yield* Metered.newKey({})
      assert.deepInclude(refusalOf(yield* rotate(key.raw)), { status: 403, code: "rotation_forbidden" })
      yield* ok("PATCH", `${admin}/keys/${key.id}`, { body: { holder_rotation: true } })
      assert.strictEqual((yield* rotate(key.raw, { grace_seconds: 86_401 })).status, 422)
      const rotated = yield* rotate(key.raw, { grace_seconds: 60 })
      assert.strictEqual(rotated.status, 200, rotated.text)
      const raw = String(at(rotated.json, "raw_key"))
      const gateway = yield* Metered.gateway()
      yield* Metered.priced
      for (const secret of [key.raw, raw]) {
        assert.strictEqual((yield* gateway.ask(Metered.chatOf({ ...key, raw: secret }))).status, 200)
      }
      // A thief who has only the replaced secret, which may have leaked, cannot take the key over.
      assert.deepInclude(refusalOf(yield* rotate(key.raw)), { status: 403, code: "rotation_forbidden" })
      const [event] = [
        yield* ok("GET", `${admin}/audit-events?target_id=${key.id}&action=keys:rotate_by_holder`)
      ].flat()
      assert.deepInclude(event, { actor_token_id: null, ip: "192.0.2.7", user_agent: "a-holder/1.0" })
      assert.notInclude(JSON.stringify(event), raw)

      const races = yield* Effect.forEach(Array.from({ length: 4 }), () => rotate(raw), { concurrency: "unbounded" })
      assert.lengthOf(
        races.filter(({ status }) => status === 200),
        1
      )
      assert.strictEqual((yield* call("GET", me, { authorization: `Bearer ${raw}` })).status, 401)
      // gateways learn of it within a second
      const old = gateway.ask({ ...Metered.chatOf(key), target: Proxy.chat })
      yield* eventually(old, ({ status }) => status === 401)
    })
  )
})
