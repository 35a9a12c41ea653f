import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import type { UsageEvent } from "../../../src/control/api/usage/UsageApi.ts"
import { exportedCsv } from "./ExportedEvent.ts"

const columns = 41
const teamColumn = 29
const costColumn = 12

/** The line of an event, as it stands after the header. */
const lineOf = (members: Partial<UsageEvent>) =>
  Effect.map(exportedCsv(members), (text) => text.slice(text.indexOf("\r\n") + 2))

/** The cells of one line, as a reader of RFC 4180 takes them. */
const cellsOf = (line: string): ReadonlyArray<string> =>
  [...`,${line.slice(0, -2)}`.matchAll(/,(?:"((?:[^"]|"")*)"|([^",]*))/g)].map(([, quoted, plain = ""]) =>
    quoted === undefined ? plain : quoted.replaceAll('""', '"')
  )

describe("A cell of CSV", () => {
  it.effect.each<[text: string, written: string]>([
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
  ])("%j is written as %j", ([text, written]) =>
    Effect.gen(function* () {
      const line = yield* lineOf({ team_id: text })
      assert.isTrue(line.endsWith(`,,,${written}${",".repeat(columns - 1 - teamColumn)}0\r\n`), line)
    })
  )

  it.effect.prop(
    "reads back as it was, with an apostrophe before what a spreadsheet would run",
    [Schema.String, Schema.String],
    ([first, team]) =>
      Effect.gen(function* () {
        const read = cellsOf(yield* lineOf({ request_id: first, team_id: team }))
        assert.strictEqual(read.length, columns)
        assert.deepStrictEqual(
          [read[0], read[teamColumn]],
          [first, team].map((text) =>
            (/^(?:[\t\r\n]|\s*[=+\-@＝＋－＠])/.test(text) ? `'${text}` : text).toWellFormed()
          )
        )
      }),
    { arbitrary: { runs: 300 } }
  )
})

describe("Dollars", () => {
  it.effect.each<[usd: number, written: string]>([
    [0, "0"],
    [1e-9, "0.000000001"],
    [0.0015, "0.0015"],
    [10, "10"],
    [1_200_300.000_000_5, "1200300.0000005"]
  ])("%d is written as %s", ([usd, written]) =>
    Effect.gen(function* () {
      assert.strictEqual(cellsOf(yield* lineOf({ estimated_cost_usd: usd }))[costColumn], written)
    })
  )
})
