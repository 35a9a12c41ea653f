import { assert } from "@effect/vitest"
import { Effect, Option } from "effect"
import { bootstrap } from "../../src/control/operators/OperatorTokens.ts"
import { Database } from "../../src/services/Database.ts"
import { admin, at, call, idOf, ok, operatorToken, refusalOf, suite } from "./Listener.ts"

const tokens = `${admin}/operator-tokens`
const nobody = "00000000-0000-4000-8000-000000000000"

const create = (scopes: ReadonlyArray<string>, more: object = {}) =>
  Effect.map(ok("POST", tokens, { body: { name: "made", scopes, ...more } }), (json) => ({
    id: idOf(json, "token"),
    json,
    authorization: `Bearer ${at(json, "raw_token")}`
  }))

const list = (path: string) =>
  Effect.map(ok("GET", path), (json) => {
    assert(Array.isArray(json))
    return json
  })

/** The token of the tests, the only one that is active. */
const first = Effect.gen(function* () {
  const { sql } = yield* Database
  yield* sql`UPDATE operator_tokens SET disabled = true, revoked_at = now() WHERE revoked_at IS NULL`
  yield* sql`
    UPDATE operator_tokens SET disabled = false, revoked_at = NULL WHERE token_prefix = ${operatorToken.slice(0, 16)}`
  const found = (yield* list(tokens)).find((token) => at(token, "revoked_at") === null)
  return String(at(found, "id"))
})

suite("Operator tokens", (it) => {
  it.effect("a further token has a name and some of its maker's scopes, and works until it is revoked", () =>
    Effect.gen(function* () {
      yield* first
      const { sql } = yield* Database
      const { authorization, id, json } = yield* create(["usage:read", "audit:read"])
      assert.match(authorization, /^Bearer op_live_[0-9a-f]{64}$/)
      assert.deepInclude(at(json, "token"), {
        name: "made",
        scopes: ["usage:read", "audit:read"],
        roles: ["operator"],
        expires_at: null,
        revoked_at: null
      })
      const [dump] = yield* sql`SELECT row_to_json(t)::text AS row FROM operator_tokens t WHERE id = ${id}`
      assert.notInclude(String(dump?.["row"]), authorization.slice(-40))
      assert.deepStrictEqual(yield* ok("GET", `${tokens}/${id}`), at(json, "token"))
      yield* ok("GET", `${admin}/projects`, { authorization })
      assert.strictEqual(refusalOf(yield* call("GET", tokens, { authorization })).code, "insufficient_operator_scope")

      const revoked = yield* ok("POST", `${tokens}/${id}/revoke`)
      assert.isString(at(revoked, "revoked_at"))
      assert.strictEqual(
        refusalOf(yield* call("GET", `${admin}/projects`, { authorization })).code,
        "disabled_operator_token"
      )
      assert.deepStrictEqual(yield* ok("POST", `${tokens}/${id}/revoke`), revoked)
      const rotation = refusalOf(yield* call("POST", `${tokens}/${id}/rotate`))
      assert.deepStrictEqual(rotation, { status: 409, code: "operator_token_not_active", param: null })
      for (const path of [`${tokens}/${nobody}/rotate`, `${tokens}/${nobody}/revoke`]) {
        assert.strictEqual(refusalOf(yield* call("POST", path)).code, "not_found")
      }
    })
  )

  it.effect("nobody hands out a scope that they lack, nor takes one over by rotating", () =>
    Effect.gen(function* () {
      const owner = yield* first
      const { authorization } = yield* create(["operators:manage", "usage:read"])
      const refused = { status: 403, code: "insufficient_operator_scope", param: "scopes" }
      for (const scopes of [["*"], ["usage:read", "keys:create"]]) {
        const answer = yield* call("POST", tokens, { authorization, body: { name: "more", scopes } })
        assert.deepStrictEqual(refusalOf(answer), refused)
      }
      assert.deepStrictEqual(refusalOf(yield* call("POST", `${tokens}/${owner}/rotate`, { authorization })), refused)
      const equal = yield* ok("POST", tokens, { authorization, body: { name: "equal", scopes: ["usage:read"] } })
      const rotated = yield* ok("POST", `${tokens}/${idOf(equal, "token")}/rotate`, { authorization })
      assert.deepInclude(at(rotated, "token"), { name: "equal", scopes: ["usage:read"] })
    })
  )

  it.effect("a token that was rotated is refused, and its successor has its name, scopes and end", () =>
    Effect.gen(function* () {
      yield* first
      const before = yield* create(["usage:read"], { expires_at: "2999-01-01T00:00:00Z" })
      const rotated = yield* ok("POST", `${tokens}/${before.id}/rotate`)
      assert.deepInclude(at(rotated, "token"), {
        name: "made",
        scopes: ["usage:read"],
        expires_at: "2999-01-01T00:00:00.000Z"
      })
      const visit = (authorization: string) =>
        Effect.map(call("GET", `${admin}/projects`, { authorization }), refusalOf)
      assert.strictEqual((yield* visit(before.authorization)).code, "disabled_operator_token")
      assert.strictEqual((yield* visit(`Bearer ${at(rotated, "raw_token")}`)).status, 200)
    })
  )

  it.effect("a token ends when it expires", () =>
    Effect.gen(function* () {
      yield* first
      const { sql } = yield* Database
      const past = yield* call("POST", tokens, {
        body: { name: "late", scopes: ["*"], expires_at: "2020-01-01T00:00:00Z" }
      })
      assert.deepStrictEqual(refusalOf(past), { status: 422, code: "invalid_request", param: "expires_at" })
      const { authorization, id } = yield* create(["*"], { expires_at: "2999-01-01T00:00:00Z" })
      yield* ok("GET", `${admin}/projects`, { authorization })
      yield* sql`UPDATE operator_tokens SET expires_at = now() WHERE id = ${id}`
      assert.strictEqual(
        refusalOf(yield* call("GET", `${admin}/projects`, { authorization })).code,
        "disabled_operator_token"
      )
      assert.strictEqual(refusalOf(yield* call("POST", `${tokens}/${id}/rotate`)).code, "operator_token_not_active")
    })
  )

  it.effect("one token that may do everything and does not expire always stays", () =>
    Effect.gen(function* () {
      const owner = yield* first
      const last = { status: 409, code: "last_operator_token", param: null }
      yield* create(["operators:manage"])
      yield* create(["*"], { expires_at: "2999-01-01T00:00:00Z" })
      assert.deepStrictEqual(refusalOf(yield* call("POST", `${tokens}/${owner}/revoke`)), last)
      const second = yield* create(["*"])
      const manager = yield* create(["operators:manage"])
      const beyond = { status: 403, code: "insufficient_operator_scope", param: "scopes" }
      const attempt = call("POST", `${tokens}/${second.id}/revoke`, { authorization: manager.authorization })
      assert.deepStrictEqual(refusalOf(yield* attempt), beyond)
      const { authorization } = yield* create(["*"], { expires_at: "2999-01-01T00:00:00Z" })
      const answers = yield* Effect.forEach(
        [owner, second.id],
        (id) => call("POST", `${tokens}/${id}/revoke`, { authorization }),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(answers.map(({ status }) => status).sort(), [200, 409])
    })
  )

  it.effect("there are at most a hundred active ones, however many are asked for at once", () =>
    Effect.gen(function* () {
      yield* first
      const { sql } = yield* Database
      yield* sql`
        INSERT INTO operator_tokens (token_prefix, token_hash, scopes)
        SELECT 'op_live_', sha256(convert_to('many ' || n, 'UTF8')), '{usage:read}' FROM generate_series(1, 97) AS n`
      const answers = yield* Effect.forEach(
        Array.from({ length: 5 }),
        () => call("POST", tokens, { body: { name: "many", scopes: ["usage:read"] } }),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(answers.map(({ status }) => status).sort(), [200, 200, 409, 409, 409])
      assert.include(
        answers.map((answer) => refusalOf(answer).code),
        "too_many_operator_tokens"
      )
      yield* first
    })
  )

  it.effect("the list leads through all of them, newest first", () =>
    Effect.gen(function* () {
      yield* first
      const newest = (yield* create(["usage:read"])).id
      const page = yield* call("GET", `${tokens}?limit=2`)
      assert.strictEqual(at(page.json, 0, "id"), newest)
      const rest = yield* list(`${tokens}?limit=2&cursor=${page.headers["x-next-cursor"]}`)
      assert.lengthOf(rest, 2)
    })
  )

  it.effect("what is no name, no list of scopes or no time is refused by its field", () =>
    Effect.gen(function* () {
      yield* first
      for (const [body, param] of [
        [{ scopes: ["*"] }, "name"],
        [{ name: "", scopes: ["*"] }, "name"],
        [{ name: "x".repeat(121), scopes: ["*"] }, "name"],
        [{ name: "a", scopes: [] }, "scopes"],
        [{ name: "a", scopes: ["everything"] }, "scopes.0"],
        [{ name: "a", scopes: ["*", "*"] }, "scopes"],
        [{ name: "a", scopes: ["*"], expires_at: "tomorrow" }, "expires_at"],
        [{ name: "a", scopes: ["*"], roles: ["owner"] }, "roles"]
      ] as const) {
        const answer = yield* call("POST", tokens, { body })
        assert.deepStrictEqual(refusalOf(answer), { status: 422, code: "invalid_request", param }, answer.text)
      }
    })
  )

  it.effect("a start makes one again when none is active any more, and none while one is", () =>
    Effect.gen(function* () {
      yield* first
      const { sql } = yield* Database
      assert.isTrue(Option.isNone(yield* bootstrap(Option.none())))
      yield* sql`UPDATE operator_tokens SET expires_at = now() WHERE revoked_at IS NULL`
      const made = yield* Effect.forEach(Array.from({ length: 4 }), () => bootstrap(Option.none()), {
        concurrency: "unbounded"
      })
      assert.lengthOf(made.filter(Option.isSome), 1)
      yield* sql`UPDATE operator_tokens SET expires_at = NULL WHERE token_prefix = ${operatorToken.slice(0, 16)}`
      yield* first
    })
  )
})
