import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { TerminalStatusSet } from "../../../src/status/store/TerminalStatusSet.ts"
import * as EventFrames from "../../../src/status/stream/EventFrames.ts"

describe("EventFrames", () => {
  it("lets no event id break a frame, and takes back whatever it gave", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 600 }), (eventId) => {
        const lines = EventFrames.status(eventId, "{}").split("\n")
        assert.deepStrictEqual(lines.slice(1), ["event: status", "data: {}", "", ""])
        const id = (lines[0] ?? "").slice("id: ".length)
        assert.isAtMost(id.length, EventFrames.maxLastEventIdLength)
        // as a header carries it
        const header = Buffer.from(id, "utf8")
          .toString("latin1")
          .replace(/^[ \t]+|[ \t]+$/g, "")
        assert.strictEqual(EventFrames.lastEventIdOf(header), EventFrames.frameIdOf(eventId))
      })
    )
  })

  it("gives an ordinary event its own id", () => {
    for (const id of ["e-1", "สำเร็จ ✓", "a b", "x".repeat(512)]) assert.strictEqual(EventFrames.frameIdOf(id), id)
    for (const id of ["", " a", "a\nb", "x".repeat(513)])
      assert.match(EventFrames.frameIdOf(id), /^sha256:[0-9a-f]{64}$/)
  })

  it("keeps ids apart that differ in half of a surrogate pair", () => {
    const ids = ["half \ud83d", "half \ud83e", "half \ufffd"].map(EventFrames.frameIdOf)
    assert.lengthOf([...new Set(ids)], 3)
  })

  it("takes an empty last event id for none", () => {
    assert.isUndefined(EventFrames.lastEventIdOf(""))
    assert.isUndefined(EventFrames.lastEventIdOf(undefined))
  })

  it("writes data on one line", () => {
    assert.deepStrictEqual(JSON.parse(EventFrames.oneLine('{\r\n "a": "b\\nc"\n}')), { a: "b\nc" })
    assert.notMatch(EventFrames.oneLine('{\r\n "a": 1\n}'), /[\r\n]/)
  })
})

describe("TerminalStatusSet", () => {
  it("knows completed and failed, in any case, and nothing blank", () => {
    const terminal = new TerminalStatusSet()
    for (const status of ["completed", "FAILED", " Completed "]) assert.isTrue(terminal.has(status))
    for (const status of ["", " ", null, undefined, "processing"]) assert.isFalse(terminal.has(status))
  })

  it("knows the statuses that it is given, and no others", () => {
    const terminal = new TerminalStatusSet(["Done", "", " "])
    assert.isTrue(terminal.has("DONE"))
    for (const status of ["completed", "", " "]) assert.isFalse(terminal.has(status))
  })
})
