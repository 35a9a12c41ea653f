import { assert, describe, it } from "@effect/vitest"
import { parseExact } from "../../../src/portal/api/exactJson.ts"
import { deadCounts } from "../../../src/portal/pages/board/alarms.ts"
import { compareLetters } from "../../../src/portal/pages/dead-letters/groups/compareLetters.ts"
import { completionsOf } from "../../../src/portal/pages/tasks/completions.ts"
import { queryOf, withPart } from "../../../src/portal/pages/tasks/searchText.ts"
import { flatten } from "../../../src/portal/shared/tasks/flatten.ts"
import { withoutSecrets } from "../../../src/portal/shared/tasks/hidden.ts"
import { letterWords } from "../../../src/portal/shared/tasks/meanings.ts"
import { planBody } from "../../../src/portal/shared/tasks/replayPlan.ts"

describe("the messages of a dead-letter queue", () => {
  const index = { queue_name: "q.dlq", indexed_count: 2, unknown_count: 0, replayed_count: 0, replaced_count: 0 }
  const letters = { ...index, open_count: 0, archived_count: 0, last_indexed_at: null }
  const counts = (dead: number, given: Partial<typeof letters>) =>
    deadCounts({ dead, dead_letter_queue: "q.dlq" }, [
      { ...letters, ...given, message_count: dead, verdict: "agrees", explanation: "" }
    ])

  it("wait for somebody only until they are edited, replayed or archived", () => {
    assert.deepStrictEqual(counts(2, { replayed_count: 1, replaced_count: 1 }), { open: 0, settled: 2 })
    assert.deepStrictEqual(counts(2, { open_count: 1, replayed_count: 1 }), { open: 1, settled: 1 })
    assert.deepStrictEqual(counts(1, { indexed_count: 0, archived_count: 1 }), { open: 0, settled: 1 })
    assert.deepStrictEqual(counts(2, { unknown_count: 2 }), { open: 2, settled: 0 })
  })

  it("wait for somebody where they have no record", () => {
    assert.deepStrictEqual(counts(3, { open_count: 2 }), { open: 3, settled: 0 })
    assert.deepStrictEqual(deadCounts({ dead: 3, dead_letter_queue: "q.dlq" }, []), { open: 3, settled: 0 })
    assert.deepStrictEqual(deadCounts({ dead: 3, dead_letter_queue: "q.dlq" }, undefined), { open: null, settled: 0 })
    assert.deepStrictEqual(deadCounts({ dead: null, dead_letter_queue: "q.dlq" }, []), { open: 0, settled: 0 })
  })
})

describe("the search for tasks", () => {
  it.each([
    ["book-17", { q: "book-17" }],
    [
      'type:read status:failed since:2h error:"E CONN" attr.book=42',
      { type: "read", status: "failed", since: "2h", error: "E CONN", "attr.book": "42" }
    ],
    ["two words status:failed", { q: "two words", status: "failed" }],
    ["see https://example.org/a", { q: "see https://example.org/a" }],
    ["status: type:x", { type: "x" }],
    ['q:"not closed', { q: "not closed" }],
    ["", {}]
  ])("%s", (text, query) => assert.deepStrictEqual(queryOf(text), query))

  it("changes one part and leaves the others", () => {
    assert.strictEqual(withPart("type:x status:a word", "status", "b c"), 'type:x word status:"b c"')
    assert.strictEqual(withPart("type:x status:a", "status", undefined), "type:x")
  })

  it("completes names, and the values that are known", () => {
    const known = { status: ["failed", "completed"], since: ["2h"], "attr.book": ["a b"] }
    assert.deepStrictEqual(completionsOf("type:x s", known), ["type:x status:", "type:x since:"])
    assert.deepStrictEqual(completionsOf("status:fa", known), ["status:failed "])
    assert.deepStrictEqual(completionsOf('word attr.book:"a', known), ['word attr.book:"a b" '])
    assert.deepStrictEqual(
      completionsOf("status:failed ", known),
      Object.keys(known).map((name) => `status:failed ${name}:`)
    )
  })

  it("reads a long text in linear time", () => {
    const begun = performance.now()
    queryOf('a:"'.repeat(200_000))
    queryOf(":".repeat(200_000))
    assert.isAtMost(performance.now() - begun, 200)
  })
})

describe("what a task was given", () => {
  it("has no text that is a secret by its name or a name around it, and all else", () => {
    const body = parseExact(
      '{"to":"a","Api-Key":"k","auth":{"accessToken":"t","max_tokens":7},"credentials":[{"user":"u","on":true,"id":12345678901234567890}],"password":""}'
    )
    const { count, names, value } = withoutSecrets(body)
    assert.strictEqual(
      JSON.stringify(value),
      '{"to":"a","Api-Key":"(hidden)","auth":{"accessToken":"(hidden)","max_tokens":7},"credentials":[{"user":"(hidden)","on":true,"id":12345678901234567890}],"password":""}'
    )
    assert.deepStrictEqual([names, count], [["Api-Key", "accessToken", "credentials"], 3])
    assert.deepStrictEqual(withoutSecrets("token"), { value: "token", names: [], count: 0 })
  })
})

describe("an edit", () => {
  it("keeps every digit of numbers that JavaScript would round", () => {
    const text = '{"id":9007199254740993,"n":1.5,"list":[12345678901234567890]}'
    assert.strictEqual(JSON.stringify(parseExact(text)), text)
    assert.deepStrictEqual(Object.keys(flatten(parseExact(text))), ["id", "n", "list[0]"])
  })

  it("is compared member by member", () => {
    assert.deepStrictEqual(flatten({ a: { b: [1, {}] }, c: null }), { "a.b[0]": 1, "a.b[1]": {}, c: null })
    assert.deepStrictEqual(flatten("text"), { "(whole)": "text" })
  })
})

describe("a plan", () => {
  it("leaves to the server what is empty, and what is no number", () => {
    assert.deepStrictEqual(
      planBody({ steps: "1 · 10, 50 all", rate: "2.5", stop: "never", wait: "", begin: "" }, false),
      {
        steps: [1, 10, 50],
        rate: 2.5,
        stop_after: null
      }
    )
    assert.deepStrictEqual(
      planBody({ steps: "", rate: "fast", stop: "", wait: "60", begin: "2026-01-31T04:00" }, true),
      {
        rate: "fast",
        wait_seconds: 60,
        begin_at: "2026-01-31T04:00:00.000Z"
      }
    )
  })
})

describe("a dead letter", () => {
  it("is called handled with a proof alone", () => {
    assert.deepStrictEqual(letterWords({ state: "replayed" }), ["waiting", "published, not proved yet"])
    assert.deepStrictEqual(letterWords({ state: "replayed", replay_outcome: { outcome: "published" } })[0], "waiting")
    assert.deepStrictEqual(letterWords({ state: "replayed", replay_outcome: { outcome: "handled" } }), [
      "good",
      "handled"
    ])
    assert.deepStrictEqual(letterWords({ state: "replayed", replay_outcome: { outcome: "failed_again" } })[0], "bad")
  })

  it("is compared with others: what differs comes first", () => {
    const letter = (n: number) => ({
      body: { kind: "a", n },
      headers: { h: 1 },
      exception_message: "e",
      retry_attempt: 0
    })
    const { members } = compareLetters([letter(1), letter(2)], false)
    assert.deepStrictEqual(
      members.map(({ isSame, path }) => [path, isSame]),
      [
        ["body.n", false],
        ["body.kind", true],
        ["headers.h", true],
        ["exception_message", true],
        ["retry_attempt", true]
      ]
    )
  })

  it("are compared also where they are secrets, which are shown on request", () => {
    const letter = (api_key: string) => ({
      body: { api_key, to: "a" },
      headers: {},
      exception_message: "",
      retry_attempt: 0
    })
    const shown = (withSecrets: boolean) => compareLetters([letter("sk-1"), letter("sk-2")], withSecrets)
    assert.deepStrictEqual(shown(false).members[0], {
      path: "body.api_key",
      values: ["(hidden)", "(hidden)"],
      isSame: false
    })
    assert.deepStrictEqual(shown(false).hidden, { count: 2, names: ["api_key"] })
    assert.deepStrictEqual(shown(true).members[0]?.values, ["sk-1", "sk-2"])
  })
})
