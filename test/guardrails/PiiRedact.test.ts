import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import * as PiiRedact from "../../src/guardrails/PiiRedact.ts"

const nothing: PiiRedact.Memory = new Map()
const redact = (value: unknown, known = nothing, restores = false) => {
  const { text, ...rest } = PiiRedact.redact(JSON.stringify(value), { known, restores })
  return { ...rest, value: JSON.parse(text) as unknown }
}
/** What becomes of one string. */
const of = (text: string) => redact(text).value

describe("pii-redact", () => {
  it("is the reference's example", () => {
    const { counts, found, value } = redact({ messages: [{ role: "user", content: "email john@example.com" }] })
    assert.deepStrictEqual(value, { messages: [{ role: "user", content: "email [EMAIL_1]" }] })
    assert.strictEqual(JSON.stringify(counts), '{"email_count":1,"phone_count":0,"ssn_count":0}')
    assert.deepStrictEqual([...found], [["[EMAIL_1]", "john@example.com"]])
  })

  it.each([
    ["write to a.b+c%d_e-f@mail.example.com!", "write to [EMAIL_1]!"],
    ["(jane@example.com), <joe@example.org>;", "([EMAIL_1]), <[EMAIL_2]>;"],
    ["jane@example.com. Then", "[EMAIL_1]. Then"],
    ["two@at@example.com", "[EMAIL_1]"],
    ["@example.com a@localhost a@.com a@com-", "@example.com a@localhost a@.com a@com-"],
    ["ünï@example.com", "ünï@example.com".replace("@example.com", "@example.com")],
    ["ssn 123-45-6789.", "ssn [SSN_1]."],
    ["'123-45-6789'", "'[SSN_1]'"],
    ["123-45-67890 1123-45-6789", "[PHONE_1] [PHONE_2]"],
    ["123-45-678", "123-45-678"],
    ["call +1-555-123-4567 now", "call [PHONE_1] now"],
    ["(555)123-4567", "([PHONE_1]"],
    ["555.123.4567,", "[PHONE_1],"],
    ["555 123 4567", "555 123 4567"],
    ["123456789 1234567890 123456789012345 1234567890123456", "123456789 [PHONE_1] [PHONE_2] 1234567890123456"],
    ["tel:+15551234567; a@b.co; 987-65-4321", "tel:[PHONE_1]; [EMAIL_1]; [SSN_1]"],
    ["", ""]
  ])("%s", (text, expected) => assert.strictEqual(of(text), expected))

  it("gives every occurrence a number of its own, in the order of keys, items as they stand", () => {
    const { found, value } = redact({ z: ["a@b.co", "a@b.co"], a: { y: "c@d.co", x: "555-123-4567" } })
    assert.deepStrictEqual(value, { z: ["[EMAIL_2]", "[EMAIL_3]"], a: { y: "[EMAIL_1]", x: "[PHONE_1]" } })
    assert.deepStrictEqual(
      [...found],
      [
        ["[PHONE_1]", "555-123-4567"],
        ["[EMAIL_1]", "c@d.co"],
        ["[EMAIL_2]", "a@b.co"],
        ["[EMAIL_3]", "a@b.co"]
      ]
    )
  })

  it("looks at strings only, never at keys, and at what escapes stand for", () => {
    const text = '{ "a@b.co":1.50,"n":5551234567, "e":"\\u0061@b.co\\n", "big":12345678901234567890 }'
    assert.strictEqual(
      PiiRedact.redact(text, { known: nothing, restores: false }).text,
      '{ "a@b.co":1.50,"n":5551234567, "e":"[EMAIL_1]\\n", "big":12345678901234567890 }'
    )
  })

  it("sees new findings first and restores known ones then, so that what is restored is seen", () => {
    const known = new Map([["[EMAIL_1]", "john@example.com"]])
    const answer = { content: "Hi [EMAIL_1], write to jane@example.com and [EMAIL_9]" }
    assert.deepStrictEqual(redact(answer, known, true).value, {
      content: "Hi john@example.com, write to [EMAIL_2] and [EMAIL_9]"
    })
    assert.deepStrictEqual(redact(answer, known, false).value, {
      content: "Hi [EMAIL_1], write to [EMAIL_2] and [EMAIL_9]"
    })
  })

  it("gives no placeholder that the text has already", () => {
    assert.strictEqual(of("[EMAIL_1] is not a@b.co"), "[EMAIL_1] is not [EMAIL_2]")
  })

  it("takes a body that nests deeper than the call stack", () => {
    const text = `${"[".repeat(200_000)}"a@b.co"${"]".repeat(200_000)}`
    assert.include(PiiRedact.redact(text, { known: nothing, restores: false }).text, '["[EMAIL_1]"]')
  })

  const email = fc
    .tuple(fc.stringMatching(/^[a-z]{1,8}$/), fc.stringMatching(/^[a-z]{1,8}$/))
    .map(([a, b]) => `${a}@${b}.com`)
  const phone = fc.stringMatching(/^[2-9]\d{2}-\d{3}-\d{4}$/)
  const ssn = fc.stringMatching(/^\d{3}-\d{2}-\d{4}$/)
  const word = fc.oneof(email, phone, ssn, fc.stringMatching(/^[a-z ]{0,8}$/), fc.string())
  const json = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: "small" },
      fc.array(word, { maxLength: 4 }).map((words) => words.join(" ")),
      fc.integer(),
      fc.constantFrom(null, true, 1.5),
      fc.array(tie("value"), { maxLength: 4 }),
      fc.dictionary(fc.string(), tie("value"), { maxKeys: 4 })
    )
  })).value

  it("what was replaced comes back whole: restoring undoes redacting", () => {
    fc.assert(
      fc.property(json, (value) => {
        const text = JSON.stringify(value)
        const redacted = PiiRedact.redact(text, { known: nothing, restores: false })
        const echoed = PiiRedact.redact(redacted.text, { known: redacted.found, restores: true })
        assert.deepStrictEqual(JSON.parse(echoed.text), JSON.parse(text))
        assert.strictEqual(echoed.found.size, 0, "nothing that can be found is left in a redacted text")
      }),
      { numRuns: 500 }
    )
  })

  it("leaves a text in which it finds nothing byte for byte", () => {
    fc.assert(
      fc.property(json, fc.constantFrom(undefined, 1, "\t"), (value, space) => {
        const text = JSON.stringify(value, null, space)
        const { found, text: after } = PiiRedact.redact(text, { known: nothing, restores: true })
        if (found.size === 0) assert.strictEqual(after, text)
        else assert.notStrictEqual(after, text)
      }),
      { numRuns: 500 }
    )
  })
})
