import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { csvCell, formatDollars } from "../../../src/control/usage/UsageExport.ts"

/** The cells of one line, as a reader of RFC 4180 takes them. */
const cellsOf = (line: string): ReadonlyArray<string> =>
  [...`,${line}`.matchAll(/,(?:"((?:[^"]|"")*)"|([^",]*))/g)].map(([, quoted, plain = ""]) =>
    quoted === undefined ? plain : quoted.replaceAll('""', '"')
  )

describe("A cell of CSV", () => {
  it.each([
    ["plain", "plain"],
    ["=1+1", "'=1+1"],
    ["+1", "'+1"],
    ["-1", "'-1"],
    ["@a", "'@a"],
    ["\tx", "'\tx"],
    ["\r=1", '"\'\r=1"'],
    ["\n=1", '"\'\n=1"'],
    [" =1", "' =1"],
    ["＝1+1", "'＝1+1"],
    ["＠SUM(1)", "'＠SUM(1)"],
    ["a=b", "a=b"],
    ['a "b", c', '"a ""b"", c"'],
    ['=HYPERLINK("x","y")', '"\'=HYPERLINK(""x"",""y"")"'],
    ["two\nlines", '"two\nlines"'],
    ["", ""]
  ])("%j is written as %j", (text, written) => assert.strictEqual(csvCell(text), written))

  it.effect.prop(
    "reads back as it was, with an apostrophe before what a spreadsheet would run",
    [Schema.Array(Schema.String).check(Schema.isMinLength(1))],
    ([texts]) =>
      Effect.sync(() => {
        const read = cellsOf(texts.map(csvCell).join(","))
        assert.deepStrictEqual(
          read,
          texts.map((text) => (/^(?:[\t\r\n]|\s*[=+\-@＝＋－＠])/.test(text) ? `'${text}` : text))
        )
      }),
    { arbitrary: { runs: 300 } }
  )
})

describe("Dollars", () => {
  it.each([
    [0, "0"],
    [1e-9, "0.000000001"],
    [0.0015, "0.0015"],
    [10, "10"],
    [1_200_300.000_000_5, "1200300.0000005"]
  ])("%d is written as %s", (usd, written) => assert.strictEqual(formatDollars(usd), written))
})
