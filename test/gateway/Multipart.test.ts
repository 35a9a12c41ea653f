import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import fc from "fast-check"
import * as Multipart from "../../src/gateway/Multipart.ts"

const type = "multipart/form-data; boundary=xyz"
const part = (disposition: string, content: string) =>
  `--xyz\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n${content}\r\n`
const form = (...parts: ReadonlyArray<string>) => `${parts.join("")}--xyz--\r\n`

const fields = (body: string | Buffer, wanted: ReadonlyArray<string> = ["a", "b"], contentType = type) =>
  Result.match(Multipart.fields(contentType, Buffer.from(body), new Set(wanted)), {
    onFailure: (message) => message,
    onSuccess: (found) => Object.fromEntries(found)
  })

describe("Multipart", () => {
  it.each<[string, string | Buffer, { readonly [name: string]: string }]>([
    ["reads fields", form(part('name="a"', "x"), part('name="b"', "y\r\nz")), { a: "x", b: "y\r\nz" }],
    ["reads names without quotes", form(part("name=a", "x")), { a: "x" }],
    ["reads quoted quotes", form(part('name="a"', '"')), { a: '"' }],
    ["leaves out what nobody asks for", form(part('name="c"', "x")), {}],
    ["leaves out files", form(part('name="a"; filename="f.txt"', "x")), {}],
    ["leaves out files with an encoded name", form(part("name=a; filename*=utf-8''f", "x")), {}],
    [
      "leaves out what is longer than 16 KiB",
      form(part('name="a"', "x".repeat(16_385)), part('name="b"', "y")),
      { b: "y" }
    ],
    ["passes a preamble", `hello\r\n${form(part('name="a"', "x"))}`, { a: "x" }],
    ["reads an empty field", form(part('name="a"', "")), { a: "" }],
    ["reads an empty form", "--xyz--", {}],
    [
      "leaves out what is no UTF-8",
      Buffer.concat([
        Buffer.from(`--xyz\r\nContent-Disposition: form-data; name="a"\r\n\r\n`),
        Buffer.from([0xff]),
        Buffer.from("\r\n--xyz--")
      ]),
      {}
    ]
  ])("%s", (_, body, found) => {
    assert.deepStrictEqual(fields(body), found)
  })

  it("takes a quoted boundary", () => {
    assert.deepStrictEqual(fields(form(part('name="a"', "x")), ["a"], 'multipart/form-data; boundary="xyz"'), {
      a: "x"
    })
  })

  it.each([
    ["a decisive field that stands there twice", form(part('name="a"', "x"), part('name="a"', "y")), "twice"],
    ["a form without its end", part('name="a"', "x"), "no end"],
    ["no form at all", "hello", "no end"],
    ["a part without a content", "--xyz\r\nContent-Disposition: form-data\r\n", "no end"]
  ])("refuses %s", (_, body, why) => {
    assert.include(fields(body), why)
  })

  it("refuses a type without a boundary", () => {
    assert.include(fields("", [], "multipart/form-data; charset=utf-8"), "no boundary")
  })

  it("finds every field of a form that a client may write, and ends on any bytes", () => {
    const text = fc.string({ unit: "grapheme", maxLength: 20 }).filter((value) => !value.includes("--xyz"))
    fc.assert(
      fc.property(text, text, (a, b) => {
        assert.deepStrictEqual(fields(form(part('name="a"', a), part('name="other"', "?"), part('name="b"', b))), {
          a,
          b
        })
      })
    )
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom("--xyz", "\r\n", "--", "a", 'Content-Disposition: form-data; name="a"')),
        (bits) => {
          fields(bits.join(""))
        }
      )
    )
  })
})
