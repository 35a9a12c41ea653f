import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import * as UsageTap from "../../src/gateway/usage/UsageTap.ts"
import { chatStream, split, splitting, through } from "./Streams.ts"

describe("UsageTap that hides the usage which the client did not ask for", () => {
  it("gives the client the bytes of the stream that it would have had, however they come", () => {
    fc.assert(
      fc.property(chatStream, splitting, ({ asked, plain }, sizes) => {
        const { bytes } = through(UsageTap.hidingUsage("a", 10_000), split(asked, sizes))
        assert.strictEqual(bytes, plain.toString("latin1"))
      }),
      { numRuns: 300 }
    )
  })

  it("sees what the tap sees that hides nothing", () => {
    fc.assert(
      fc.property(chatStream, splitting, ({ asked }, sizes) => {
        const hiding = through(UsageTap.hidingUsage("a", 10_000), split(asked, sizes))
        assert.deepStrictEqual(hiding.seen, through(UsageTap.events("a", 10_000), [asked]).seen)
      }),
      { numRuns: 200 }
    )
  })

  it("holds back no event that is complete", () => {
    fc.assert(
      fc.property(chatStream, ({ asked, plain }) => {
        const tap = UsageTap.hidingUsage("a", 10_000)
        const out = (tap.push(asked) ?? Buffer.alloc(0)).toString("latin1")
        assert.isAtLeast(out.length, wholeUpTo(plain.toString("latin1")))
      }),
      { numRuns: 100 }
    )
  })

  it("of a stream that is cut anywhere, gives every whole event as it would have been, and the rest as it came", () => {
    fc.assert(
      fc.property(chatStream, fc.nat(10_000), splitting, ({ asked, plain }, length, sizes) => {
        const cut = asked.subarray(0, length % (asked.length + 1))
        const { bytes } = through(UsageTap.hidingUsage("a", 10_000), split(cut, sizes))
        assert.strictEqual(bytes, through(UsageTap.hidingUsage("a", 10_000), [cut]).bytes)
        assert.isTrue(plain.toString("latin1").startsWith(bytes.slice(0, wholeUpTo(bytes))))
      }),
      { numRuns: 200 }
    )
  })

  it("takes a long event byte by byte in time that grows with its length", () => {
    // copying what came before with each byte would be 130 GB here
    const asked = Buffer.from(`data: {"choices":[{"text":"${"x".repeat(524_288)}"}],"usage":null}\n\n`)
    const tap = UsageTap.hidingUsage("a", 1_048_576)
    const out: Array<Buffer> = []
    for (let at = 0; at < asked.length; at++) {
      const bytes = tap.push(asked.subarray(at, at + 1))
      if (bytes !== undefined) out.push(bytes)
    }
    assert.strictEqual(Buffer.concat(out).toString(), asked.toString().replace(',"usage":null', ""))
  })

  it("passes an event that is too long to hold as it comes, and hides in the next", () => {
    const long = `data: {"choices":[{"text":"${"x".repeat(300)}"}],"usage":null}`
    const short = 'data: {"choices":[{}],"usage":null}'
    fc.assert(
      fc.property(fc.constantFrom("\n\n", "\r\n\r\n", "\r\r"), splitting, (end, sizes) => {
        const asked = Buffer.from(long + end + short + end)
        const { bytes } = through(UsageTap.hidingUsage("a", 200), split(asked, sizes))
        assert.strictEqual(bytes, `${long}${end}data: {"choices":[{}]}${end}`)
      }),
      { numRuns: 200 }
    )
  })

  it("reads and hides also in an event behind a byte order mark", () => {
    const usage = '"usage":{"prompt_tokens":5,"completion_tokens":6}'
    fc.assert(
      fc.property(fc.constantFrom("\n", "\r\n", "\r"), splitting, (end, sizes) => {
        const asked = Buffer.from(`\ufeffdata: {"choices":[{}],"usage":null}${end}${end}data: [DONE]${end}${end}`)
        const { bytes } = through(UsageTap.hidingUsage("a", 1_000), split(asked, sizes))
        assert.strictEqual(bytes, asked.toString("latin1").replace(',"usage":null', ""))
        const first = split(Buffer.from(`\ufeffdata: {"choices":[],${usage}}${end}${end}`), sizes)
        for (const tap of [UsageTap.hidingUsage("a", 1_000), UsageTap.events("a", 1_000)]) {
          assert.deepStrictEqual(through(tap, first).seen.reported, { usage: { input: 5, output: 6 } })
        }
      }),
      { numRuns: 100 }
    )
  })

  it("keeps bytes that are no UTF-8 as they came", () => {
    const event = Buffer.concat([
      Buffer.from('data: {"text":"'),
      Buffer.from([0xff, 0xc3]),
      Buffer.from('","usage":null}\n\n')
    ])
    const { bytes } = through(UsageTap.hidingUsage("a", 200), [event])
    assert.strictEqual(bytes, 'data: {"text":"\xff\xc3"}\n\n')
  })

  it.each([
    ["usage that comes with choices", 'data: {"choices":[{}],"usage":{"prompt_tokens":1}}\n\n'],
    ["an error without choices", 'data: {"error":{"message":"m"},"usage":{}}\n\n'],
    ["a broken event", 'data: {"usage":null\n\n'],
    ["data over several lines", 'data: {"usage":\ndata: null}\n\n'],
    ["an event without data", 'event: "usage"\n\n'],
    ["what is no object", 'data: ["usage"]\n\n'],
    ["usage of another kind", 'data: {"usage":"x"}\n\n']
  ])("leaves %s as it is", (_, event) => {
    assert.strictEqual(through(UsageTap.hidingUsage("a", 1000), [Buffer.from(event)]).bytes, event)
  })
})

/** Where the last event ends that is complete. */
const wholeUpTo = (text: string): number =>
  Math.max(0, ...Array.from(text.matchAll(/(?:\r\n|\n|\r(?!\n)){2}/g), (end) => end.index + end[0].length))
