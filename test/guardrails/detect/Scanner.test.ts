import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { DetectorSet } from "../../../src/guardrails/detect/DetectorSet.ts"
import { scan } from "../../../src/guardrails/detect/Scanner.ts"

const defaults = Result.getOrThrow(DetectorSet.of({}))

/** Replaces each value by its kind. */
const replaced = (text: string) =>
  scan(defaults, "plain", text)
    .map((segment) => (segment._tag === "Found" ? `<${segment.kind}>` : segment.raw))
    .join("")

describe("the default detectors", () => {
  it.each([
    ["write to a.b+c%d_e-f@mail.example.com!", "write to <EMAIL>!"],
    ["(jane@example.com), <joe@example.org>;", "(<EMAIL>), <<EMAIL>>;"],
    ["jane@example.com. Then", "<EMAIL>. Then"],
    ["two@at@example.com", "<EMAIL>"],
    ["@example.com a@localhost a@.com a@com-", undefined],
    ["ünï@example.com, иван@пример.рф, 请联系john@example.com谢谢", "<EMAIL>, <EMAIL>, 请联系<EMAIL>谢谢"],
    ["@john@example.com", "@<EMAIL>"],
    ["john\uff20example.com jo\u200bhn\u00ad@example.com", "<EMAIL> <EMAIL>"],
    ["mailto:a@b.co?x user/a@b.co email=a@b.co", "mailto:<EMAIL>?x user/<EMAIL> email=<EMAIL>"],
    ["ssn 123-45-6789.", "ssn <SSN>."],
    ["'123-45-6789'", "'<SSN>'"],
    ["123-45-67890 1123-45-6789", undefined],
    ["123-45-678", undefined],
    ["call +1-555-123-4567 now", "call <PHONE> now"],
    ["(555)123-4567", "(<PHONE>"],
    ["555.123.4567,", "<PHONE>,"],
    ["555 123 4567", undefined],
    ["+1 555 123 4567 and +49 (30) 1234 5678.", "<PHONE> and <PHONE>."],
    ["(555) 123-4567 or (555)\u00a0123 4567", "(<PHONE> or (<PHONE>"],
    ["+1 (555) 123-4567, +44 20 7946 0958", "<PHONE>, <PHONE>"],
    ["1 + 2 = 3, +1 5 2 3, +1 2022 12", undefined],
    ["phone=5551234567 555-123-4567x89 電話5551234567です", "phone=<PHONE> <PHONE>x89 電話<PHONE>です"],
    ["resp_67cc9641234567890bb6 call_1234567890 x1234567890 1234567890_", undefined],
    ["/orders/1234567890123 1234567890/x 1234567890== a123-45-6789 123-45-6789b", undefined],
    ["550e8400-e29b-41d4-a716-446655440000", undefined],
    ["123 45 6789", undefined],
    [
      "123456789 1234567890 123456789012345 1234567890123456 5551234567",
      "123456789 1234567890 123456789012345 1234567890123456 <PHONE>"
    ],
    ["tel:+15551234567; a@b.co; 987-65-4321", "tel:<PHONE>; <EMAIL>; <SSN>"],
    ["", undefined]
  ])("%s", (text, expected = text) => assert.strictEqual(replaced(text), expected))
})

describe("a number next to words and escapes", () => {
  it.each([
    ["_987-65-4321_ __987-65-4321__ _(555) 123-4567_", "_<SSN>_ __<SSN>__ _(<PHONE>_"],
    ["SSN/987-65-4321 987-65-4321/John 987-65-4321=x", "SSN/<SSN> <SSN>/John <SSN>=x"],
    ["SSN-987-65-4321 987-65-4321-John Smith", "SSN-<SSN> <SSN>-John Smith"],
    ["SSN987-65-4321 ssn_987-65-4321_2026.pdf", "SSN<SSN> ssn_<SSN>_2026.pdf"],
    ["555-123-4567ext.89 555-123-4567ext89 555-123-4567x89", "<PHONE>ext.89 <PHONE>ext89 <PHONE>x89"],
    ["Tel/+1-555-123-4567 +1-555-123-4567/8", "Tel/<PHONE> <PHONE>/8"],
    ["Home 555-123-4567/Work 555-123-4568", "Home <PHONE>/Work <PHONE>"],
    ["\u001b[1m987-65-4321\u001b[0m \u001b[38;5;208m555-123-4567", "\u001b[1m<SSN>\u001b[0m \u001b[38;5;208m<PHONE>"],
    ["phone%3A555-123-4567 name%3D987-65-4321", "phone%3A<PHONE> name%3D<SSN>"],
    ["%0A987-65-4321 %20987-65-4321 %20555-123-4567", "%0A<SSN> %20<SSN> %20<PHONE>"],
    ["tel=%2B15551234567 %2B442079460958", "tel=%2B<PHONE> %2B<PHONE>"],
    ["_5551234567_ id_5551234567 5551234567_id", "_<PHONE>_ id_5551234567 5551234567_id"],
    ["a987-65-4321 987-65-4321b a1b2-987-65-4321 987-65-4321-a1b2", undefined],
    ["a1b2c3d4_987-65-4321 987-65-4321_a1b2c3d4 9-987-65-4321 987-65-4321-9", undefined],
    ["550e8400-e29b-41d4-a716-446655440000 /orders/5551234567/items", undefined]
  ])("%s", (text, expected = text) => assert.strictEqual(replaced(text), expected))
})

describe("phone numbers", () => {
  it.each([
    "5551234567",
    "15551234567",
    "2125551234",
    "555-123-4567",
    "123-456-7890",
    "1-800-555-0199",
    "555--123--4567",
    "555.123.4567",
    "1.555.123.4567",
    "2.555-123-4567",
    "+15551234567",
    "+1.5551234567",
    "+442079460958",
    "+49(30)12345678",
    "030-12345678",
    "0412-345-678",
    "0049-30-1234567",
    "138-1234-5678",
    "01.23.45.67.89"
  ])("have a form that people write: %s", (text) => assert.strictEqual(replaced(`call ${text}.`), "call <PHONE>."))

  it.each([
    "202611241000 2026112410 2026-11-24-1000 20261124-1000 2026.11.24.10.00 20020827-1745 202907181635",
    "24112026100000 24.11.2026-10.00.00 1262303999 1234567890.5 +1764000000 +1764000000123",
    "+2026-11-24 10:00:00 and +24.11.2026 10:00 and +20261124-100000",
    "arn:aws:iam::123456789012:role/x 123456789012 $65439677.68 $5551234567 €5551234567",
    "74.40849774 -74.4084977 +74.40849774 +40.20361-075.00417/ 0.30000001192092896 3.1415927410125732 1.2345678e-10",
    "978-0-306-40615-7 978-3-16-148410-0 9780306406157 4006381333931 036000291452 490154203237518 0-306-40615-2",
    "66007-76148 123-45-67890 1123-45-6789 555123-4567 12.555.123.4567",
    "10.1016/0370-1573(91)90117-V 10.1002/1097-0142(20010815)92:4 10.0.19045.3693 10.0.22621.2715",
    "1234567890 0123456789 2115551234 2129115678 25551234567 123456789012345",
    "0000-0002-1825-0097 0000-0002-1694-233X 00-11-22-33-44-55 010.001.002.003 01-02-2026-1000"
  ])("are not in the texts of machines: %s", (text) => assert.strictEqual(replaced(text), text))
})

describe("invisible characters", () => {
  it.each([
    ["987-65-4321", "SSN"],
    ["555-123-4567", "PHONE"],
    ["jane@example.com", "EMAIL"]
  ])("hide no value, even a thousand between two characters: %s", (value, kind) => {
    for (const count of [12, 14, 63, 1000]) {
      const hidden = value.split("").join("\u200b".repeat(count))
      assert.strictEqual(replaced(`it is ${hidden} now`), `it is <${kind}> now`)
    }
  })
})

describe("local parts of addresses", () => {
  it("are found whole up to 256 characters", () => {
    assert.strictEqual(replaced(`x ${"a".repeat(100)}@example.com`), "x <EMAIL>")
    assert.strictEqual(replaced(`x ${"a".repeat(300)}@example.com`), `x ${"a".repeat(44)}<EMAIL>`)
  })
})
