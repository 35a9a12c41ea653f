import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { DetectorSet } from "../../../src/guardrails/detect/DetectorSet.ts"
import type { Writing } from "../../../src/guardrails/detect/Scanner.ts"
import { Redaction } from "../../../src/guardrails/redact/Redaction.ts"
import { TextRedactor } from "../../../src/guardrails/redact/TextRedactor.ts"

const execute = promisify(execFile)
const checkTexts = join(import.meta.dirname, "checkTexts.ts")

const usual = Result.getOrThrow(DetectorSet.of({}))
const known = new Map([
  ["[EMAIL_1]", "joe@example.org"],
  ["[SSN_1]", '987-65-4321 "\\'],
  ["[EMAIL_2]", "a\nb"]
])
const redactor = (restore: boolean, writing: Writing = "plain", signed = false) => {
  const redaction = new Redaction({ detectors: usual, known, restore })
  return { redaction, text: new TextRedactor(redaction, { writing, signed }) }
}

/** How many texts, each in a random number of pieces. */
const texts = process.env["GUARDED_TEXTS"] ?? "100000"
const seed = process.env["GUARDED_SEED"] ?? String(Date.now() % 1_000_000_007)

describe("a text that arrives in pieces", () => {
  // The program of its own runs in half the time: the test runner makes each use of an import slower.
  it("becomes the same as the whole text, and nothing is sent that the whole text does not begin with", {
    timeout: 120_000 + Number(texts)
  }, async () => {
    const { stdout } = await execute(process.execPath, [checkTexts, texts, seed])
    assert.strictEqual(stdout, `${texts} texts\n`)
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
    const { replacements } = text.trail
    const copyOf = (whole: string) =>
      new TextRedactor(redaction, { writing: "plain", signed: false }, replacements).whole(whole)
    assert.strictEqual(copyOf("to a@b.co and c@d.co."), first)
    assert.strictEqual(copyOf("to a@b.co and x@y.co."), "to [EMAIL_3] and [EMAIL_6].")
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
