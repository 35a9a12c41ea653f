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
    [
      "git@github.com:a/b.git ssh://git@github.com/a git@github.com",
      "git@github.com:a/b.git ssh://git@github.com/a <EMAIL>"
    ],
    ["agit@github.com:a logo@2x.com A@B.TV john@example.com.x", "<EMAIL>:a <EMAIL> <EMAIL> <EMAIL>.x"],
    ["logo@2x.png sprite@3x.JPG icon@1.5x.svg eslint@8.x node@lts.x A@B.T x@.b.c", undefined],
    ["john\uff20example.com jo\u200bhn\u00ad@example.com", "<EMAIL> <EMAIL>"],
    ["mailto:a@b.co?x user/a@b.co email=a@b.co", "mailto:<EMAIL>?x user/<EMAIL> email=<EMAIL>"],
    ["ssn 123-45-6789.", "ssn <SSN>."],
    ["'123-45-6789'", "'<SSN>'"],
    ["123-45-67890 1123-45-6789", undefined],
    ["123-45-678", undefined],
    ["call +1-555-123-4567 now", "call <PHONE> now"],
    ["(555)123-4567", "<PHONE>"],
    ["555.123.4567,", "<PHONE>,"],
    ["555 123 4567", undefined],
    ["+1 555 123 4567 and +49 (30) 1234 5678.", "<PHONE> and <PHONE>."],
    ["(555) 123-4567 or (555)\u00a0123 4567", "<PHONE> or <PHONE>"],
    ["+1 (555) 123-4567, +44 20 7946 0958", "<PHONE>, <PHONE>"],
    ["1 + 2 = 3, +1 5 2 3, +1 2022 12", undefined],
    ["phone=5551234567 555-123-4567x89 電話5551234567です", "phone=<PHONE> <PHONE>x89 電話<PHONE>です"],
    ["resp_67cc9641234567890bb6 call_1234567890 x1234567890 1234567890_", undefined],
    ["/orders/1234567890123 1234567890/x 1234567890==", undefined],
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
    ["_987-65-4321_ __987-65-4321__ _(555) 123-4567_", "_<SSN>_ __<SSN>__ _<PHONE>_"],
    ["SSN/987-65-4321 987-65-4321/John 987-65-4321=x", "SSN/<SSN> <SSN>/John <SSN>=x"],
    ["SSN-987-65-4321 987-65-4321-John Smith", "SSN-<SSN> <SSN>-John Smith"],
    ["SSN987-65-4321 ssn_987-65-4321_2026.pdf", "SSN<SSN> ssn_<SSN>_2026.pdf"],
    ["555-123-4567ext.89 555-123-4567ext89 555-123-4567x89", "<PHONE>ext.89 <PHONE>ext89 <PHONE>x89"],
    ["Tel/+1-555-123-4567 +1-555-123-4567/8", "Tel/<PHONE> <PHONE>/8"],
    ["Home 555-123-4567/Work 555-123-4568", "Home <PHONE>/Work <PHONE>"],
    ["\u001b[1m987-65-4321\u001b[0m \u001b[38;5;208m555-123-4567", "\u001b[1m<SSN>\u001b[0m \u001b[38;5;208m<PHONE>"],
    ["phone%3A555-123-4567 name%3D987-65-4321", "phone%3A<PHONE> name%3D<SSN>"],
    ["%0A987-65-4321 %20987-65-4321 %20555-123-4567", "%0A<SSN> %20<SSN> %20<PHONE>"],
    ["tel=%2B15551234567 %2B442079460958", "tel=<PHONE> <PHONE>"],
    ["_5551234567_ id_5551234567 5551234567_id", "_<PHONE>_ id_5551234567 5551234567_id"],
    ["x987-65-4321 987-65-4321x 987-65-4321b. 555-123-4567x T555-123-4567", "x<SSN> <SSN>x <SSN>b. <PHONE>x T<PHONE>"],
    ["a1-987-65-4321 987-65-4321b2 a1b2-987-65-4321 987-65-4321-a1b2", undefined],
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
    "+1 555 123 4567",
    "+1  555  123  4567",
    "+1 (555) 1234567",
    "+1 876 123 4567",
    "+7 495 123-45-67",
    "+20 2 12345678",
    "+27 82 123 4567",
    "+30 21 0123 4567",
    "+31 6 12345678",
    "+32 470 12 34 56",
    "+33 1 23 45 67 89",
    "+33 (0)1 23 45 67 89",
    "+34 612 345 678",
    "+36 1 234 5678",
    "+39 06 1234 5678",
    "+40 721 234 567",
    "+41 44 668 18 00",
    "+43 1 2345678",
    "+44 7911 123456",
    "+44 (0)20 7946 0958",
    "+44(0)20 7946 0958",
    "+45 12 34 56 78",
    "+46 8 123 456 78",
    "+47 22 12 34 56",
    "+48 123 456 789",
    "+49 30 12345678",
    "+49 171 1234567",
    "+49 30/12345678",
    "+49 (0) 30 / 123 456-78",
    "+52 55 1234 5678",
    "+54 9 11 1234-5678",
    "+55 11 91234-5678",
    "+55 (11) 91234-5678",
    "+60 12-345 6789",
    "+61 4 1234 5678",
    "+62 812-3456-7890",
    "+63 917 123 4567",
    "+64 21 123 4567",
    "+65 91234567",
    "+66 2 123 4567",
    "+81 3-1234-5678",
    "+82 10 1234 5678",
    "+84 912 345 678",
    "+86 13800138000",
    "+90 (212) 123 45 67",
    "+91 98765 43210",
    "+92 300 1234567",
    "+98 21 1234 5678",
    "+212 612-345678",
    "+234 803 123 4567",
    "+254 712 345678",
    "+298 12 34 56",
    "+351 912 345 678",
    "+352 27 12 34 56",
    "+353 1 234 5678",
    "+354 555 1234",
    "+358 40 1234567",
    "+372 5123 4567",
    "+380 44 123 4567",
    "+420 601 123 456",
    "+852 9123 4567",
    "+886 912 345 678",
    "+966 50 123 4567",
    "+971 50 123 4567",
    "+972 2-123-4567",
    "(030) 12345678",
    "(020) 7946 0958",
    "(0171) 1234567",
    "(0212) 345 67 89",
    "(01) 23 45 67 89",
    "(0800) 123 456 789",
    "(02) 9876 5432",
    "(011) 91234-5678",
    "(11) 91234-5678",
    "(55) 1234 5678",
    "(495) 123-45-67",
    "(555) 1234567",
    "(555)  123-4567",
    "(555) 123 4567",
    "1 (555) 123-4567",
    "1-(555) 123-4567",
    "1(555)123-4567"
  ])("have the usual spelling of a country: %s", (text) => {
    assert.strictEqual(replaced(text), "<PHONE>")
    assert.strictEqual(
      replaced(`call ${text}, 12 times, or ${text} 2026-11-24.`),
      "call <PHONE>, 12 times, or <PHONE> 2026-11-24."
    )
  })

  it.each([
    [`555-123-4567${".".repeat(60)}12`, `<PHONE>${".".repeat(60)}12`],
    [`555-123-4567${"-".repeat(60)}`, `<PHONE>${"-".repeat(60)}`],
    ["555-123-4567.....12", "<PHONE>.....12"],
    ["555-123-4567(2) 555-123-4567(2)(3)", "<PHONE>(2) <PHONE>(2)(3)"],
    ["Jane....555-123-4567", "Jane....<PHONE>"],
    ["(555-123-4567) (5551234567)", "(<PHONE>) (<PHONE>)"],
    ["+1 555 123 4567x89 +44 20 7946 0958 (12 people)", "<PHONE>x89 <PHONE> (12 people)"],
    ["+49 30 1234 5678 9a", "<PHONE> 9a"]
  ])("end where other digits and punctuation begin: %s", (text, expected) =>
    assert.strictEqual(replaced(text), expected)
  )

  it.each([
    "1 + 2 = 3, +1 5 2 3, +1 2022 12, +1 2 3 4 5 6 7 8 9 10 11",
    "x+10+20+30+40+50 +1234+5678+9012 a+1+2+3",
    "+100 200 300 400 +1 234 567 890 +12 345 678",
    "Phys. B 234 (1990) 1123-1145 and 45(12) 1123-1145, (2019) 12345678",
    "(012) 2026-11-24 10:00 (1) 2345 6789 (200) 1234567 (01) 09501101530003",
    "+40.20361 -075.00417 (3) 1234567890"
  ])("are not in sums, citations and lists: %s", (text) => assert.strictEqual(replaced(text), text))

  it.each([
    "202611241000 2026112410 2026-11-24-1000 20261124-1000 2026.11.24.10.00 20020827-1745 202907181635",
    "24112026100000 24.11.2026-10.00.00 1262303999 1234567890.5 +1764000000 +1764000000123",
    "2147483647 2147483648 4294967295 4294967296 8589934592 17179869184 2592000000 7776000000",
    "+2147483647 Date.now()+2592000000 +10000000000 +364947-0845057 +404246.4-0740021.6/ +4042-07400.5 +364947+0845057",
    "USD 2345678901, EUR2345678901 and $ 2345678901",
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

describe("escapes of HTML and URLs", () => {
  it.each([
    ["(555)&nbsp;123-4567, +1%20555%20123%204567 +1+555+123+4567", "<PHONE>, <PHONE> <PHONE>"],
    [
      "%28555%29%20123%2D4567 &lpar;555&rpar; 123&ndash;4567 &plus;1&ensp;555&ensp;123&ensp;4567",
      "<PHONE> <PHONE> <PHONE>"
    ],
    ["123&#45;45&#45;6789 123&#x2d;45&#X2D6789 123&minus;45&minus;6789", "<SSN> 123&#x2d;45&#X2D6789 <SSN>"],
    [
      "john@example&#46;com john%40example%2Ecom john@ex&shy;ample.com john@example&period;com",
      Array(4).fill("<EMAIL>").join(" ")
    ],
    ["john&#64example.com john&#0000000064;example.com john&#X40;example.com", "<EMAIL> <EMAIL> <EMAIL>"],
    [
      "j&#x6f;hn@ex&#8203;ample.com &#120143;&#57; &#1114112;&#;&#x;&nbs;&",
      "<EMAIL> &#120143;&#57; &#1114112;&#;&#x;&nbs;&"
    ],
    [`john&#${"0".repeat(31)}64;example.com`, undefined],
    ["100%2Fa R&D a&b%2 AT&T &amp; %zz", undefined]
  ])("count as their characters: %s", (text, expected = text) => assert.strictEqual(replaced(text), expected))
})

describe("invisible characters", () => {
  it.each(["\u0000", "\u0001", "\u0008", "\u007f", "\u0080", "\ufff9", "\ud800", "\udc00", "&#0;"])(
    "hide no value: %j",
    (character) => {
      for (const [value, kind] of [
        ["987-65-4321", "SSN"],
        ["555-123-4567", "PHONE"],
        ["jane@example.com", "EMAIL"]
      ] as const)
        assert.strictEqual(replaced(`it is ${value.split("").join(character)} now`), `it is <${kind}> now`)
    }
  )

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
