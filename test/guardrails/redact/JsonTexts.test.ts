import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { DetectorSet } from "../../../src/guardrails/detect/DetectorSet.ts"
import * as PiiRedact from "../../../src/guardrails/PiiRedact.ts"
import { allDetectors } from "../detect/Texts.ts"
import { assertRedacted, redactorOf, usual } from "./Splits.ts"

const digits = Result.getOrThrow(
  DetectorSet.of({ custom_patterns: [{ name: "DIGITS", pattern: "\\d{4}", max_length: 8 }], detectors: {} })
)
const all = Result.getOrThrow(DetectorSet.of(allDetectors))

describe("a number of JSON stays whole", () => {
  it.each([
    '{"order_id":5551234567}',
    ' \n{ "order_id" : 5551234567 , "ids" : [ 5551234567, -5551234567 ] }',
    "[5551234567]",
    "[[5551234567, 5551234567.25], 5551234567e2]\n",
    '[{"n":5551234567}]',
    '["a",5551234567]',
    "```json\n[5551234567]\n```",
    '```\n{"n":5551234567}\n``` is the answer',
    '{"n":1}\n{"n":5551234567}\n',
    '{"n":1e+5551234567}',
    String.raw`{"body":"{\"n\":5551234567}"}`,
    '{"body":"[5551234567]"}',
    String.raw`{"a":"{\"b\":\"{\\\"n\\\":5551234567}\"}"}`,
    `[${"5551234567,".repeat(40)}5551234567]`
  ])("%s", (text) => {
    assertRedacted(text, text)
    assertRedacted(text, text, { writing: "json" })
  })

  it.each(['{"n":1234567}', '{"lat":56.5678901234,"n":[12345,12345678]}', "[12345678, 1234]", '{"n":123456}'])(
    "%s, also if a pattern matches a part of it",
    (text) => assertRedacted(text, text, { detectors: digits })
  )

  it("also if its fraction is the number of a payment card", () => {
    const text = '{"lat":56.4111111111111111,"card":4111111111111111}'
    assertRedacted(text, text, { detectors: all })
  })

  it("in the contents of requests and responses", () => {
    const content = '{"order_id":5551234567,"to":"jane@example.com"}'
    const body = JSON.stringify({ messages: [{ role: "user", content }] })
    const options = { config: {}, route: "chat", known: new Map() } as const
    const { text } = Result.getOrThrow(PiiRedact.redactRequest(body, options, "fail_open"))
    assert.strictEqual(JSON.parse(text).messages[0].content, '{"order_id":5551234567,"to":"[EMAIL_1]"}')
  })
})

describe("a value is found", () => {
  it.each([
    ["[5551234567] is my number", "[[PHONE_1]] is my number"],
    ["[5551234567, 5551234568] are mine", "[[PHONE_1], [PHONE_2]] are mine"],
    ["[5551234567](tel:5551234567)", "[[PHONE_1]](tel:[PHONE_2])"],
    ["[5551234567 or jane@example.com]", "[[PHONE_1] or [EMAIL_1]]"],
    ["[5551234567", "[[PHONE_1]"],
    ["[1] Call 5551234567", "[1] Call [PHONE_1]"],
    ["{5551234567}", "{[PHONE_1]}"],
    ['{"n":5551234567 or so', '{"n":[PHONE_1] or so'],
    ['{"n":555-123-4567,"m":5551234567}', '{"n":[PHONE_1],"m":[PHONE_2]}'],
    ['{"n":00 +15551234567}', '{"n":00 [PHONE_1]}'],
    ['{"n":1} 5551234567', '{"n":1} [PHONE_1]'],
    ['{"n":"5551234567"}', '{"n":"[PHONE_1]"}'],
    ['{"5551234567":1}', '{"[PHONE_1]":1}'],
    ['{"a":"[5551234567] is mine","b":"[5551234567]"}', '{"a":"[[PHONE_1]] is mine","b":"[5551234567]"}'],
    ['```json\n{"n":1}\n```\n5551234567', '```json\n{"n":1}\n```\n[PHONE_1]'],
    ["Here: [5551234567]", "Here: [[PHONE_1]]"],
    ["```js\n[5551234567]", "```js\n[[PHONE_1]]"],
    [`${"[".repeat(300)}5551234567`, `${"[".repeat(300)}[PHONE_1]`]
  ])("%s", (text, expected) => assertRedacted(text, expected))

  it("in a string that a pattern matches together with what stands before it", () => {
    const detectors = Result.getOrThrow(
      DetectorSet.of({ custom_patterns: [{ name: "PASSWORD", pattern: '1,"password":"\\w+' }], detectors: {} })
    )
    assertRedacted('{"a":1,"password":"abc"}', '{"a":[PASSWORD_1]"}', { detectors })
  })

  it("by a copy as in its text", () => {
    for (const text of ["[5551234567] is my number", '{"n":5551234567,"s":"5551234567"}']) {
      const redactor = redactorOf()
      const redacted = redactor.push(text.slice(0, 11)) + redactor.push(text.slice(11)) + redactor.flush()
      assert.strictEqual(redactorOf({ expected: redactor.trail.replacements }).whole(text), redacted)
    }
  })

  it("while no more is held than a detector and a list of numbers need", () => {
    const redactor = redactorOf()
    for (const character of `[${"5551234567, ".repeat(100)}`) {
      redactor.push(character)
      assert.isAtMost(redactor.held, usual.maxHeld + 256)
    }
  })
})

describe("a restored value is written as its place in JSON requires", () => {
  const key = '-----BEGIN "KEY"-----\nab\\c\n-----END KEY-----'
  const known = new Map([["[EMAIL_1]", key]])
  const nested = (depth: number): string => (depth === 0 ? "x [EMAIL_1]" : JSON.stringify({ a: nested(depth - 1) }))
  const valueAt = (json: string, depth: number): string => (depth === 0 ? json : valueAt(JSON.parse(json).a, depth - 1))

  it.each([0, 1, 2, 3, 4])("in %s strings", (depth) => {
    for (const writing of depth === 0 ? (["plain"] as const) : (["plain", "json"] as const)) {
      const redacted = redactorOf({ known, writing }).whole(nested(depth))
      assert.strictEqual(valueAt(redacted, depth), `x ${key}`)
      assertRedacted(nested(depth), redacted, { known, writing })
    }
  })

  it("in a fence, after which it is written as it is", () => {
    assertRedacted(
      '```json\n{"a":"[EMAIL_1]"}\n```\n[EMAIL_1]',
      `\`\`\`json\n{"a":${JSON.stringify(key)}}\n\`\`\`\n${key}`,
      { known }
    )
  })

  it("as it is in prose that looks like JSON at first", () => {
    assertRedacted('{"a" is [EMAIL_1]', `{"a" is ${key}`, { known })
    assertRedacted("[EMAIL_1] …", `${key} …`, { known })
  })
})
