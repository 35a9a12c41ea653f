import { assert, describe, it } from "@effect/vitest"
import { isLive, matcherOf, rowOf } from "../../../src/portal/pages/requests/list/liveRow.ts"
import { arrive, emptyTail, joined, mostRows, record, release } from "../../../src/portal/pages/requests/list/tail.ts"

const rowsOf = (...ids: ReadonlyArray<string>) =>
  ids.flatMap((request_id) => rowOf({ request_id, at: 1_000, status: 200, latency_ms: 400, model: "gpt-5" }) ?? [])

const stored = (id: string) => rowsOf(id).map((row) => ({ ...row, id: `stored ${id}`, key_name: "ada" }))

const idsOf = (rows: ReadonlyArray<{ readonly request_id: string }>) => rows.map(({ request_id }) => request_id)
const nothing: ReadonlySet<string> = new Set()

describe("the tail of requests", () => {
  it("shows what comes at the top, and each request once", () => {
    const first = arrive(emptyTail, { rows: rowsOf("b", "a"), undescribed: 0, isHeld: false, known: nothing })
    const second = arrive(first, { rows: rowsOf("c", "b"), undescribed: 0, isHeld: false, known: nothing })
    assert.deepStrictEqual(idsOf(second.shown), ["c", "b", "a"])
    const known = arrive(second, { rows: rowsOf("d"), undescribed: 0, isHeld: false, known: new Set(["d"]) })
    assert.strictEqual(known, second)
  })

  it("lets rows wait while the reader is at work, and shows them in their order", () => {
    const shown = arrive(emptyTail, { rows: rowsOf("a"), undescribed: 0, isHeld: false, known: nothing })
    const one = arrive(shown, { rows: rowsOf("b"), undescribed: 0, isHeld: true, known: nothing })
    const two = arrive(one, { rows: rowsOf("c"), undescribed: 0, isHeld: true, known: nothing })
    assert.deepStrictEqual([idsOf(two.shown), idsOf(two.waiting)], [["a"], ["c", "b"]])
    assert.deepStrictEqual(idsOf(release(two).shown), ["c", "b", "a"])
    const next = arrive(two, { rows: rowsOf("d"), undescribed: 0, isHeld: false, known: nothing })
    assert.deepStrictEqual([idsOf(next.shown), idsOf(next.waiting)], [["d", "c", "b", "a"], []])
  })

  it("counts what the feed does not describe, and what is too much to show", () => {
    const many = rowsOf(...Array.from({ length: mostRows + 5 }, (_, place) => `r${place}`))
    const tail = arrive(emptyTail, { rows: many, undescribed: 980, isHeld: false, known: nothing })
    assert.strictEqual(tail.shown.length, mostRows)
    assert.strictEqual(tail.leftOut, 985)
    assert.strictEqual(tail.shown[0]?.request_id, "r0")
  })

  it("puts the record of a request in the place of what the feed said", () => {
    const tail = arrive(emptyTail, { rows: rowsOf("b", "a"), undescribed: 0, isHeld: false, known: nothing })
    const recorded = record(tail, stored("a"))
    assert.deepStrictEqual(recorded.shown.map(isLive), [true, false])
    assert.deepStrictEqual(idsOf(recorded.shown), ["b", "a"])
    assert.strictEqual(record(recorded, stored("z")), recorded)
    assert.deepStrictEqual(idsOf(joined(recorded, [...stored("a"), ...stored("0")])), ["b", "a", "0"])
  })

  it("sorts rows of the feed out by what the feed says, and asks the records for the rest", () => {
    const [row] = rowsOf("a")
    assert(row !== undefined)
    assert.isTrue(matcherOf({})?.(row))
    assert.isTrue(matcherOf({ model: "gpt-5", status: "success", min_latency_ms: 400 })?.(row))
    assert.isFalse(matcherOf({ model: "other" })?.(row))
    assert.isFalse(matcherOf({ min_latency_ms: 401 })?.(row))
    assert.isUndefined(matcherOf({ session_id: "s" }))
    assert.isUndefined(rowOf({ request_id: "of another version" }))
  })
})
