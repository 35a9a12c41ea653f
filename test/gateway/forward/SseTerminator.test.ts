import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import * as SseTerminator from "../../../src/gateway/forward/SseTerminator.ts"

describe("SseTerminator", () => {
  it.each([
    "data: [DONE]\n",
    "data:[DONE]\r\n",
    "event: message_stop\n",
    "event:message_stop\n",
    "event: response.completed\r\n",
    "event: response.incomplete\n",
    "event: response.failed\n",
    "data: [DONE]\r",
    "event: message_stop\r"
  ])("%j is the last, in the chunk that ends its line, however the stream is cut", (last) => {
    fc.assert(
      fc.property(said, cuts, (before, at) => {
        // A carriage return ends the line, whether or not a line feed follows.
        const line = last.replace("\r\n", "\r")
        const stream = `${before}${last}\n`
        const chunks = split(stream, at)
        const follows = SseTerminator.makeDetector()
        const found = chunks.findIndex((chunk) => follows(chunk))
        const seen = Buffer.concat(chunks.slice(0, found + 1)).length
        const ends = Buffer.byteLength(before + line)
        assert.isAtLeast(seen, ends)
        assert.isBelow(Buffer.concat(chunks.slice(0, found)).length, ends)
      })
    )
  })

  it("what only looks like it is not", () => {
    fc.assert(
      fc.property(said, cuts, (stream, at) => {
        const follows = SseTerminator.makeDetector()
        assert.isFalse(split(stream, at).some((chunk) => follows(chunk)))
      })
    )
  })

  it("until the stream ends, nothing that may come behind it makes it another", () => {
    const stream =
      'data: {}\n\nevent: response.completed\r\ndata: {"a":1}\n\n\n: a comment, longer than a last line\ndata: [DONE]\n\n'
    fc.assert(
      fc.property(cuts, (at) => {
        const follows = SseTerminator.makeDetector()
        const told = split(stream, at).map((chunk) => follows(chunk))
        assert.isFalse(told.slice(told.indexOf(true)).includes(false))
      })
    )
  })

  it("where another event follows, it was not the last", () => {
    const turn = 'event: message_start\ndata: {"a":1}\n\n'
    const stop = "event: message_stop\ndata: {}\n\n"
    fc.assert(
      fc.property(fc.nat(3), cuts, (turns, at) => {
        const follows = SseTerminator.makeDetector()
        const told = split(`${stop}${`${turn}${stop}`.repeat(turns)}${turn}`, at).map((chunk) => follows(chunk))
        assert.isFalse(told.at(-1))
      })
    )
    const follows = SseTerminator.makeDetector()
    assert.deepStrictEqual(
      [turn, stop, turn, `${turn}${stop}`, `: comment\n${stop}${turn}`, stop].map((chunk) =>
        follows(Buffer.from(chunk))
      ),
      [false, true, false, true, false, true]
    )
  })
})

/** Whole lines with anything in them but the last ones. */
const said = fc
  .array(
    fc.constantFrom(
      "",
      ": comment",
      'data: {"text":"data: [DONE]"}',
      "data: [DONE] now",
      "data: [DON",
      " data: [DONE]",
      "event: message_stopped",
      "event: message_delta",
      "data: message_stop",
      `data: {"text":"${"héllo ☃ ".repeat(20)}"}`
    )
  )
  .map((lines) => lines.map((line) => `${line}\n`).join(""))

const cuts = fc.array(fc.nat(400), { maxLength: 60 })

const split = (text: string, at: ReadonlyArray<number>): ReadonlyArray<Buffer> => {
  const bytes = Buffer.from(text)
  const places = [...new Set([0, ...at.filter((place) => place < bytes.length), bytes.length])].sort((a, b) => a - b)
  return places.slice(1).map((end, index) => bytes.subarray(places[index], end))
}
