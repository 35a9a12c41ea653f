import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import * as SseEventLimit from "../../../src/gateway/forward/SseEventLimit.ts"

/** In which chunk an event is too long, or -1. */
const outgrows = (most: number, ...chunks: ReadonlyArray<string>) => {
  const follows = SseEventLimit.makeDetector(most)
  return chunks.findIndex((chunk) => follows(Buffer.from(chunk)))
}

describe("the size of an event", () => {
  it.each([
    ["an event of just the size", 7, ["data: 1\n\n", "data: 2\n\n"], -1],
    ["one more", 7, ["data: 1\n\ndata: 22\n\n"], 0],
    ["an event in pieces", 7, ["data", ": 1", "2\n\n"], 2],
    ["an event that never ends", 7, ["data: 1", "2"], 1],
    ["several lines of one event, their breaks counted", 11, ["a: 12\nb: 34\n\n"], -1],
    ["and one byte more", 10, ["a: 12\nb: 34\n\n"], 0],
    ["CRLF ends an event as well", 9, ["data: 1\r\n\r", "\ndata: 2\r\n\r\n"], -1],
    ["CR ends an event as well", 7, ["data: 1\r\r", "data: 2\r\r"], -1],
    ["CR, one event too long", 7, ["data: 1\r\rdata: 22\r\r"], 0],
    ["CRLF, one event too long", 9, ["data: 1\r\n\r\n", "data: 2345\r\n\r\n"], 1]
  ])("%s", (_, most, chunks, expected) => {
    assert.strictEqual(outgrows(most, ...chunks), expected)
  })

  it("does not depend on how the stream is cut", () => {
    const line = fc.array(fc.constantFrom("a", "é", ":", " "), { maxLength: 6 }).map((parts) => parts.join(""))
    const stream = fc
      .array(fc.tuple(line, fc.constantFrom("\n", "\r\n", "\r")), { maxLength: 12 })
      .map((lines) => lines.flat().join(""))
    fc.assert(
      fc.property(stream, fc.array(fc.nat(60)), fc.nat(20), (text, cuts, most) => {
        const bytes = Buffer.from(text)
        const places = [0, ...cuts.map((cut) => Math.min(cut, bytes.length)), bytes.length].sort((a, b) => a - b)
        const follows = SseEventLimit.makeDetector(most)
        let cut = false
        for (let i = 1; i < places.length; i++) cut ||= follows(bytes.subarray(places[i - 1], places[i]))
        assert.strictEqual(cut, SseEventLimit.makeDetector(most)(bytes))
      }),
      { numRuns: 500 }
    )
  })
})
