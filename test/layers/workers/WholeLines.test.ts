import { once } from "node:events"
import { PassThrough, Writable } from "node:stream"
import { text } from "node:stream/consumers"
import { assert, describe, it } from "@effect/vitest"
import { WholeLines } from "../../../layers/workers/WholeLines.ts"

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

describe("the output of several processes", () => {
  it("is passed on by whole lines, the last one, too", async () => {
    const output = new PassThrough()
    const lines = new WholeLines(output)
    const [first, second] = [new PassThrough(), new PassThrough()]
    lines.add(first)
    lines.add(second)
    first.write("a long ")
    second.write("one\ntwo\nthr")
    await turn()
    first.write("line\n")
    first.end("cut")
    second.end("ee\n")
    await Promise.all([once(first, "end"), once(second, "end")])
    output.end()
    assert.deepStrictEqual((await text(output)).split("\n").sort(), ["", "a long line", "cut", "one", "three", "two"])
  })

  it("waits for its reader", async () => {
    const output = new PassThrough({ highWaterMark: 4 })
    const lines = new WholeLines(output)
    const input = new PassThrough()
    lines.add(input)
    input.write("first\n")
    await turn()
    assert.isTrue(input.isPaused())
    input.write("second\n")
    await turn()
    assert.strictEqual(String(output.read()), "first\n")
    await turn()
    assert.strictEqual(String(output.read()), "second\n")
  })

  it("is read to its end after the reader has gone", async () => {
    const { promise: written, resolve: onWrite } = Promise.withResolvers<(error: Error) => void>()
    const output = new Writable({ highWaterMark: 4, write: (_bytes, _encoding, done) => onWrite(done) })
    const lines = new WholeLines(output)
    const input = new PassThrough()
    lines.add(input)
    input.write("first\n")
    const fail = await written
    await turn()
    assert.isTrue(input.isPaused())
    fail(Object.assign(new Error("write EPIPE"), { code: "EPIPE" }))
    input.end("second\n")
    await once(input, "end")
  })

  it("does not collect a line that never ends", async () => {
    const output = new PassThrough({ highWaterMark: 4_194_304 })
    const lines = new WholeLines(output)
    const input = new PassThrough({ highWaterMark: 4_194_304 })
    lines.add(input)
    for (let part = 0; part < 3; part++) {
      input.write(Buffer.alloc(524_288, "x"))
      await turn()
    }
    assert.strictEqual(output.readableLength, 3 * 524_288)
  })
})
