import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import * as SseLines from "../../src/http/SseLines.ts"
import { split, splitting } from "../gateway/Streams.ts"

const mark = Buffer.from("\ufeff")

/** Anything with line ends of all kinds, and bytes that begin like a byte order mark. */
const stream = fc
  .array(
    fc.oneof(
      fc.constantFrom("\n", "\r\n", "\r", "data: 1", "é", "").map((text) => Buffer.from(text)),
      fc.constantFrom(mark, mark.subarray(0, 1), mark.subarray(0, 2))
    ),
    { maxLength: 20 }
  )
  .map((parts) => Buffer.concat(parts))

/** The lines that have ended, then the rest. */
const linesOf = (chunks: ReadonlyArray<Buffer>): ReadonlyArray<string> => {
  const scanner = new SseLines.LineScanner()
  const lines: Array<string> = []
  let line = ""
  for (const chunk of chunks) {
    scanner.scan(chunk, (bytes, from, end, isEnd) => {
      line += bytes.toString("latin1", from, end)
      if (!isEnd) return
      lines.push(line)
      line = ""
    })
  }
  return [...lines, line]
}

describe("SseLines", () => {
  it("a line ends with LF, CR LF or CR, and a mark before the first is skipped, however the stream is cut", () => {
    fc.assert(
      fc.property(stream, splitting, (bytes, sizes) => {
        const text = (bytes.subarray(0, 3).equals(mark) ? bytes.subarray(3) : bytes).toString("latin1")
        // The bytes of a mark that is not complete are no line until the next byte.
        fc.pre(text === "" || !mark.toString("latin1").startsWith(text))
        assert.deepStrictEqual(linesOf(split(bytes, sizes)), text.split(/\r\n|\n|\r/))
      }),
      { numRuns: 2_000 }
    )
  })

  it("the next line starts behind the line end, as far as it is in the chunk", () => {
    const starts: Array<number> = []
    const scanner = new SseLines.LineScanner()
    for (const chunk of ["a\r\nb\rc\nd\r", "\ne\n"]) {
      scanner.scan(Buffer.from(chunk), (_, _from, _end, isEnd, next) => {
        if (isEnd) starts.push(next)
      })
    }
    assert.deepStrictEqual(starts, [3, 5, 7, 9, 3])
  })

  it.each([
    ["data: 1\n\n", true],
    ["data: 1\r\n\r\n", true],
    ["data: 1\r\r", true],
    ["data: 1\n\r\n", true],
    ["\n\n", true],
    ["data: 1\r\n", false],
    ["data: 1\r", false],
    ["data: 1\n", false],
    ["data: 1", false],
    ["\r\n", false],
    ["", false]
  ])("%j ends with a blank line: %s", (text, expected) => {
    assert.strictEqual(SseLines.endsWithBlankLine(Buffer.from(text)), expected)
  })
})
