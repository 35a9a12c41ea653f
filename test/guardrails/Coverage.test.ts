import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as PiiRedact from "../../src/guardrails/PiiRedact.ts"
import { StreamRedactor } from "../../src/guardrails/stream/StreamRedactor.ts"
import { EventReader } from "../../src/guardrails/text/EventReader.ts"
import { literalAt } from "../../src/guardrails/text/Literals.ts"
import * as Coverage from "./Coverage.ts"
import type { PlaceRow } from "./text/PlaceRow.ts"
import { places } from "./text/Places.ts"

const known = new Map([["[EMAIL_7]", "joe@example.org"]])

/** Runs the guardrail on an example with the text, and returns the texts that are sent and the verdict. */
const run = (row: PlaceRow, text: string, config: Record<string, unknown> = Coverage.everyDetector) => {
  const options = { config: { unreadable: "pass", ...config }, route: row.route, known }
  const cut = Math.floor(text.length / 2)
  const pieces = row.delivery === "delta" ? [text.slice(0, 4), text.slice(4, cut), text.slice(cut)] : [text]
  const documents = row.example(pieces)
  if (row.delivery === "plain") {
    const redact = row.direction === "request" ? PiiRedact.redactRequest : PiiRedact.redactResponse
    const json = documents.map((document) => JSON.stringify(document)).join("\n")
    const { text, verdict } = Result.getOrThrow(redact(json, options, "fail_open"))
    return { sent: text, verdict }
  }
  const redaction = Result.getOrThrow(PiiRedact.redactionOf("response", options))
  const redactor = new StreamRedactor(redaction, row.route)
  const stream =
    documents
      .map(eventOf)
      .map((event) => redactor.push(Buffer.from(event)))
      .join("") + redactor.end()
  return {
    sent: laneTexts(row, stream),
    verdict: PiiRedact.verdictOf(redaction, redactor.unreadable, options.config, "fail_open")
  }
}

const eventOf = (document: unknown): string =>
  `data: ${document === "[DONE]" ? document : JSON.stringify(document)}\n\n`

/** The texts of the stream, each put together from its pieces. */
const laneTexts = (row: PlaceRow, stream: string): string => {
  const reader = new EventReader(row.route)
  const texts = new Map<string, string>()
  for (const event of stream.split("\n\n").filter((event) => event !== "")) {
    const data = event.replace(/^data: /, "")
    for (const span of reader.read(undefined, data)?.spans ?? []) {
      texts.set(span.lane, (texts.get(span.lane) ?? "") + (span.role === "copy" ? "\n" : "") + literalAt(data, span))
    }
  }
  return [...texts.values()].join("\n")
}

const nameOf = ({ delivery, direction, place, route, writing }: PlaceRow) =>
  `${route} ${direction}, ${delivery}, ${place}${writing === "json" ? " as JSON" : ""}`

describe("every place of every route", () => {
  for (const row of places) {
    it(nameOf(row), () => {
      for (const [detector, kind, value] of Coverage.samples) {
        if (Coverage.isUnreadable(row)) {
          const { verdict } = run(row, "AAAABBBBCCCC", { ...Coverage.everyDetector, unreadable: "block" })
          assert.deepStrictEqual([verdict.action, verdict.reason], ["block", `cannot redact: ${row.place}`], detector)
          continue
        }
        const text = row.writing === "json" ? JSON.stringify({ to: `Send ${value} now` }) : `Send ${value} now`
        const { sent, verdict } = run(row, text)
        if (row.signed) assert.include(verdict.reason, "signed text", detector)
        else {
          assert.notInclude(sent, value, detector)
          assert.include(sent, `[${kind}_1]`, detector)
          assert.strictEqual(verdict.action, "modify", detector)
        }
      }
      if (row.direction === "request" || Coverage.isUnreadable(row)) return
      const text = row.writing === "json" ? JSON.stringify({ to: "[EMAIL_7] now" }) : "Send [EMAIL_7] now"
      const { sent } = run(row, text)
      if (row.signed) assert.include(sent, "[EMAIL_7]")
      // A placeholder that arrives in pieces of unknown text stays as it is.
      else if (row.delivery === "delta" && row.place === "other text")
        assert.match(sent, /Send (?:joe@example\.org|\[EMAIL_7\]) now/)
      else assert.include(sent, "joe@example.org now")
    })
  }

  it("is in the guide's table", () => {
    const guide = readFileSync(new URL("../../src/guardrails/README.md", import.meta.url), "utf8")
    assert.include(guide, Coverage.table(places))
  })
})
