import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import fc from "fast-check"
import * as FormBody from "../../../src/gateway/request/FormBody.ts"

const type = "multipart/form-data; boundary=xyz"
const encoded = "application/x-www-form-urlencoded"
const part = (head: string, content: string) => `--xyz\r\n${head}\r\n\r\n${content}\r\n`
const named = (parameters: string, content: string) => part(`Content-Disposition: form-data; ${parameters}`, content)
const form = (...parts: ReadonlyArray<string>) => `${parts.join("")}--xyz--\r\n`

const fields = (body: string | Buffer, wanted: ReadonlyArray<string> = ["a", "b"], contentType = type) =>
  Result.match(FormBody.read(contentType, Buffer.from(body), new Set(wanted)), {
    onFailure: (message) => message,
    onSuccess: (found) => Object.fromEntries(found.fields)
  })

describe("Form, multipart", () => {
  it.each<[string, string, { readonly [name: string]: string }]>([
    ["reads fields", form(named('name="a"', "x"), named('name="b"', "y\r\nz")), { a: "x", b: "y\r\nz" }],
    ["reads names without quotes", form(named("name=a", "x")), { a: "x" }],
    ["reads quotes", form(named('name="a"', '"')), { a: '"' }],
    [
      "reads a field with a type",
      form(part('content-disposition: form-data; name="a"\r\nContent-Type: text/plain; charset=UTF-8', "x")),
      { a: "x" }
    ],
    ["leaves out what nobody asks for", form(named('name="c"', "x")), {}],
    [
      "passes a file",
      form(named('name="f"; filename="C:\\\\f.txt"', "\u0000\r\n"), named('name="a"', "x")),
      { a: "x" }
    ],
    ["passes a file whose name has an escape", form(named('name="f"; filename="my \\"best\\" take.mp3"', "x")), {}],
    ["passes a file whose name ends with a backslash", form(named('name="f"; filename="C:\\tmp\\"', "x")), {}],
    ["passes a file with an encoded name", form(named("name=f; filename*=utf-8''f", "x")), {}],
    ["reads an empty field", form(named('name="a"', "")), { a: "" }],
    ["reads an empty form", "--xyz--", {}]
  ])("%s", (_, body, found) => {
    assert.deepStrictEqual(fields(body), found)
  })

  it("takes a quoted boundary, and other parameters", () => {
    const quoted = 'multipart/form-data; charset=utf-8; Boundary="xyz"'
    assert.deepStrictEqual(fields(form(named('name="a"', "x")), ["a"], quoted), { a: "x" })
  })

  it.each<[string, string | Buffer, string]>([
    ["a decisive field that stands there twice", form(named('name="a"', "x"), named('name="a"', "y")), "twice"],
    ["a decisive field in a list", form(named('name="a[]"', "x")), "plain field"],
    ["a decisive field in brackets", form(named('name="[a]"', "x")), "plain field"],
    ["a decisive field in capitals", form(named('name="A"', "x")), "plain field"],
    ["a decisive field behind a blank", form(named('name=" a"', "x")), "plain field"],
    [
      "a name behind the escapes of a file's",
      form(named('name="x"; filename="\\"; name="a"', "x")),
      "unsupported headers"
    ],
    ["a decisive field that is a file", form(named('name="a"; filename="f.txt"', "x")), "UTF-8 text"],
    ["a decisive field that is too long", form(named('name="a"', "x".repeat(16_385))), "UTF-8 text"],
    [
      "a decisive field that is no UTF-8",
      Buffer.concat([
        Buffer.from('--xyz\r\nContent-Disposition: form-data; name="a"\r\n\r\n'),
        Buffer.from([0xff]),
        Buffer.from("\r\n--xyz--")
      ]),
      "UTF-8 text"
    ],
    [
      "a decisive field in another charset",
      form(part('content-disposition: form-data; name="a"\r\ncontent-type: text/plain; charset=utf-16', "x")),
      "UTF-8 text"
    ],
    ["a form without its end", named('name="a"', "x"), "closing boundary is missing"],
    ["no form at all", "hello", "begin with its boundary"],
    ["a preamble", `hello\r\n${form(named('name="a"', "x"))}`, "begin with its boundary"],
    ["an epilogue", `${form(named('name="a"', "x"))}--xyz`, "after its closing boundary"],
    ["a boundary that ends with LF", form(named('name="b"', "y")).replace("--xyz\r\n", "--xyz\n"), "on its own line"],
    ["a boundary behind LF", form(named('name="b"', "y\n--xyz\r\n")), "on its own line"],
    [
      "a boundary with spaces behind it",
      form(named('name="b"', "y")).replace("--xyz\r\n", "--xyz \r\n"),
      "on its own line"
    ],
    ["a part without a content", "--xyz\r\nContent-Disposition: form-data\r\n--xyz--", "unsupported headers"],
    ["a part without a disposition", form(part("content-type: text/plain", "x")), "unsupported headers"],
    ["a part without a name", form(part("content-disposition: form-data", "x")), "unsupported headers"],
    [
      "two dispositions",
      form(part('content-disposition: form-data; name="x"\r\nContent-Disposition: form-data; name="a"', "x")),
      "unsupported headers"
    ],
    ["two names", form(named('name="x"; name="a"', "x")), "unsupported headers"],
    ["an encoded name", form(named("name*=UTF-8''a", "x")), "unsupported headers"],
    ["a name with an escape", form(named('name="\\a"', "x")), "unsupported headers"],
    ["a parameter that nobody knows", form(named('name="a"; x="; filename=y"', "x")), "unsupported headers"],
    ["a folded head", form(part('Content-Disposition: form-data;\r\n name="a"', "x")), "unsupported headers"],
    ["a head with a bare LF", form(part('x: y\nContent-Disposition: form-data; name="a"', "x")), "unsupported headers"],
    [
      "a head that is too long",
      form(part(`content-disposition: form-data; name="a"\r\nx: ${" ".repeat(9000)}y`, "x")),
      "larger than 8192 bytes"
    ],
    ["a head that never ends", form(`--xyz\r\n${" ".repeat(9000)}\r\n`), "larger than 8192 bytes"],
    [
      "a head with a blank before its colon",
      form(part('content-disposition : form-data; name="a"', "x")),
      "unsupported headers"
    ],
    ["too many parts", form(...Array.from({ length: 1001 }, () => named('name="c"', "x"))), "more than 1000 fields"],
    ["another disposition", form(part('content-disposition: attachment; name="a"', "x")), "unsupported headers"],
    [
      "an encoded part",
      form(part('content-disposition: form-data; name="c"\r\ncontent-transfer-encoding: base64', "x")),
      "unsupported headers"
    ]
  ])("refuses %s", (_, body, why) => {
    assert.include(fields(body), why)
  })

  it.each([
    "multipart/form-data",
    "multipart/form-data; charset=utf-8",
    'multipart/form-data; x="; boundary=A"; boundary=B; boundary=C',
    "multipart/form-data; boundary",
    `multipart/form-data; boundary=${"x".repeat(71)}`,
    "multipart/form-data; boundary=;",
    'multipart/form-data; boundary="',
    "multipart/mixed; boundary=xyz"
  ])("refuses the type %s", (contentType) => {
    assert.include(fields(form(named('name="a"', "x")), ["a"], contentType), "The content-type of the form must")
  })

  it("finds a boundary where a quoted parameter holds another", () => {
    const tricky = 'multipart/form-data; x="; boundary=A"; boundary=xyz'
    assert.deepStrictEqual(fields(form(named('name="a"', "x")), ["a"], tricky), { a: "x" })
  })

  it("counts files apart from text", () => {
    const written = form(named('name="f"; filename="f"', "123456"), named('name="a"', "abc"), named('name="c"', "de"))
    const read = Result.getOrThrow(FormBody.read(type, Buffer.from(written), new Set()))
    assert.deepInclude(read, { files: 1, textBytes: 5 })
  })

  it("finds every field of a form that a client may write", () => {
    const text = fc.string({ unit: "grapheme", maxLength: 20 }).filter((value) => !value.includes("--xyz"))
    fc.assert(
      fc.property(text, text, (a, b) => {
        const written = form(named('name="a"', a), named('name="other"', "?"), named('name="b"', b))
        assert.deepStrictEqual(fields(written), { a, b })
      })
    )
  })

  it("takes what clients send: every form that the platform writes reads as it was meant", async () => {
    const value = fc.string({ unit: "grapheme", maxLength: 40 })
    await fc.assert(
      fc.asyncProperty(value, value, value, async (model, prompt, name) => {
        const data = new FormData()
        data.append("model", model)
        data.append("file", new Blob([prompt]), name)
        data.append("prompt", prompt)
        const request = new Response(data)
        const contentType = request.headers.get("content-type") ?? ""
        const found = fields(Buffer.from(await request.arrayBuffer()), ["model"], contentType)
        assert.deepStrictEqual(found, { model: model.replace(/\r\n|\r|\n/g, "\r\n") })
      }),
      { numRuns: 200 }
    )
  })

  it("says of no form what another reader does not: the platform's agrees on each that it takes", async () => {
    const bits = fc.constantFrom(
      "--xyz",
      "\r\n",
      "\n",
      "--",
      "x",
      " ",
      ":",
      'Content-Disposition: form-data; name="a"',
      "content-disposition: form-data; name=b",
      'Content-Disposition: form-data; name="c"; name="a"',
      'Content-Disposition: form-data; name="a"; filename="f"',
      "Content-Type: text/plain"
    )
    const broken = fc.array(bits, { maxLength: 14 }).map((all) => all.join(""))
    const nearly = fc
      .tuple(broken, fc.constantFrom('name="a"', "name=b"), broken)
      .map(([before, parameters, after]) => form(named(parameters, before), named('name="c"', after)))
    let agreed = 0
    await fc.assert(
      fc.asyncProperty(fc.oneof(broken, nearly), async (body) => {
        const found = fields(body)
        if (typeof found === "string") return
        const read = await new Response(body, { headers: { "content-type": type } }).formData().catch(() => undefined)
        if (read === undefined) return
        agreed++
        const theirs = ["a", "b"].flatMap((name) => (read.has(name) ? [[name, read.get(name)]] : []))
        assert.deepStrictEqual<unknown>(found, Object.fromEntries(theirs))
      }),
      { numRuns: 3_000 }
    )
    assert.isAbove(agreed, 100)
  })
})

describe("Form, url-encoded", () => {
  const text = fc.string({ unit: "grapheme" }).filter((value) => !value.includes("\ufffd"))

  it("reads what URLSearchParams writes", () => {
    fc.assert(
      fc.property(text, fc.string(), (a, c) => {
        const written = new URLSearchParams({ a, c }).toString()
        assert.deepStrictEqual(fields(written, ["a"], encoded), { a })
      })
    )
  })

  it.each<[string, string, unknown]>([
    ["reads fields", "a=x+y&b=%C3%A4&c=z", { a: "x y", b: "\u00e4" }],
    ["reads an empty one", "", {}],
    ["reads a field behind a semicolon too", "c=1;a=x", { a: "x" }],
    ["reads a name in escapes", "%61=x", { a: "x" }],
    ["reads fields without a value", "c&a&&b=", { a: "", b: "" }],
    ["reads a field as long as may be, in escapes", `a=${"%61".repeat(16_384)}`, { a: "a".repeat(16_384) }],
    ["leaves broken escapes as they are", "a=%zz%4", { a: "%zz%4" }],
    ["reads as many fields as may be", `${"c&".repeat(999)}a=x`, { a: "x" }]
  ])("%s", (_, body, found) => {
    assert.deepStrictEqual(fields(body, ["a", "b"], encoded), found)
  })

  it.each([
    ["a field that stands there twice", "a=x&a=y", "twice"],
    ["a field in a list", "a[0]=x", "plain field"],
    ["a field that some reader finds behind a question mark", "?a=x", "plain field"],
    ["a field that is no UTF-8", "a=%ff", "UTF-8 text"],
    ["a field whose bytes are not escaped", "a=\u00e4", "UTF-8 text"],
    ["too many fields", "c&".repeat(1001), "more than 1000 fields"],
    ["a field that is too long", `a=${"x".repeat(16_385)}`, "UTF-8 text"]
  ])("refuses %s", (_, body, why) => {
    assert.include(fields(body, ["a", "b"], `${encoded}; charset=utf-8`), why)
  })
})
