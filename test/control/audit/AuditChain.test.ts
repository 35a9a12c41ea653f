import { assert, describe, layer as describeWith, it } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import * as DatabaseEmbedded from "../../../layers/DatabaseEmbedded.ts"
import first from "../../../migrations/0001_control_state.ts"
import chained from "../../../migrations/0009_operators.ts"
import archived from "../../../migrations/0020_audit_archive.ts"
import { AuditChain, verifyLinks } from "../../../src/control/audit/AuditChain.ts"
import { Database } from "../../../src/services/Database.ts"
import { type ChainedEvent, hashOf } from "../../../src/state/AuditLog.ts"
import * as Fixtures from "../Fixtures.ts"
import { admin, at, call, ok, refusalOf, suite } from "../Listener.ts"

const verification = `${admin}/audit-events/verification`

const shift = (from: number, by: number) => [
  `UPDATE audit_events SET sequence = sequence + 1000 WHERE sequence >= ${from} AND sequence < 1000`,
  `UPDATE audit_events SET sequence = sequence - 1000 + ${by} WHERE sequence >= 1000`
]

const copyOf = (sequence: number, as: number) =>
  `INSERT INTO audit_events
     (sequence, previous_hash, hash, actor_token_id, action, target_type, target_id, before_json, after_json, request_id)
   SELECT ${as}, previous_hash, hash, actor_token_id, action, target_type, target_id, before_json, after_json, request_id
   FROM audit_events WHERE sequence = ${sequence}`

/** Of ten events: what somebody does to the log, and where it shows. */
const tampering: ReadonlyArray<
  readonly [name: string, statements: ReadonlyArray<string>, sequence: number, fault: string]
> = [
  [
    "what was changed",
    [`UPDATE audit_events SET after_json = after_json || '{"disabled":true}' WHERE sequence = 3`],
    3,
    "changed"
  ],
  ["what was done", ["UPDATE audit_events SET action = 'keys:revoke' WHERE sequence = 4"], 4, "changed"],
  ["to what", ["UPDATE audit_events SET target_id = request_id WHERE sequence = 4"], 4, "changed"],
  ["by whom", ["UPDATE audit_events SET actor_token_id = NULL WHERE sequence = 5"], 5, "changed"],
  ["from where", ["UPDATE audit_events SET ip = '' WHERE sequence = 5"], 5, "changed"],
  [
    "when",
    ["UPDATE audit_events SET created_at = created_at + interval '1 microsecond' WHERE sequence = 10"],
    10,
    "changed"
  ],
  ["when, for ever", ["UPDATE audit_events SET created_at = 'infinity' WHERE sequence = 10"], 10, "changed"],
  ["an id", ["UPDATE audit_events SET id = gen_random_uuid() WHERE sequence = 1"], 1, "changed"],
  ["a hash", ["UPDATE audit_events SET hash = decode(repeat('00', 32), 'hex') WHERE sequence = 6"], 6, "changed"],
  ["a link", ["UPDATE audit_events SET previous_hash = hash WHERE sequence = 6"], 6, "not_linked"],
  ["one is taken out", ["DELETE FROM audit_events WHERE sequence = 3"], 3, "missing"],
  ["the first is taken out", ["DELETE FROM audit_events WHERE sequence = 1"], 1, "missing"],
  [
    "one is taken out and the rest closes up",
    ["DELETE FROM audit_events WHERE sequence = 3", ...shift(4, -1)],
    3,
    "not_linked"
  ],
  [
    "two change places",
    [
      "UPDATE audit_events SET sequence = 1000 WHERE sequence = 7",
      "UPDATE audit_events SET sequence = 7 WHERE sequence = 8",
      "UPDATE audit_events SET sequence = 8 WHERE sequence = 1000"
    ],
    7,
    "not_linked"
  ],
  ["one is put in", [...shift(4, 1), copyOf(3, 4)], 4, "not_linked"],
  ["one is put behind the last", [copyOf(10, 11)], 11, "behind_the_head"],
  ["one is put before the first", [copyOf(1, 0)], 11, "behind_the_head"],
  ["the end is cut off", ["DELETE FROM audit_events WHERE sequence > 8"], 9, "missing"],
  ["everything is gone", ["DELETE FROM audit_events"], 1, "missing"],
  [
    "the head names another hash",
    ["UPDATE audit_chain SET hash = decode(repeat('00', 32), 'hex')"],
    10,
    "not_the_head"
  ],
  ["the head is set back", ["UPDATE audit_chain SET sequence = 9"], 9, "not_the_head"],
  [
    "the beginning is cut off, and no event says so",
    [
      `UPDATE audit_chain SET (archived_sequence, archived_hash) = (SELECT sequence, hash FROM audit_events WHERE sequence = 3)`,
      "DELETE FROM audit_events WHERE sequence <= 3"
    ],
    4,
    "not_archived"
  ],
  ["the head is gone", ["DELETE FROM audit_chain"], 1, "no_head"]
]

suite("Audit chain", (it) => {
  it.effect("numbers events without a gap, each with the hash of the one before, however many come at once", () =>
    Effect.gen(function* () {
      yield* Effect.forEach(Array.from({ length: 9 }), () => Fixtures.key, { concurrency: "unbounded" })
      // a mutation of the very token that others are the author's of
      yield* Effect.all([Fixtures.token, call("DELETE", `${admin}/model-prices/none`)], { concurrency: 2 })
      const events = yield* ok("GET", `${admin}/audit-events`)
      assert(Array.isArray(events))
      const links = events
        .map((event) => [at(event, "sequence"), at(event, "previous_hash"), at(event, "hash")])
        .sort(([a], [b]) => Number(a) - Number(b))
      assert.deepStrictEqual(
        links.map(([sequence]) => sequence),
        Array.from({ length: 10 }, (_, n) => n + 1)
      )
      assert.deepStrictEqual(
        links.map(([, previous]) => previous),
        ["0".repeat(64), ...links.slice(0, -1).map(([, , hash]) => hash)]
      )
      assert.deepStrictEqual(yield* ok("GET", verification), {
        intact: true,
        verified_through: 10,
        next_after: null,
        head: { sequence: 10, hash: String(links[9]?.[2]) },
        archived: null,
        fault: null
      })
    })
  )

  it.effect("a verification is done in parts", () =>
    Effect.gen(function* () {
      const parts: Array<unknown> = []
      let after: unknown = 0
      while (after !== null && parts.length < 10) {
        const part = yield* ok("GET", `${verification}?limit=4&after=${after}`)
        after = at(part, "next_after")
        parts.push([at(part, "intact"), at(part, "verified_through"), after])
      }
      assert.deepStrictEqual(parts, [
        [true, 4, 4],
        [true, 8, 8],
        [true, 10, null]
      ])
      assert.strictEqual(at(yield* ok("GET", `${verification}?after=999`), "intact"), true)
      for (const query of ["limit=0", "limit=10001", "after=-1", "after=x"]) {
        assert.strictEqual(refusalOf(yield* call("GET", `${verification}?${query}`)).status, 422, query)
      }
    })
  )

  it.effect.each(tampering)("shows it when somebody changes: %s", ([name, statements, sequence, fault]) =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      yield* sql`CREATE TABLE kept_events AS TABLE audit_events`
      yield* sql`CREATE TABLE kept_head AS TABLE audit_chain`
      yield* Effect.forEach(statements, (statement) => sql.unsafe(statement))
      const broken = yield* ok("GET", verification)
      yield* sql`TRUNCATE audit_events`
      yield* sql`INSERT INTO audit_events SELECT * FROM kept_events`
      yield* sql`DELETE FROM audit_chain`
      yield* sql`INSERT INTO audit_chain SELECT * FROM kept_head`
      yield* sql`DROP TABLE kept_events, kept_head`
      assert.deepInclude(broken, { intact: false, next_after: null }, name)
      assert.deepInclude(at(broken, "fault"), { sequence, fault }, name)
      assert.strictEqual(at(yield* ok("GET", verification), "intact"), true)
    })
  )
})

describe("Audit chain", () => {
  const event = (
    sequence: number,
    previousHash: Uint8Array,
    targetId = "t"
  ): ChainedEvent & { readonly hash: Uint8Array } => {
    const linked = {
      sequence,
      previousHash,
      id: `id ${sequence}`,
      micros: 1,
      actorTokenId: null,
      action: "a",
      targetType: "k",
      targetId,
      before: null,
      after: "{}",
      requestId: "r",
      ip: null,
      userAgent: null
    }
    return { ...linked, hash: hashOf(linked) }
  }

  it("follows from a link to the last event, and names the first that is wrong", () => {
    const zero = new Uint8Array(32)
    const one = event(1, zero)
    const [two, forged] = [event(2, one.hash), event(2, one.hash, "somebody else's")]
    const three = event(3, two.hash)
    const start = { sequence: 0, hash: zero }
    assert.deepStrictEqual(verifyLinks(start, [one, two, three], 3), { sequence: 3, hash: three.hash })
    assert.deepStrictEqual(verifyLinks({ sequence: 1, hash: one.hash }, [two], 2), { sequence: 2, hash: two.hash })
    assert.deepStrictEqual(verifyLinks(start, [one, one, two], 3), { sequence: 1, event_id: "id 1", fault: "repeated" })
    assert.deepStrictEqual(verifyLinks(start, [one, two], 3), { sequence: 3, event_id: null, fault: "missing" })
    // right in itself: the next one tells
    assert.deepStrictEqual(verifyLinks(start, [one, forged, three], 3), {
      sequence: 3,
      event_id: "id 3",
      fault: "not_linked"
    })
  })

  it("writes no two events alike: a field cannot flow over into the next", () => {
    const zero = new Uint8Array(32)
    const base = event(1, zero)
    const others = [
      { ...base, action: "ak", targetType: "" },
      { ...base, action: "a,1:k", targetType: "" },
      { ...base, ip: "-" },
      { ...base, ip: "" },
      { ...base, ip: "x", userAgent: null },
      { ...base, ip: null, userAgent: "x" },
      { ...base, after: null, before: "{}" }
    ]
    assert.strictEqual(new Set([base, ...others].map((one) => Buffer.from(hashOf(one)).toString("hex"))).size, 8)
  })
})

describeWith(DatabaseEmbedded.layer, { excludeTestServices: true })("Audit chain", (it) => {
  it.effect("the migration chains the events that were there before it", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const migrate = (migration: typeof first) => Effect.provideService(migration, SqlClient.SqlClient, sql)
      yield* migrate(first)
      yield* sql`INSERT INTO operator_tokens (token_prefix, token_hash) VALUES ('op_live_', sha256('x'))`
      yield* sql`
        INSERT INTO audit_events (actor_token_id, action, target_type, target_id, before_json, after_json, request_id, ip, created_at)
        SELECT t.id, 'keys:update', 'key', 'Schlüssel ' || n, CASE WHEN n > 1 THEN '{"b":[1.50, null],"a":"ä\\n"}'::jsonb END,
          NULL, 'r', CASE WHEN n = 2 THEN '192.0.2.1' END, now() + n * interval '1 microsecond'
        FROM operator_tokens t, generate_series(1, 3) AS n`
      yield* migrate(chained)
      yield* migrate(archived)
      const chain = yield* AuditChain
      const { fault, intact, verified_through } = yield* chain.verify({})
      assert.deepStrictEqual({ fault, intact, verified_through }, { fault: null, intact: true, verified_through: 3 })
    }).pipe(Effect.provide(AuditChain.layer))
  )
})
