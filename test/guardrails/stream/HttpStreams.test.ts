import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import fc from "fast-check"
import { StreamChain } from "../../../src/guardrails/StreamChain.ts"
import type { Reply, StreamCall } from "../../../src/guardrails/StreamJudge.ts"
import { streamStep } from "./StreamSteps.ts"

interface Piece {
  readonly choice: number
  readonly text: string
}

interface Judged {
  readonly lane: string
  readonly context?: string
  readonly text: string
}

const words = fc.string({
  unit: fc.constantFrom(...'abc \n"\\', "é", "\u{1f600}", "\ud83d", "data: x"),
  maxLength: 120
})
const pieces = fc.array(fc.record({ choice: fc.nat(2), text: words }), { maxLength: 25 })
const endings = fc.constantFrom("\n", "\r\n", "\r")
const sizes = fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 5 })

/** Choices that end within the stream, comments between events, and sometimes no terminal event. */
const streamOf = (all: ReadonlyArray<Piece>, lineEnd: string, isDone: boolean): string => {
  const event = (json: object) => `data: ${JSON.stringify(json)}${lineEnd}${lineEnd}`
  const events = all.map(({ choice, text }, at) => {
    const finish_reason = at === all.length - 3 ? "stop" : null
    return event({ choices: [{ index: choice, delta: { content: text }, finish_reason }] })
  })
  return [`: ping${lineEnd}${lineEnd}`, ...events, isDone ? `data: [DONE]${lineEnd}${lineEnd}` : ""].join("")
}

const textsOf = (all: ReadonlyArray<Piece>): ReadonlyMap<string, string> => {
  const texts = new Map<string, string>()
  for (const { choice, text } of all) {
    const lane = `choice ${choice} content`
    if (text !== "") texts.set(lane, (texts.get(lane) ?? "") + text)
  }
  return texts
}

const readBy = (stream: string): ReadonlyMap<string, string> =>
  textsOf(
    stream.split(/\r\n|\r|\n/).flatMap((line) => {
      if (!line.startsWith("data: {")) return []
      const [choice] = JSON.parse(line.slice(6)).choices
      return [{ choice: choice.index, text: choice.delta.content }]
    })
  )

const allow: Reply = Result.succeed({ action: "allow", reason: null, metadata: {} })

/** Runs a stream. `reply` decides each call; a call of `late` returns only after the next chunk. */
const run = (
  step: ReturnType<typeof streamStep>,
  stream: string,
  chunkSizes: ReadonlyArray<number>,
  late: ReadonlyArray<boolean>,
  reply: (texts: ReadonlyArray<Judged>, call: number) => Reply
) => {
  const calls: Array<ReadonlyArray<Judged>> = []
  const allowed: Array<Judged> = []
  let isChanged = false
  let waiting: (() => void) | undefined
  let sent = ""
  let ended: "open" | "end" | "stop" = "open"
  const call: StreamCall = (_, response, done) => {
    assert.isUndefined(waiting, "one call at a time")
    const { texts } = JSON.parse(response)
    calls.push(texts)
    const finish = () => {
      waiting = undefined
      const replied = reply(texts, calls.length)
      isChanged = Result.isSuccess(replied) && replied.success.action === "modify"
      allowed.push(...texts)
      done(replied)
    }
    if (late[calls.length % late.length] === true) waiting = finish
    else finish()
    return () => {}
  }
  const chain = new StreamChain(
    [step],
    { route: "chat", known: new Map(), now: () => 0, call },
    {
      push: (bytes) => {
        assert.strictEqual(ended, "open")
        sent += bytes.toString()
        for (const [lane, text] of isChanged ? [] : readBy(sent)) {
          const judged = allowed.filter((one) => one.lane === lane).map((one) => one.text)
          assert.isAtLeast(judged.join("").length, text.length, "nothing is sent before it was judged")
        }
      },
      end: () => {
        ended = "end"
      },
      stop: () => {
        ended = "stop"
      },
      ready: () => {}
    }
  )
  const bytes = Buffer.from(stream)
  for (let from = 0, at = 0; from < bytes.length; at++) {
    const to = from + (chunkSizes[at % chunkSizes.length] ?? 1)
    chain.push(bytes.subarray(from, to))
    waiting?.()
    from = to
  }
  chain.end()
  while (waiting !== undefined) waiting()
  return { calls, sent, ended: String(ended), execution: chain.report().executions[0] }
}

const isPlain = (text: string) => Buffer.from(text).toString() === text

describe("a stream under an HTTP guardrail", () => {
  const modes = fc.constantFrom("buffer" as const, "window" as const)

  it("arrives byte for byte if all of it is allowed, and each text is judged whole, in order", () => {
    fc.assert(
      fc.property(
        ...([
          modes,
          pieces,
          endings,
          fc.boolean(),
          sizes,
          fc.array(fc.boolean(), { minLength: 1 }),
          fc.integer({ min: 64, max: 100 })
        ] as const),
        (mode, all, lineEnd, isDone, chunkSizes, late, windowChars) => {
          const stream = streamOf(all, lineEnd, isDone)
          const { calls, ended, execution, sent } = run(
            streamStep(mode, windowChars),
            stream,
            chunkSizes,
            late,
            () => allow
          )
          assert.deepStrictEqual([ended, sent], ["end", stream])
          const judged = new Map<string, string>()
          for (const { context, lane, text } of calls.flat()) {
            const before = judged.get(lane) ?? ""
            if (mode === "window") {
              assert.isAtMost(text.length, windowChars)
              assert.isTrue(before.endsWith(context ?? "?"))
              assert.isAtLeast((context ?? "").length, Math.min(before.length, Math.floor(windowChars / 4) - 1))
              assert.isAtMost((context ?? "").length, Math.floor(windowChars / 4))
            }
            judged.set(lane, before + text)
          }
          assert.deepStrictEqual(judged, new Map(textsOf(all)))
          assert.strictEqual(execution?.metadata["calls"], calls.length)
          if (mode === "buffer") assert.isAtMost(calls.length, 1)
        }
      ),
      { numRuns: 2000 }
    )
  })

  it("ends at the call that blocks: what was sent is the beginning of the stream", () => {
    fc.assert(
      fc.property(
        modes,
        pieces,
        sizes,
        fc.array(fc.boolean(), { minLength: 1 }),
        fc.integer({ min: 1, max: 6 }),
        (mode, all, chunkSizes, late, at) => {
          const stream = streamOf(all, "\n", true)
          const block: Reply = Result.succeed({ action: "block", reason: null, metadata: {} })
          const { calls, ended, sent } = run(streamStep(mode), stream, chunkSizes, late, (_, call) =>
            call === at ? block : allow
          )
          assert.strictEqual(ended, calls.length >= at ? "stop" : "end")
          assert.isAtMost(calls.length, at)
          assert.isTrue(stream.startsWith(sent))
          if (ended === "stop" && mode === "buffer") assert.strictEqual(sent, "")
        }
      ),
      { numRuns: 2000 }
    )
  })

  it("has the new texts of the changed lanes, and all else as it was", () => {
    fc.assert(
      fc.property(
        pieces,
        endings,
        sizes,
        fc.subarray([0, 1, 2]),
        words.filter(isPlain),
        (all, lineEnd, chunkSizes, changed, text) => {
          const stream = streamOf(all, lineEnd, true)
          const old = textsOf(all)
          const texts = changed.map((choice) => `choice ${choice} content`).filter((lane) => old.has(lane))
          const reply: Reply = Result.succeed({
            action: "modify",
            text: JSON.stringify({ texts: texts.map((lane) => ({ lane, text })) }),
            reason: null,
            metadata: {}
          })
          const { sent } = run(streamStep("buffer"), stream, chunkSizes, [false], () => reply)
          const expected = new Map(old)
          for (const lane of texts) {
            if (text === "") expected.delete(lane)
            else expected.set(lane, text)
          }
          assert.deepStrictEqual(new Map([...readBy(sent)].sort()), new Map([...expected].sort()))
          if (texts.length === 0) assert.strictEqual(sent, stream)
          assert.strictEqual(sent.split(lineEnd).length, stream.split(lineEnd).length)
        }
      ),
      { numRuns: 1000 }
    )
  })
})
