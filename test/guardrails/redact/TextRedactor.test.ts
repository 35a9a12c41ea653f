import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { DetectorSet } from "../../../src/guardrails/detect/DetectorSet.ts"
import type { Writing } from "../../../src/guardrails/detect/Scanner.ts"
import { Redaction } from "../../../src/guardrails/redact/Redaction.ts"
import { TextRedactor } from "../../../src/guardrails/redact/TextRedactor.ts"
import { allDetectors } from "../detect/Texts.ts"
import { mayWait } from "./HeldTexts.ts"
import { Random, randomJson, randomPieces, randomText } from "./RandomTexts.ts"

const usual = Result.getOrThrow(DetectorSet.of({}))
const numbers = Result.getOrThrow(DetectorSet.of({ detectors: { payment_card: true, iban: true, ip_address: true } }))
const all = Result.getOrThrow(DetectorSet.of(allDetectors))
const known = new Map([
  ["[EMAIL_1]", "joe@example.org"],
  ["[SSN_1]", '987-65-4321 "\\'],
  ["[EMAIL_2]", "a\nb"]
])
const redactor = (restore: boolean, writing: Writing = "plain", signed = false, detectors = usual) => {
  const redaction = new Redaction({ detectors, known, restore })
  return { redaction, text: new TextRedactor(redaction, { writing, signed }) }
}

/** What may follow a piece. */
const continuations = ["", " ", "\n", "x", "@example.com ", "1 ", "23-4567 ", "]", "_1] ", '"', "}"] as const

/** How many texts, each in a random number of pieces. `GUARDED_TEXTS=100000000` runs for hours. */
const cases = Number(process.env["GUARDED_TEXTS"] ?? 1_000_000)

describe("a text that arrives in pieces", () => {
  const timeoutMs = 120_000 + cases
  it("becomes the same as the whole text, and nothing is sent that the whole text does not begin with", {
    timeout: timeoutMs
  }, () => {
    const seed = Number(process.env["GUARDED_SEED"] ?? Date.now() % 1_000_000_007)
    const random = new Random(seed)
    for (let index = 0; index < cases; index++) {
      const writing = random.below(4) === 0 ? "json" : "plain"
      const restore = random.below(2) === 0
      const detectors = random.of([usual, usual, usual, numbers, all])
      const isJson = random.below(8) === 0
      const raw = isJson ? randomJson(random) : randomText(random, 6)
      const text = writing === "json" && !isJson ? JSON.stringify(raw).slice(1, -1) : raw
      const expected = redactor(restore, writing, false, detectors).text.whole(text)
      const pieced = redactor(restore, writing, false, detectors).text
      const isContinued = random.below(1000) === 0
      let arrived = ""
      let sent = ""
      for (const piece of randomPieces(random, text)) {
        arrived += piece
        sent += pieced.push(piece)
        const held = pieced.held === 0 ? "" : arrived.slice(-pieced.held)
        if (
          !expected.startsWith(sent) ||
          (detectors === all ? held.length > all.maxHeld : !mayWait(held, arrived, writing, detectors === usual))
        )
          fail(seed, index, text, expected, `${sent}|${held}`)
        if (isContinued)
          for (const next of continuations) {
            const whole = redactor(restore, writing, false, detectors).text.whole(arrived + next)
            if (!whole.startsWith(sent)) fail(seed, index, arrived + next, whole, sent)
          }
      }
      sent += pieced.flush()
      if (sent !== expected) fail(seed, index, text, expected, sent)
    }
  })

  it("holds nothing at the end of a sentence", () => {
    const { text } = redactor(true)
    assert.strictEqual(text.push("Nothing is held here. "), "Nothing is held here. ")
    assert.strictEqual(text.held, 0)
  })

  it("gives a copy the placeholders of its text", () => {
    const { redaction, text } = redactor(true)
    const other = new TextRedactor(redaction, { writing: "plain", signed: false })
    const first = text.push("to a@b.co and c@d.co.") + text.flush()
    assert.strictEqual(other.whole("e@f.co"), "[EMAIL_5]")
    assert.strictEqual(first, "to [EMAIL_3] and [EMAIL_4].")
    assert.strictEqual(text.copy("to a@b.co and c@d.co.", { writing: "plain", signed: false }), first)
    assert.strictEqual(
      text.copy("to a@b.co and x@y.co.", { writing: "plain", signed: false }),
      "to [EMAIL_3] and [EMAIL_6]."
    )
  })

  it("counts the findings of a signed text, and does not change it", () => {
    const { redaction, text } = redactor(true, "plain", true)
    assert.strictEqual(text.whole("I think of a@b.co and [EMAIL_1]"), "I think of a@b.co and [EMAIL_1]")
    assert.strictEqual(redaction.signedFindings, 1)
  })

  it("writes a value into JSON with escapes", () => {
    const values = new Map([["[EMAIL_1]", '"a"\n@b.co']])
    const redaction = new Redaction({ detectors: usual, known: values, restore: true })
    const text = new TextRedactor(redaction, { writing: "json", signed: false })
    assert.strictEqual(JSON.parse(text.whole('{"to":"[EMAIL_1]"}')).to, '"a"\n@b.co')
  })
})

const fail = (seed: number, index: number, text: string, expected: string, sent: string): never => {
  throw new Error(`GUARDED_SEED=${seed}, text ${index}: ${JSON.stringify({ text, expected, sent })}`)
}
