import { assert } from "@effect/vitest"
import { Result } from "effect"
import { DetectorSet } from "../../../src/guardrails/detect/DetectorSet.ts"
import type { LinkContext } from "../../../src/guardrails/redact/LinkContext.ts"
import { type PlaceholderValues, Redaction } from "../../../src/guardrails/redact/Redaction.ts"
import { type TextOptions, TextRedactor, type TextTrail } from "../../../src/guardrails/redact/TextRedactor.ts"

export const usual = Result.getOrThrow(DetectorSet.of({}))

export interface SplitOptions extends Partial<TextOptions> {
  readonly detectors?: DetectorSet
  readonly known?: PlaceholderValues
  readonly previous?: LinkContext
  readonly expected?: TextTrail["replacements"]
}

/** A redactor of one text of a response. */
export const redactorOf = ({
  detectors = usual,
  expected = [],
  known = new Map(),
  previous,
  ...options
}: SplitOptions = {}) =>
  new TextRedactor(
    new Redaction({ detectors, known, restore: true }),
    { writing: "plain", signed: false, ...options },
    expected,
    previous
  )

/** Checks what becomes of a text as a whole, cut in two at each place, and in pieces of each size. */
export const assertRedacted = (text: string, expected: string, options: SplitOptions = {}): void => {
  const redact = (pieces: ReadonlyArray<string>): string => {
    const redactor = redactorOf(options)
    let sent = ""
    for (const piece of pieces) {
      sent += redactor.push(piece)
      if (!expected.startsWith(sent)) assert.strictEqual(sent, expected, JSON.stringify(pieces))
    }
    return sent + redactor.flush()
  }
  assert.strictEqual(redact([text]), expected)
  for (let cut = 1; cut < text.length; cut++)
    assert.strictEqual(redact([text.slice(0, cut), text.slice(cut)]), expected, `cut at ${cut}`)
  for (let size = 1; size < Math.min(text.length, 40); size++) {
    const pieces = Array.from({ length: Math.ceil(text.length / size) }, (_, at) =>
      text.slice(at * size, (at + 1) * size)
    )
    assert.strictEqual(redact(pieces), expected, `in pieces of ${size}`)
  }
}
