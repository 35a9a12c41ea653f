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
    ["123-45-67890 1123-45-6789", "<PHONE> <PHONE>"],
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
    ["123456789 1234567890 123456789012345 1234567890123456", "123456789 <PHONE> <PHONE> 1234567890123456"],
    ["tel:+15551234567; a@b.co; 987-65-4321", "tel:<PHONE>; <EMAIL>; <SSN>"],
    ["", undefined]
  ])("%s", (text, expected = text) => assert.strictEqual(replaced(text), expected))
})
