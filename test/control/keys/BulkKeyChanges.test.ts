import { assert } from "@effect/vitest"
import { Effect, type Schema } from "effect"
import { Database } from "../../../src/services/Database.ts"
import { eventually } from "../../Eventually.ts"
import * as Fixtures from "../Fixtures.ts"
import { admin, at, call, idOf, ok, refusalOf, suite } from "../Listener.ts"

const path = `${admin}/bulk-key-changes`

const makeKey = (body: object = {}) =>
  Effect.map(ok("POST", `${admin}/keys`, { body: { owner_type: "individual", ...body } }), (made) => idOf(made, "key"))

const makeKeys = (count: number, body: (place: number) => object) =>
  Effect.forEach(
    Array.from({ length: count }, (_, place) => place),
    (place) => makeKey(body(place))
  )

const begin = (body: object) => Effect.map(ok("POST", path, { body }), (made) => idOf(made))

const ended = (id: string) =>
  eventually(ok("GET", `${path}/${id}`), (change) => at(change, "state") !== "running", "20 seconds")

const make = (body: object) => Effect.flatMap(begin(body), ended)

const undo = (change: Schema.Json) =>
  Effect.flatMap(ok("POST", `${path}/${idOf(change)}/undo`), (made) => ended(idOf(made)))

const memberOfKeys = (ids: ReadonlyArray<string>, name: string) =>
  Effect.forEach(ids, (id) => Effect.map(ok("GET", `${admin}/keys/${id}`), (key) => at(key, name)))

const eventsOf = (id: string) =>
  Effect.map(ok("GET", `${admin}/audit-events?target_id=${id}`), (events) =>
    Array.isArray(events) ? events.map((event) => String(at(event, "action"))) : []
  )

const tokenWith = (...scopes: ReadonlyArray<string>) =>
  ok("POST", `${admin}/operator-tokens`, { body: { name: scopes.join(), scopes } })

suite("Changes of many keys", (it) => {
  it.effect("disable all keys that match, each with an audit event of its own, and no others", () =>
    Effect.gen(function* () {
      const matching = yield* makeKeys(45, (place) => ({ name: `stolen ${place}` }))
      const [other = ""] = yield* makeKeys(1, () => ({ name: "kept" }))
      const change = yield* make({ action: "disable", filter: { q: "stolen" } })
      assert.deepInclude(change, { state: "done", stop_reason: null, failures: [] })
      assert.deepStrictEqual(at(change, "keys"), { selected: 45, waiting: 0, changed: 45, unchanged: 0, failed: 0 })
      assert.deepStrictEqual(new Set(yield* memberOfKeys(matching, "disabled")), new Set([true]))
      assert.deepStrictEqual(yield* memberOfKeys([other], "disabled"), [false])
      assert.deepStrictEqual(yield* eventsOf(matching[7] ?? ""), ["keys:disable", "keys:create"])
      assert.deepStrictEqual(yield* eventsOf(idOf(change)), ["keys:bulk_change"])
      const [newest] = yield* Effect.map(ok("GET", path), (list) => (Array.isArray(list) ? list : []))
      assert.strictEqual(at(newest, "id"), idOf(change))
    })
  )

  it.effect("leave alone what is so already, and are undone for those that they have changed", () =>
    Effect.gen(function* () {
      const ids = yield* makeKeys(3, () => ({}))
      yield* ok("POST", `${admin}/keys/${ids[0]}/disable`)
      yield* ok("POST", `${admin}/keys/${ids[1]}/revoke`)
      const change = yield* make({ action: "disable", ids })
      assert.deepInclude(at(change, "keys"), { changed: 1, unchanged: 2 })
      const undone = yield* undo(change)
      assert.deepInclude(undone, { action: "undo", undoes: idOf(change) })
      assert.deepInclude(at(undone, "keys"), { selected: 1, changed: 1 })
      assert.deepStrictEqual(yield* memberOfKeys(ids, "disabled"), [true, false, false])
      const again = yield* call("POST", `${path}/${idOf(change)}/undo`)
      assert.deepInclude(refusalOf(again), { status: 400, code: "invalid_bulk_key_change" })
      assert.strictEqual(at(yield* ok("GET", `${path}/${idOf(change)}`), "undone_by"), idOf(undone))
    })
  )

  it.effect("add and remove tags; an undo keeps the tags that others have added meanwhile", () =>
    Effect.gen(function* () {
      const [both = "", one = ""] = yield* makeKeys(2, (place) => ({ tags: place === 0 ? ["old", "kept"] : ["new"] }))
      const change = yield* make({
        action: "tag",
        ids: [both, one],
        add_tags: ["new"],
        remove_tags: ["old"]
      })
      assert.deepInclude(at(change, "keys"), { changed: 1, unchanged: 1 })
      assert.deepStrictEqual(yield* memberOfKeys([both, one], "tags"), [["kept", "new"], ["new"]])
      yield* ok("PATCH", `${admin}/keys/${both}`, { body: { tags: ["kept", "new", "theirs"] } })
      yield* undo(change)
      assert.deepStrictEqual(yield* memberOfKeys([both, one], "tags"), [["kept", "theirs", "old"], ["new"]])
    })
  )

  it.effect("move keys to a project; an undo brings back their places and their own services", () =>
    Effect.gen(function* () {
      const project = yield* Fixtures.project
      const service = yield* Fixtures.service
      const id = yield* makeKey({ service_names: [service] })
      const change = yield* make({ action: "move", ids: [id], project_id: project })
      assert.deepInclude(yield* ok("GET", `${admin}/keys/${id}`), { project_id: project, service_names: [] })
      yield* undo(change)
      assert.deepInclude(yield* ok("GET", `${admin}/keys/${id}`), {
        owner_type: "individual",
        project_id: null,
        service_names: [service]
      })
    })
  )

  it.effect("say why a key could not be changed, and go on with the others", () =>
    Effect.gen(function* () {
      const full = Array.from({ length: 20 }, (_, place) => `tag ${place}`)
      const [fullKey = "", other = ""] = yield* makeKeys(2, (place) => ({
        name: `key ${place}`,
        tags: place ? [] : full
      }))
      const change = yield* make({ action: "tag", ids: [fullKey, other], add_tags: ["one more"] })
      assert.deepInclude(at(change, "keys"), { changed: 1, failed: 1 })
      const message = "It would have 21 tags. A key has at most 20."
      assert.deepStrictEqual(at(change, "failures", 0, "message"), message)
      assert.deepStrictEqual(at(change, "failures", 0, "key_name"), "key 0")
      assert.deepStrictEqual(yield* memberOfKeys([other], "tags"), [["one more"]])
    })
  )

  it.effect("disable also a key that this version cannot read, and say so of every other change", () =>
    Effect.gen(function* () {
      const [id = ""] = yield* makeKeys(1, () => ({}))
      const { sql } = yield* Database
      yield* sql`UPDATE api_keys SET policy = '{"rpm_limit": "many"}' WHERE id = ${id}`
      const tagged = yield* make({ action: "tag", ids: [id], add_tags: ["a"] })
      assert.match(String(at(tagged, "failures", 0, "message")), /cannot read the key/)
      assert.deepInclude(at(yield* make({ action: "disable", ids: [id] }), "keys"), { changed: 1 })
      const [row] = yield* sql`SELECT disabled FROM api_keys WHERE id = ${id}`
      assert.deepStrictEqual(row, { disabled: true })
      yield* sql`UPDATE api_keys SET policy = '{}' WHERE id = ${id}`
    })
  )

  it.effect("are stopped, and what was changed stays", () =>
    Effect.gen(function* () {
      const ids = yield* makeKeys(100, () => ({}))
      const id = yield* begin({ action: "disable", ids })
      yield* ok("POST", `${path}/${id}/stop`)
      const change = yield* ended(id)
      assert.include(["stopped", "done"], at(change, "state"))
      const disabled = (yield* memberOfKeys(ids, "disabled")).filter((is) => is === true).length
      assert.strictEqual(at(change, "keys", "changed"), disabled)
      const again = yield* ok("POST", `${path}/${id}/stop`)
      assert.strictEqual(at(again, "ended_at"), at(change, "ended_at"))
    })
  )

  it.effect("stop by themselves once the token is revoked on whose behalf they are made", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const made = yield* tokenWith("keys:disable")
      const [id = ""] = yield* makeKeys(1, () => ({}))
      const change = idOf(yield* ok("POST", path, { body: { action: "enable", ids: [id] } }))
      yield* ended(change)
      yield* ok("POST", `${admin}/operator-tokens/${idOf(made, "token")}/revoke`)
      // as if it had not come to its end yet
      yield* sql`UPDATE bulk_key_change_items SET outcome = 'waiting' WHERE change_id = ${change}`
      yield* sql`UPDATE bulk_key_changes SET state = 'running', unchanged = 0, token_id = ${idOf(made, "token")}
        WHERE id = ${change}`
      const stopped = yield* ended(change)
      assert.deepInclude(stopped, { state: "stopped", stop_reason: "Its operator token is no longer valid." })
      assert.deepInclude(at(stopped, "keys"), { waiting: 1 })
    })
  )

  it.effect("need the scopes of each thing that they do", () =>
    Effect.gen(function* () {
      const [id = ""] = yield* makeKeys(1, () => ({}))
      const project = yield* Fixtures.project
      const as = (scopes: ReadonlyArray<string>, body: object, to = path) =>
        Effect.flatMap(tokenWith(...scopes), (made) =>
          Effect.map(
            call("POST", to, { authorization: `Bearer ${at(made, "raw_token")}`, body: { ids: [id], ...body } }),
            ({ status }) => status
          )
        )
      const move = { action: "move", project_id: project }
      assert.deepStrictEqual(
        [
          yield* as(["keys:disable"], { action: "enable" }),
          yield* as(["policies:update"], { action: "enable" }),
          yield* as(["policies:update"], { action: "tag", add_tags: ["a"] }),
          yield* as(["keys:disable"], { action: "tag", add_tags: ["a"] }),
          yield* as(["policies:update"], move),
          yield* as(["policies:update", "keys:create"], move)
        ],
        [200, 403, 200, 403, 403, 200]
      )
      const disabling = yield* make({ action: "disable", ids: [id] })
      const other = yield* tokenWith("policies:update")
      const refused = yield* call("POST", `${path}/${idOf(disabling)}/undo`, {
        authorization: `Bearer ${at(other, "raw_token")}`
      })
      assert.strictEqual(refused.status, 403, refused.text)
    })
  )

  it.effect("are undone by whoever may do the same, however often they were undone before", () =>
    Effect.gen(function* () {
      const ids = yield* makeKeys(1, () => ({}))
      let change = yield* make({ action: "disable", ids })
      for (let times = 0; times < 3; times++) change = yield* undo(change)
      assert.deepStrictEqual(yield* memberOfKeys(ids, "disabled"), [false])
      const other = yield* tokenWith("policies:update")
      for (const verb of ["undo", "stop"]) {
        const refused = yield* call("POST", `${path}/${idOf(change)}/${verb}`, {
          authorization: `Bearer ${at(other, "raw_token")}`
        })
        assert.strictEqual(refused.status, 403, `${verb}: ${refused.text}`)
      }
    })
  )

  it.effect("are undone once more where the first undo was stopped", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const ids = yield* makeKeys(2, () => ({}))
      const change = yield* make({ action: "disable", ids })
      const first = yield* undo(change)
      yield* sql`UPDATE bulk_key_changes SET state = 'stopped' WHERE id = ${idOf(first)}`
      yield* ok("POST", `${admin}/keys/${ids[0]}/disable`)
      const second = yield* undo(change)
      assert.deepInclude(at(second, "keys"), { changed: 1, unchanged: 1 })
      assert.deepStrictEqual(yield* memberOfKeys(ids, "disabled"), [false, false])
    })
  )

  it.effect("stop by themselves once their token has lost the scope that they need", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const made = yield* tokenWith("keys:disable")
      const ids = yield* makeKeys(1, () => ({}))
      yield* sql`UPDATE operator_tokens SET scopes = ARRAY['usage:read'] WHERE id = ${idOf(made, "token")}`
      const [row] = yield* sql<{
        readonly id: string
      }>`INSERT INTO bulk_key_changes (change, request_id, token_id, selected)
        VALUES ('{"action":"disable"}', 'of a token', ${idOf(made, "token")}, 1) RETURNING id`
      const stopped = yield* ended(row?.id ?? "")
      assert.strictEqual(at(stopped, "stop_reason"), "Its operator token has lost the scope keys:disable.")
      assert.deepStrictEqual(yield* memberOfKeys(ids, "disabled"), [false])
    })
  )

  it.effect("take turns, so that a small one need not wait for a large one", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      // three steps of twenty keys
      const many = yield* makeKeys(41, () => ({}))
      const few = yield* makeKeys(1, () => ({}))
      // one statement, so that neither is over before the other is there
      const [made] = yield* sql<{ readonly large: string; readonly small: string }>`
        WITH large AS (INSERT INTO bulk_key_changes (change, request_id, selected)
            VALUES ('{"action":"disable"}', 'large', 41) RETURNING id),
          small AS (INSERT INTO bulk_key_changes (change, request_id, selected)
            VALUES ('{"action":"disable"}', 'small', 1) RETURNING id),
          items AS (INSERT INTO bulk_key_change_items (change_id, position, key_id)
            SELECT large.id, n, key FROM large, unnest(${many}::uuid[]) WITH ORDINALITY AS keys (key, n)
            UNION ALL SELECT small.id, n, key FROM small, unnest(${few}::uuid[]) WITH ORDINALITY AS keys (key, n))
        SELECT large.id AS large, small.id AS small FROM large, small`
      const endOf = (id = "") => Effect.map(ended(id), (change) => Date.parse(String(at(change, "ended_at"))))
      assert.isBelow(yield* endOf(made?.small), yield* endOf(made?.large))
    })
  )

  it.effect("of a newer version are left to it, and hold up no other one", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const ids = yield* makeKeys(1, () => ({}))
      yield* sql`INSERT INTO bulk_key_changes (change, request_id) VALUES ('{"action":"paint"}', 'of a newer one')`
      assert.deepInclude(yield* make({ action: "disable", ids }), { state: "done" })
      yield* sql`DELETE FROM bulk_key_changes WHERE request_id = 'of a newer one'`
    })
  )

  it.effect("name the keys that do not exist", () =>
    Effect.gen(function* () {
      const [id = ""] = yield* makeKeys(1, () => ({}))
      const nobody = "00000000-0000-4000-8000-000000000000"
      const change = yield* make({ action: "disable", ids: [nobody, id] })
      assert.deepInclude(at(change, "keys"), { selected: 2, changed: 1, failed: 1 })
      assert.deepInclude(at(change, "failures", 0), { key_id: nobody, message: "No key has this id." })
    })
  )

  it.effect("are refused if the filter selects another number of keys by now", () =>
    Effect.gen(function* () {
      yield* makeKeys(3, (place) => ({ name: `numbered ${place}` }))
      const filter = { q: "numbered" }
      assert.deepStrictEqual(yield* ok("GET", `${path}/selection?q=numbered`), { selected: 3, is_too_many: false })
      const body = { action: "disable", filter, expected_selected: 2 }
      assert.deepInclude(refusalOf(yield* call("POST", path, { body })), {
        status: 409,
        code: "changed_since_read",
        param: "expected_selected"
      })
      assert.deepInclude(yield* make({ ...body, expected_selected: 3 }), { state: "done", filter })
    })
  )

  it.effect("that cannot be are refused with the field", () =>
    Effect.gen(function* () {
      const [id = ""] = yield* makeKeys(1, () => ({}))
      const nobody = "00000000-0000-4000-8000-000000000000"
      const refusals: ReadonlyArray<readonly [body: object, code: string, param: string]> = [
        [{ action: "disable" }, "invalid_bulk_key_change", "filter"],
        [{ action: "disable", ids: [id], filter: {} }, "invalid_bulk_key_change", "filter"],
        [{ action: "disable", filter: { q: "nobody has this" } }, "invalid_bulk_key_change", "filter"],
        [{ action: "disable", ids: [] }, "invalid_request", "ids"],
        [{ action: "tag", ids: [id] }, "invalid_bulk_key_change", "add_tags"],
        [{ action: "disable", ids: [id], add_tags: ["a"] }, "invalid_bulk_key_change", "add_tags"],
        [{ action: "move", ids: [id] }, "invalid_bulk_key_change", "project_id"],
        [{ action: "enable", ids: [id], project_id: nobody }, "invalid_bulk_key_change", "project_id"],
        [{ action: "move", ids: [id], project_id: nobody }, "missing_project", "project_id"],
        [{ action: "rotate", ids: [id] }, "invalid_request", "action"]
      ]
      for (const [body, code, param] of refusals) {
        assert.deepInclude(refusalOf(yield* call("POST", path, { body })), { code, param }, JSON.stringify(body))
      }
      const missing = yield* call("GET", `${path}/${nobody}`)
      assert.deepInclude(refusalOf(missing), { status: 404, code: "not_found" })
    })
  )

  it.effect("are at most ten at a time", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const [id = ""] = yield* makeKeys(1, () => ({}))
      // another process is at them
      yield* sql`INSERT INTO bulk_key_changes (change, request_id, due_at)
        SELECT '{"action":"enable"}', 'of another', now() + interval '1 hour' FROM generate_series(1, 10)`
      const refused = yield* call("POST", path, { body: { action: "enable", ids: [id] } })
      assert.deepInclude(refusalOf(refused), { status: 429, code: "too_many_bulk_key_changes" })
      yield* sql`DELETE FROM bulk_key_changes WHERE request_id = 'of another'`
    })
  )
})
