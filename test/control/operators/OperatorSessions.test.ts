import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { admin, at, call, idOf, ok, operatorToken, refusalOf, suite } from "../Listener.ts"

const tokens = `${admin}/operator-tokens`
const sessions = `${admin}/operator-sessions`

const newToken = (name: string, ...scopes: ReadonlyArray<string>) =>
  Effect.map(ok("POST", tokens, { body: { name, scopes } }), (json) => ({
    id: idOf(json, "token"),
    raw: String(at(json, "raw_token"))
  }))

const signIn = Effect.fnUntraced(function* (token: string) {
  const answer = yield* call("POST", "/admin-ui/session", {
    authorization: null,
    headers: { "sec-fetch-site": "same-origin" },
    body: { token }
  })
  assert.strictEqual(answer.status, 200, answer.text)
  return String(answer.headers["set-cookie"]).split(";", 1)[0] ?? ""
})

const statusOf = (cookie: string) =>
  Effect.map(
    call("GET", tokens, { authorization: null, headers: { cookie, "sec-fetch-site": "same-origin" } }),
    ({ status }) => status
  )

const rowOf = Effect.fnUntraced(function* (path: string, field: string, value: string, authorization?: string) {
  const rows = yield* ok("GET", path, authorization === undefined ? {} : { authorization: `Bearer ${authorization}` })
  assert(Array.isArray(rows))
  return rows.find((row) => at(row, field) === value)
})

suite("Operators and their browsers", (it) => {
  it.effect("tokens say which one is the caller's, whether they are active, and how many browsers use them", () =>
    Effect.gen(function* () {
      const { id, raw } = yield* newToken("browsers", "operators:manage")
      yield* signIn(raw)
      yield* signIn(raw)
      assert.deepInclude(yield* rowOf(tokens, "id", id), {
        kind: "token",
        active: true,
        is_caller: false,
        session_count: 2
      })
      assert.deepInclude(yield* rowOf(tokens, "id", id, raw), { is_caller: true })
      yield* ok("POST", `${tokens}/${id}/revoke`)
      assert.deepInclude(yield* rowOf(tokens, "id", id), { active: false })
      assert.isUndefined(yield* rowOf(sessions, "token_id", id))
    })
  )

  it.effect("a session is ended by whoever has its scopes, and its browser is signed out", () =>
    Effect.gen(function* () {
      const cookie = yield* signIn(operatorToken)
      const other = yield* newToken("weak", "operators:manage")
      const session = yield* rowOf(sessions, "token_name", "first operator")
      assert(session !== undefined)
      const path = `${sessions}/${idOf(session)}`
      const weak = yield* call("DELETE", path, { authorization: `Bearer ${other.raw}` })
      assert.deepInclude(refusalOf(weak), { status: 403, code: "insufficient_operator_scope" })
      assert.strictEqual(yield* statusOf(cookie), 200)
      yield* ok("DELETE", path)
      assert.strictEqual(yield* statusOf(cookie), 401)
      assert.deepInclude(refusalOf(yield* call("DELETE", path)), { status: 404 })
      const [event] = yield* Effect.map(ok("GET", `${admin}/audit-events?action=sessions:end`), (json) => {
        assert(Array.isArray(json))
        return json
      })
      assert.strictEqual(at(event, "target_id"), idOf(session))
    })
  )

  it.effect("scopes are listed with what each allows", () =>
    Effect.gen(function* () {
      const scopes = yield* ok("GET", `${tokens}/scopes`)
      assert(Array.isArray(scopes))
      assert.includeMembers(
        scopes.map((one) => at(one, "scope")),
        ["keys:create", "operators:manage", "*"]
      )
      for (const one of scopes) assert.isAbove(String(at(one, "help")).length, 10)
    })
  )
})
