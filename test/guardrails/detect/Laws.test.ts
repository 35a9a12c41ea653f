import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import fc from "fast-check"
import { DetectorSet } from "../../../src/guardrails/detect/DetectorSet.ts"
import { Scanner, type Segment, scan, type Writing } from "../../../src/guardrails/detect/Scanner.ts"
import { texts as shapes } from "../../linear/Shapes.ts"
import { allDetectors, disguised, pieces } from "./Texts.ts"

const defaults = Result.getOrThrow(DetectorSet.of({}))
const all = Result.getOrThrow(DetectorSet.of(allDetectors))

const sets = fc.constantFrom(defaults, all)
const writings = fc.constantFrom<Writing>("plain", "json")
const cuts = fc.oneof(
  fc.array(fc.nat(2000), { maxLength: 12 }),
  fc.constant(Array.from({ length: 4000 }, (_, place) => place))
)

/** Neighbouring texts as one. */
const merged = (segments: ReadonlyArray<Segment>): ReadonlyArray<Segment> => {
  const result: Array<Segment> = []
  for (const segment of segments) {
    const last = result.at(-1)
    if (segment._tag === "Text" && last?._tag === "Text")
      result[result.length - 1] = { _tag: "Text", raw: last.raw + segment.raw }
    else result.push(segment)
  }
  return result
}

const scanned = (scanner: Scanner, list: ReadonlyArray<string>): ReadonlyArray<Segment> => {
  const segments = list.flatMap((piece) => scanner.push(piece))
  return merged([...segments, ...scanner.flush()])
}

describe("a scanner", () => {
  it("returns every character of the text, in order", () => {
    fc.assert(
      fc.property(sets, writings, disguised, cuts, (set, writing, text, cuts) => {
        const segments = scanned(new Scanner(set, writing), pieces(text, cuts))
        assert.strictEqual(segments.map(({ raw }) => raw).join(""), text)
      }),
      { numRuns: 2000 }
    )
  })

  it("finds the same however the text is cut into pieces, also when it is used again", () => {
    fc.assert(
      fc.property(sets, writings, disguised, disguised, cuts, (set, writing, first, second, cuts) => {
        const scanner = new Scanner(set, writing)
        assert.deepStrictEqual(scanned(scanner, pieces(first, cuts)), merged(scan(set, writing, first)))
        assert.deepStrictEqual(scanned(scanner, pieces(second, cuts)), merged(scan(set, writing, second)))
      }),
      { numRuns: 3000 }
    )
  })

  it.each([
    "EMP-1234@x ",
    "EMP-1234-----",
    "[EMAIL_1]@x.co [EMAIL_",
    "a@b.co.1.2 ",
    "+1 555 123 4567x89 ",
    "1234567890-a"
  ])("asks a detector twice where another one waits: %s", (text) => {
    const one = merged(scan(all, "plain", text))
    assert.deepStrictEqual(scanned(new Scanner(all, "plain"), text.split("")), one)
  })

  it.each(["10.1.2.3-beta", "10.1.2.3to 10.1.2.3rc1", "1.2.3.4_x", "10.1.2.3-", `ab~8Q~${"a1B2".repeat(8)}`])(
    "waits for what decides also where no detector of addresses does: %s",
    (text) => {
      const addresses = Result.getOrThrow(
        DetectorSet.of({ detectors: { email: false, ip_address: true, secret: true } })
      )
      assert.deepStrictEqual(
        scanned(new Scanner(addresses, "plain"), text.split("")),
        merged(scan(addresses, "plain", text))
      )
    }
  )

  it("holds no more than the longest value", () => {
    fc.assert(
      fc.property(sets, writings, fc.array(disguised, { maxLength: 30 }), (set, writing, list) => {
        const scanner = new Scanner(set, writing)
        for (const piece of list) {
          scanner.push(piece)
          assert.isAtMost(scanner.held, set.maxHeld)
        }
      }),
      { numRuns: 500 }
    )
    for (const { of } of shapes) {
      const scanner = new Scanner(all, "json")
      for (const piece of pieces(
        of(40_000),
        Array.from({ length: 2000 }, (_, index) => index * 20)
      )) {
        scanner.push(piece)
        assert.isAtMost(scanner.held, all.maxHeld)
      }
    }
  })

  it.each([
    "It was a bright cold day. ",
    "in 2024 we sold 300 ",
    "{}: ",
    "😀 ",
    "日本語",
    "a@b ",
    "(see below) ",
    "[1] ",
    "\\n"
  ])("holds nothing of a text that cannot become a value: %j", (text) => {
    const scanner = new Scanner(defaults, "plain")
    scanner.push(text)
    assert.strictEqual(scanner.held, 0)
  })

  it.each([
    ["plain", "a\\u0040b.co", "a\\u0040b.co"],
    ["json", "a\\u0040b.co", "a@b.co"],
    ["json", "\\u006a\\u006F\\u0040b\\u200b.co", "jo@b\u200b.co"],
    ["json", "a\\\\u0040b.co", "a\\u0040b.co"],
    ["json", "a\\\\\\\\u0040b.co", "a\\\\u0040b.co"],
    ["plain", "a&#64;b.co", "a&#64;b.co"],
    ["plain", "a%40b.co", "a%40b.co"],
    ["plain", "a％40b．co", "a％40b．co"]
  ] satisfies ReadonlyArray<[Writing, string, string]>)("knows the escapes of %s text: %s", (writing, raw, value) => {
    const found = { _tag: "Found", raw, kind: "EMAIL", value } as const
    assert.deepStrictEqual(scan(defaults, writing, `${raw} `), [found, { _tag: "Text", raw: " " }])
  })

  it.each([
    ["json", "\\njohn@example.com", "\\n"],
    ["json", "\\\\njohn@example.com", "\\\\n"],
    ["plain", "\\tjohn@example.com", "\\t"],
    ["plain", "\\\\\\njohn@example.com", "\\\\\\n"]
  ] satisfies ReadonlyArray<[Writing, string, string]>)(
    "takes no letter of an escape for a value in %s text: %s",
    (writing, text, raw) => {
      const email = "john@example.com"
      assert.deepStrictEqual(scan(defaults, writing, text), [
        { _tag: "Text", raw },
        { _tag: "Found", raw: email, kind: "EMAIL", value: email }
      ])
    }
  )

  it.each([
    ["[EMAIL_1] and [SSN_12]!", ["[EMAIL_1]", "[SSN_12]"]],
    ["[CARD_1] [EMAIL_0] [EMAIL_] [email_1] [EMAIL_1 ] [E\u200bMAIL_1]", []],
    ["[[PHONE_3]]", ["[PHONE_3]"]]
  ])("knows placeholders of its kinds: %s", (text, placeholders) => {
    const found = scan(defaults, "plain", text).flatMap(({ _tag, raw }) => (_tag === "Placeholder" ? [raw] : []))
    assert.deepStrictEqual(found, placeholders)
  })
})
