import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { Database } from "../../../src/services/Database.ts"
import { admin, at, call, ok, refusalOf, suite } from "../Listener.ts"

const keys = `${admin}/keys`
const projects = `${admin}/projects`

const create = (body: object) => Effect.map(ok("POST", keys, { body }), (made) => Object(at(made, "key")))
const listed = (path: string, query: Record<string, string>) => call("GET", `${path}?${new URLSearchParams(query)}`)
const found = (path: string, query: Record<string, string>) =>
  Effect.map(listed(path, query), ({ json, status, text }) => {
    assert.strictEqual(status, 200, text)
    assert(Array.isArray(json))
    return json.map((row) => at(row, "name"))
  })

suite("Finding keys and projects", (it) => {
  it.effect("keys and projects have a description, an owner's address and tags, until they are cleared", () =>
    Effect.gen(function* () {
      const labels = { description: "the nightly job", owner_email: "ada@example.com", tags: ["nightly", "büro"] }
      const none = { description: null, owner_email: null, tags: [] }
      const key = yield* create({ owner_type: "individual", ...labels })
      const project = yield* ok("POST", projects, { body: { name: "Labelled", ...labels } })
      for (const [path, made] of [
        [`${keys}/${key.id}`, key],
        [`${projects}/${at(project, "id")}`, project]
      ] as const) {
        assert.deepInclude(made, labels)
        assert.deepInclude(yield* ok("PATCH", path, { body: { tags: ["nightly"] } }), { ...labels, tags: ["nightly"] })
        const cleared = yield* ok("PATCH", path, { body: { description: null, owner_email: null, tags: null } })
        assert.deepInclude(cleared, none)
        const refused: ReadonlyArray<readonly [object, string]> = [
          [{ description: "" }, "description"],
          [{ owner_email: "ada" }, "owner_email"],
          [{ tags: Array.from({ length: 21 }, (_, index) => `t${index}`) }, "tags"],
          [{ tags: ["a", "a"] }, "tags"],
          [{ tags: ["a", "b\nc"] }, "tags.1"]
        ]
        for (const [body, param] of refused)
          assert.deepInclude(refusalOf(yield* call("PATCH", path, { body })), { status: 422, param })
      }
    })
  )

  it.effect("a search finds keys by the beginnings of words in name, prefix, owner and tags", () =>
    Effect.gen(function* () {
      const team_id = "finding"
      const ada = yield* create({
        owner_type: "individual",
        team_id,
        name: "Ada's laptop",
        owner_email: "ada.lovelace@math.example",
        tags: ["research", "Zürich"]
      })
      yield* create({ owner_type: "individual", team_id, name: "build-server 8e12ab", tags: ["ci"] })
      const search = (q: string) => found(keys, { team_id, q })
      for (const q of ["ada", "ADA lap", "lovelace", "math.example", "res", "zür", ada.key_prefix, "laptop, ada"])
        assert.deepStrictEqual(yield* search(q), ["Ada's laptop"], q)
      assert.deepStrictEqual(yield* search("server-8e12"), ["build-server 8e12ab"])
      assert.deepStrictEqual(yield* search("velace"), [])
      assert.deepStrictEqual(yield* search("ada server"), [])
      for (const q of ["'", "\\", "!!", ":*", "& |", "%", "x".repeat(200)]) assert.deepStrictEqual(yield* search(q), [])
      const whole = `rk_live_${"0".repeat(72)}`
      for (const q of ["", "x".repeat(201), whole, `is it ${whole}?`])
        assert.deepInclude(refusalOf(yield* listed(keys, { q })), { status: 422, param: "q" })
      assert.deepStrictEqual(yield* found(keys, { team_id, tag: "ci" }), ["build-server 8e12ab"])
      assert.deepStrictEqual(yield* found(keys, { team_id, tag: "c" }), [])
    })
  )

  it.effect("a search finds projects, which are listed by name, page by page", () =>
    Effect.gen(function* () {
      for (const name of ["quarry b", "quarry a", "quarry c"])
        yield* ok("POST", projects, { body: { name, tags: [`stone ${name}`] } })
      assert.deepStrictEqual(yield* found(projects, { q: "quar" }), ["quarry a", "quarry b", "quarry c"])
      assert.deepStrictEqual(yield* found(projects, { tag: "stone quarry b" }), ["quarry b"])
      const first = yield* listed(projects, { q: "quarry", limit: "2" })
      const cursor = first.headers["x-next-cursor"] ?? ""
      assert.deepStrictEqual(yield* found(projects, { q: "quarry", limit: "2", cursor }), ["quarry c"])
      assert.deepInclude(refusalOf(yield* listed(projects, { limit: "2", cursor })), { status: 422, param: "cursor" })
    })
  )

  it.effect("keys are listed by their state", () =>
    Effect.gen(function* () {
      const team_id = "states"
      const make = (name: string, body: object = {}) => create({ owner_type: "individual", team_id, name, ...body })
      yield* make("fresh", { expires_at: "2999-01-01T00:00:00Z" })
      const off = yield* make("off")
      yield* make("over", { expires_at: "2020-01-01T00:00:00Z" })
      const gone = yield* make("gone")
      yield* ok("POST", `${keys}/${off.id}/disable`)
      yield* ok("POST", `${keys}/${gone.id}/revoke`)
      for (const [state, name] of [
        ["active", "fresh"],
        ["disabled", "off"],
        ["expired", "over"],
        ["revoked", "gone"]
      ] as const)
        assert.deepStrictEqual(yield* found(keys, { team_id, state }), [name])
      assert.deepInclude(refusalOf(yield* listed(keys, { state: "tired" })), { status: 422, param: "state" })
    })
  )

  it.effect("each order goes page by page in both directions, and a cursor of another query is refused", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const team_id = "orders"
      const names = ["a", "b", "c", "d", "e"] as const
      for (const [index, name] of names.entries()) {
        const key = yield* create({
          owner_type: "individual",
          team_id,
          name,
          expires_at: index < 3 ? `2999-01-0${3 - index}T00:00:00.000123Z` : null
        })
        if (index > 1)
          yield* sql`UPDATE api_keys SET last_used_at = '2026-05-05T12:00:00.123456Z'::timestamptz + ${index % 4}::int * interval '1 us'
            WHERE id = ${key.id}`
        const month = index < 2 ? "-infinity" : index < 3 ? "2026-01-01" : `${new Date().toISOString().slice(0, 8)}01`
        yield* sql`UPDATE key_spend SET month = ${month}, cost_nanos = ${index * 1_500_000_000} WHERE key_id = ${key.id}`
      }
      const pages = Effect.fnUntraced(function* (query: Record<string, string>) {
        const seen: Array<unknown> = []
        let cursor: string | undefined
        do {
          const page = yield* listed(keys, { team_id, ...query, limit: "2", ...(cursor && { cursor }) })
          assert.strictEqual(page.status, 200, page.text)
          assert(Array.isArray(page.json))
          seen.push(...page.json.map((row) => at(row, "name")))
          cursor = page.headers["x-next-cursor"]
        } while (cursor !== undefined)
        return seen.join("")
      })
      assert.strictEqual(yield* pages({}), "edcba")
      assert.strictEqual(yield* pages({ sort_by: "created_at", sort_order: "asc" }), "abcde")
      // a and b were never used, d and e never expire: their order is that of their ids
      assert.match(yield* pages({ sort_by: "last_used_at" }), /^dce(ab|ba)$/)
      assert.match(yield* pages({ sort_by: "last_used_at", sort_order: "asc" }), /^(ab|ba)ecd$/)
      assert.match(yield* pages({ sort_by: "expires_at" }), /^cba(de|ed)$/)
      assert.match(yield* pages({ sort_by: "expires_at", sort_order: "desc" }), /^(de|ed)abc$/)
      assert.strictEqual(yield* pages({ sort_by: "spend" }), "edcba")
      assert.strictEqual(yield* pages({ sort_by: "spend", sort_order: "asc" }), "abcde")
      const spend = yield* ok("GET", `${keys}?team_id=${team_id}&sort_by=spend`)
      assert(Array.isArray(spend))
      assert.deepStrictEqual(
        spend.map((row) => at(row, "spend_this_month_usd")),
        [6, 4.5, 0, 0, 0]
      )

      const { headers } = yield* listed(keys, { team_id, sort_by: "spend", limit: "2" })
      const cursor = headers["x-next-cursor"] ?? ""
      const position = JSON.parse(Buffer.from(cursor, "base64url").toString())
      const forged = (after: ReadonlyArray<string>) =>
        Buffer.from(JSON.stringify({ ...position, after })).toString("base64url")
      for (const query of [
        { team_id, sort_by: "created_at", cursor },
        { team_id, sort_by: "spend", sort_order: "asc", cursor },
        { team_id: "others", sort_by: "spend", cursor },
        { team_id, sort_by: "spend", cursor: forged(["2026-13-01", "1", "x"]) },
        { team_id, sort_by: "spend", cursor: forged([]) },
        { team_id, sort_by: "spend", cursor: "e30" }
      ])
        assert.deepInclude(refusalOf(yield* listed(keys, query)), { status: 422, param: "cursor" })
    })
  )

  it.effect("what a key has spent this month follows the sums of its requests", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const key = yield* create({ owner_type: "individual", team_id: "spenders", name: "spender" })
      const add = (bucket: string, part: string, nanos: number) => sql`
        INSERT INTO usage_rollups (grain, part, bucket, series, key_id, route, provider, status_code, request_count, reported_count,
          estimated_count, guardrail_block_count, expensive_request_count, input_tokens, output_tokens, total_tokens,
          cached_input_tokens, cache_write_tokens, reasoning_tokens, cost_nanos, total_latency_ms, fallback_count)
        VALUES ('day', ${part}, ${bucket}::timestamptz, md5(${key.id})::uuid, ${key.id}, 'r', 'p', 200, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
          ${nanos}, 1, 0)
        ON CONFLICT (grain, part, bucket, series) DO UPDATE SET cost_nanos = usage_rollups.cost_nanos + excluded.cost_nanos`
      const spent = Effect.map(ok("GET", `${keys}?team_id=spenders`), (rows) => at(rows, 0, "spend_this_month_usd"))
      const until = new Date(Date.now() - 300_000).toISOString()
      yield* sql`UPDATE usage_rolled SET until = ${until}::timestamptz`
      for (const path of [`${keys}?team_id=spenders`, `${keys}/${key.id}`]) {
        const rows = [yield* ok("GET", path)].flat()
        assert.strictEqual(at(rows, 0, "spend_until"), until, path)
      }
      const today = new Date().toISOString().slice(0, 10)
      assert.strictEqual(yield* spent, 0)
      yield* add("2026-01-31T00:00:00Z", "untasked", 9e9)
      assert.strictEqual(yield* spent, 0)
      yield* add(`${today}T00:00:00Z`, "untasked", 1e9)
      yield* add(`${today}T00:00:00Z`, "tasked", 2e9)
      yield* add(`${today}T00:00:00Z`, "task", 2e9)
      yield* add(`${today}T00:00:00Z`, "untasked", 4e9)
      assert.strictEqual(yield* spent, 7)
      // late records of a month that is over
      yield* add("2026-01-31T00:00:00Z", "untasked", 9e9)
      assert.strictEqual(yield* spent, 7)
    })
  )
})
