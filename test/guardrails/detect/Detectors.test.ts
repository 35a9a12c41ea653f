import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import fc from "fast-check"
import { DetectorSet } from "../../../src/guardrails/detect/DetectorSet.ts"
import { idDetectors, idShapes } from "./Texts.ts"
import { valuesIn } from "./Values.ts"

describe("payment cards", () => {
  it.each([
    ["4111 1111 1111 1111 and 4111-1111-1111-1111.", ["4111 1111 1111 1111", "4111-1111-1111-1111"]],
    [
      "card:5555555555554444, 378282246310005 or 3782 822463 10005",
      ["5555555555554444", "378282246310005", "3782 822463 10005"]
    ],
    ["1 4111 1111 1111 1111 123", ["4111 1111 1111 1111"]],
    ["４１１１ １１１１ １１１１ １１１１", ["４１１１ １１１１ １１１１ １１１１"]],
    ["4111 1111 1111 1112 and 4111 1111-1111 1111", []],
    ["a4111111111111111 41111111111111111111 4111111111111111b", []],
    ["9111 1111 1111 1111", []],
    ["4111111111111111/12/27 card/4111111111111111", ["4111111111111111", "4111111111111111"]],
    ["_4111111111111111_ %3A4111111111111111 card_4111111111111111", Array(3).fill("4111111111111111")],
    ["card 4111111111111111110, pan: 4222222222222", ["4111111111111111110", "4222222222222"]],
    ['{"lat":56.5716242958888} 4.4111111111111111 4111111111111111.5', []],
    ["x4111 1111 1111 1111 4111-1111-1111-1111x", ["4111 1111 1111 1111", "4111-1111-1111-1111"]],
    ["%B4111111111111111^DOE/JOHN^27121010000000000000?", ["4111111111111111"]],
    ["4111&nbsp;1111&nbsp;1111&nbsp;1111 x", ["4111&nbsp;1111&nbsp;1111&nbsp;1111"]],
    ["4111%201111%201111%201111 x", ["4111%201111%201111%201111"]],
    ["4111+1111+1111+1111, 4111.1111.1111.1111.", ["4111+1111+1111+1111", "4111.1111.1111.1111"]],
    ["4111  1111\t1111   1111, 4111 - 1111 – 1111-1111", ["4111  1111\t1111   1111", "4111 - 1111 – 1111-1111"]],
    ["3782\t822463\t10005, 3782 8224631 0005", ["3782\t822463\t10005", "3782 8224631 0005"]],
    ["3782\t8224631\t0005 3782  8224631  0005 411.11111.111111.11 4111+111111+111111", []],
    ["25653640-0019-1000-aaaa-000000000000 41111111-11111111", ["41111111-11111111"]],
    ["4111    1111 1111 1111 4111. 1111  - 1111 1111 4111-1111 1111 1111", []],
    ["5401 5402 5403 5404 5401-5402-5403-5404", []],
    ["4111111111111111110 4222222222222 id_4111111111111111 /orders/4111111111111111/items", []]
  ])("%s", (text, cards) =>
    assert.deepStrictEqual(
      valuesIn({ detectors: { payment_card: true } }, text),
      cards.map((card) => `CARD ${card}`)
    )
  )
})

describe("bank accounts", () => {
  it.each([
    ["IBAN DE89 3704 0044 0532 0130 00.", ["DE89 3704 0044 0532 0130 00"]],
    ["GB29NWBK60161331926819, nl91abna0417164300", ["GB29NWBK60161331926819", "nl91abna0417164300"]],
    ["NO93-8601-1117-947", ["NO93-8601-1117-947"]],
    ["DE89 37040044 0532013000, GB29 NWBK 601613 31926819", ["DE89 37040044 0532013000", "GB29 NWBK 601613 31926819"]],
    ["DE89  3704  0044\t0532 0130  00", ["DE89  3704  0044\t0532 0130  00"]],
    ["DE89 - 3704 - 0044 - 0532 - 0130 - 00", ["DE89 - 3704 - 0044 - 0532 - 0130 - 00"]],
    [
      "NL91 ABNA0417 164300, NL91 A BNA0417164300, NL91 ABN A0417164300, NL91-ABNA 0417164300",
      ["NL91 ABNA0417 164300"]
    ],
    ["DE88 3704 0044 0532 0130 00, DE89 3704 0044 0532 0130 0", []],
    [
      "IBAN/DE89370400440532013000 _DE89370400440532013000_ iban_DE89370400440532013000",
      Array(3).fill("DE89370400440532013000")
    ],
    ["DE89370400440532013000/John x1/DE89370400440532013000 id_DE89370400440532013000", ["DE89370400440532013000"]],
    ["XX89370400440532013000 aDE89370400440532013000 DE893704004405320130001", []]
  ])("%s", (text, accounts) =>
    assert.deepStrictEqual(
      valuesIn({ detectors: { iban: true } }, text),
      accounts.map((account) => `IBAN ${account}`)
    )
  )
})

describe("IP addresses", () => {
  it.each([
    ["at 10.0.0.1, http://192.168.100.200:8080/x and 10.0.0.0/8.", ["10.0.0.1", "192.168.100.200", "10.0.0.0"]],
    [
      "2001:db8::8a2e:370:7334, [fe80::1]:443 and ::ffff:10.0.0.1.",
      ["2001:db8::8a2e:370:7334", "fe80::1", "::ffff:10.0.0.1"]
    ],
    ["2001:0db8:0000:0000:0000:ff00:0042:8329", ["2001:0db8:0000:0000:0000:ff00:0042:8329"]],
    ["IP:10.0.0.1", ["10.0.0.1"]],
    ["_10.1.2.3_ %3A10.1.2.3 \u001b[1m10.1.2.3\u001b[0m", ["10.1.2.3", "10.1.2.3", "10.1.2.3"]],
    ["ip:2001:db8::8a2e:370:7334 client:2001:db8::1", ["2001:db8::8a2e:370:7334", "2001:db8::1"]],
    ['version 10.14.24.172, v8.1.4.1, Version: 8.1.4.1, "version":"8.1.4.1", release 8.1.4.1, ~8.1.4.1', []],
    ["Chrome/120.0.0.0 std::vector<a2::b> 00:1a:2b:3c:4d:5e:6f:70 1a::2b face2::b", []],
    ["1.2.3, 1.2.3.4.5, v1.2.3.4, 1.2.3.4-beta, lib-1.2.3.4, lib_1.2.3.4, 1.2.3.4to 1.2.3.4_x", []],
    ["lib-v10.1.2.3, 10.1.2.3-beta 10.1.2.3-rc1 10.1.2.3b1 10.1.2.3.4 x1.10.1.2.3 a__1.2.3.4", []],
    ["IP10.1.2.3 T10.1.2.3 IP8.8.8.8 10.1.2.3to", ["10.1.2.3", "10.1.2.3", "8.8.8.8", "10.1.2.3"]],
    [
      "10.1.2.3-web web-10.1.2.3 10.1.2.3_x ip_10.1.2.3 host-203.0.113.7",
      [...Array(4).fill("10.1.2.3"), "203.0.113.7"]
    ],
    ["ssh -v 10.1.2.3 and curl -v 8.1.2.3/x", ["10.1.2.3", "8.1.2.3"]],
    ["_2001:db8::1_ 10.1.2.3-10.1.2.9", ["2001:db8::1", "10.1.2.3", "10.1.2.9"]],
    ["2.5.29.19 2.5.4.3 1.3.6.1 Table 4.1.2.3 Fig. 4.1.2.3", []],
    ["127.0.0.1, 127.1.2.3, 0.0.0.0, ::1, ::, 0:0:0:0:0:0:0:1", []],
    ["256.1.1.1, 1.2.3.999, 10:20:30, a::b, std::vector, 00:1a:2b:3c:4d:5e", []]
  ])("%s", (text, addresses) =>
    assert.deepStrictEqual(
      valuesIn({ detectors: { ip_address: true } }, text),
      addresses.map((address) => `IP ${address}`)
    )
  )
})

/** `GUARDED_IDS=10000` looks at so many samples of each shape. */
const idRuns = Number(process.env["GUARDED_IDS"] ?? 500)

describe("ids and encodings", () => {
  it("have no values of any detector in them, alone and in prose, URLs and JSON", () => {
    fc.assert(
      fc.property(fc.tuple(...idShapes), (list) => {
        const texts = [
          ...list,
          `see ${list.join(", ")}.`,
          `(${list.join(") (")})`,
          ...list.map((id) => `https://api.example.com/v1/${id}?after=${id}&x=1#${id}`),
          JSON.stringify({ ids: list, nested: JSON.stringify(list) })
        ]
        for (const text of texts) assert.deepStrictEqual(valuesIn(idDetectors, text), [], text)
      }),
      { numRuns: idRuns }
    )
  })

  it("have no card in a decimal whose halves have eight digits", () => {
    assert.deepStrictEqual(valuesIn(idDetectors, "49120528.07525076, 4912-0528-0752-5076"), [
      "CARD 4912-0528-0752-5076"
    ])
  })

  it.each([
    "react@18.2.0 and react@18.2.0-beta.1",
    "2026-11-24T10:00:00.123456+0000 2026-11-24T10:00:00Z 20261124100000 2026-11-24-10-00-00",
    "1764000000 1764000000123 1764000000.123 0.1234567890 3.14159265358979 192.168.100.200",
    "12345678-1234-1234-1234-123456789012 abcd-1234567890 1234567890-abcd"
  ])("%s", (text) => assert.deepStrictEqual(valuesIn({}, text), []))
})

describe("a configuration", () => {
  const mistake = (config: Readonly<Record<string, unknown>>) => Result.getFailure(DetectorSet.of(config))

  it("is read once for each object", () => {
    const config = { detectors: { phone: false } }
    assert.strictEqual(DetectorSet.of(config), DetectorSet.of(config))
    assert.deepStrictEqual(valuesIn(config, "555-123-4567 a@b.co"), ["EMAIL a@b.co"])
    assert.deepStrictEqual(valuesIn({ detectors: { email: { enabled: false }, ssn: {} } }, "a@b.co 123-45-6789"), [
      "SSN 123-45-6789"
    ])
  })

  it.each<[Readonly<Record<string, unknown>>, RegExp]>([
    [{ detectors: [] }, /^detectors must be an object/],
    [{ detectors: { emial: true } }, /^detectors\.emial is unknown; the detectors are email, /],
    [{ detectors: { email: 1 } }, /^detectors\.email must be /],
    [{ detectors: { email: { on: true } } }, /^detectors\.email must be /],
    [{ custom_patterns: {} }, /^custom_patterns must be a list/],
    [
      { custom_patterns: Array.from({ length: 21 }, (_, index) => ({ name: `A${index}`, pattern: "a" })) },
      /at most 20/
    ],
    [{ custom_patterns: ["a"] }, /^custom_patterns\[0\] must be an object/],
    [{ custom_patterns: [{ name: "a", pattern: "a" }] }, /^custom_patterns\[0\]\.name must be/],
    [{ custom_patterns: [{ name: "EMAIL", pattern: "a" }] }, /^custom_patterns\[0\]\.name "EMAIL" is taken/],
    [{ custom_patterns: [{ name: "A" }] }, /^custom_patterns\[0\]\.pattern must be a text/],
    [
      { custom_patterns: [{ name: "A", pattern: "(a" }] },
      /^custom_patterns\[0\]\.pattern is not a pattern of RE2: .*missing/
    ],
    [
      { custom_patterns: [{ name: "A", pattern: "a*" }] },
      /^custom_patterns\[0\]\.pattern must not match the empty text/
    ],
    [{ custom_patterns: [{ name: "A", pattern: "(?:a?b){1000}" }] }, /^custom_patterns\[0\]\.pattern is too large/],
    [{ custom_patterns: [{ name: "A", pattern: "a", max_length: 257 }] }, /^custom_patterns\[0\]\.max_length must be/],
    [{ custom_patterns: [{ name: "A", pattern: "a", max: 2 }] }, /^custom_patterns\[0\]\.max is unknown/]
  ])("is refused with a sentence about the field: %j", (config, sentence) => {
    assert.match(DetectorSet.mistakeIn(config) ?? "", sentence)
    const failure = mistake(config)
    assert.match(failure._tag === "Some" ? failure.value : "", sentence)
  })
})

describe("a new custom pattern", () => {
  const mistake = (pattern: string, max_length = 64) =>
    DetectorSet.mistakeIn({ custom_patterns: [{ name: "A", pattern, max_length }] })

  it.each([
    ["EMP–[0-9]{5}", /^custom_patterns\[0\]\.pattern has "–", which texts have as "-" /],
    ["ＥＭＰ", /has "Ｅ", which texts have as "E"/],
    ["[٠-٩]{3}", /has "٠", which texts have as "0"/],
    ["a\\x{2013}b", /which texts have as "-"/],
    ["a\\xa0b", /which texts have as " "/],
    ["a\u200bb", /has an invisible character/]
  ])("has no characters that searched texts do not have: %s", (pattern, sentence) => {
    assert.match(mistake(pattern) ?? "", sentence)
    assert.isTrue(Result.isSuccess(DetectorSet.of({ custom_patterns: [{ name: "A", pattern }] })))
  })

  it("takes no longer than its length allows", () => {
    const slow = "(?i)(?:[a-z ]{1,100}[0-9]){1,4}q"
    assert.match(
      mistake(slow, 256) ?? "",
      /pattern takes too long with max_length 256: lower max_length to 19, or repeat/
    )
    assert.isUndefined(mistake(slow, 19))
  })

  it.each(["EMP-[0-9]{5}", "é+", "\\\\x41", "[^\\x00-\\x7f]", "(?i)project [a-z]{3,20}", "[A-Z]{2}\\d{6}"])(
    "may be: %s",
    (pattern) => assert.isUndefined(mistake(pattern))
  )
})

describe("custom patterns", () => {
  const employee = { custom_patterns: [{ name: "EMPLOYEE", pattern: "\\bE\\d{4,6}\\b" }], detectors: {} }
  it("find what they match, also with escapes and invisible characters", () => {
    assert.deepStrictEqual(valuesIn(employee, "E1234, xE1234, E\u200b12345 and \\u00451234"), [
      "EMPLOYEE E1234",
      "EMPLOYEE E\u200b12345",
      "EMPLOYEE \\u00451234"
    ])
  })

  it("find no more than their length, the last part of a longer run", () => {
    const digits = {
      custom_patterns: [{ name: "DIGITS", pattern: "\\d+", max_length: 20 }],
      detectors: { phone: false }
    }
    assert.deepStrictEqual(valuesIn(digits, `${"1".repeat(10)}${"2".repeat(20)} 5`), [
      `DIGITS ${"2".repeat(20)}`,
      "DIGITS 5"
    ])
  })

  it("win over a detector that finds the same value", () => {
    const phone = { custom_patterns: [{ name: "DESK", pattern: "555-\\d{3}-\\d{4}" }] }
    assert.deepStrictEqual(valuesIn(phone, "555-123-4567"), ["DESK 555-123-4567"])
  })
})
