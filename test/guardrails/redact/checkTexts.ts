import { Result } from "effect"
import { DetectorSet } from "../../../src/guardrails/detect/DetectorSet.ts"
import type { Writing } from "../../../src/guardrails/detect/Scanner.ts"
import { Redaction } from "../../../src/guardrails/redact/Redaction.ts"
import { TextRedactor } from "../../../src/guardrails/redact/TextRedactor.ts"
import { allDetectors } from "../detect/Texts.ts"
import { mayWait } from "./HeldTexts.ts"
import { Random, randomJson, randomPieces, randomText } from "./RandomTexts.ts"

// Checks random texts in random pieces. Arguments: the number of texts, and the seed.
const texts = Number(process.argv[2])
const seed = Number(process.argv[3])

const usual = Result.getOrThrow(DetectorSet.of({}))
const numbers = Result.getOrThrow(DetectorSet.of({ detectors: { payment_card: true, iban: true, ip_address: true } }))
const all = Result.getOrThrow(DetectorSet.of(allDetectors))
const known = new Map([
  ["[EMAIL_1]", "joe@example.org"],
  ["[SSN_1]", '987-65-4321 "\\'],
  ["[EMAIL_2]", "a\nb"]
])

/** What may follow a piece. */
const continuations = ["", " ", "\n", "x", "@example.com ", "1 ", "23-4567 ", "]", "_1] ", '"', "}"] as const

const random = new Random(seed)

const check = (index: number): void => {
  const writing: Writing = random.below(4) === 0 ? "json" : "plain"
  const restore = random.below(2) === 0
  const detectors = random.of([usual, usual, usual, numbers, all])
  const isJson = random.below(8) === 0
  const raw = isJson ? randomJson(random) : randomText(random, 6)
  const text = writing === "json" && !isJson ? JSON.stringify(raw).slice(1, -1) : raw
  const redactor = () => new TextRedactor(new Redaction({ detectors, known, restore }), { writing, signed: false })
  const expected = redactor().whole(text)
  const pieced = redactor()
  const isContinued = random.below(1000) === 0
  let arrived = ""
  let sent = ""
  for (const piece of randomPieces(random, text)) {
    arrived += piece
    sent += pieced.push(piece)
    const held = pieced.held === 0 ? "" : arrived.slice(-pieced.held)
    const isHeldTooLong =
      detectors === all ? held.length > all.maxHeld : !mayWait(held, arrived, writing, detectors === usual)
    if (!expected.startsWith(sent) || isHeldTooLong) fail(index, text, expected, `${sent}|${held}`)
    if (isContinued)
      for (const next of continuations) {
        const whole = redactor().whole(arrived + next)
        if (!whole.startsWith(sent)) fail(index, arrived + next, whole, sent)
      }
  }
  sent += pieced.flush()
  if (sent !== expected) fail(index, text, expected, sent)
}

const fail = (index: number, text: string, expected: string, sent: string): never => {
  throw new Error(`GUARDED_SEED=${seed}, text ${index}: ${JSON.stringify({ text, expected, sent })}`)
}

for (let index = 0; index < texts; index++) check(index)
process.stdout.write(`${texts} texts\n`)
