import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import * as JsonBounds from "../../../src/policy/facts/JsonBounds.ts"
import * as JsonMembers from "../../../src/policy/facts/JsonMembers.ts"
import * as JsonText from "../../gateway/JsonText.ts"

const deep = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`
const array = (item: string, length: number) => `[${Array.from({ length }, () => item).join()}]`

describe("JsonBounds", () => {
  it.each([
    ["as deep as may be", deep(JsonBounds.maxDepth)],
    ["as many numbers as may be", array("1", JsonBounds.maxWeight - 9)],
    ["as many objects as may be", array("{}", 90_900)],
    ["brackets in a string", JSON.stringify("[".repeat(1_000_000))],
    ["quotation marks in a string", JSON.stringify('\\"['.repeat(100_000))]
  ])("takes %s", (_, json) => assert.isUndefined(JsonBounds.excessOf(json)))

  it.each([
    ["deeper", deep(JsonBounds.maxDepth + 1), /deeper than 256 levels/],
    ["deeper, of both kinds", '[{"a":'.repeat(129), /deeper than 256 levels/],
    ["brackets that nothing closes", "[".repeat(1_048_576), /deeper than 256 levels/],
    ["more numbers", array("1", JsonBounds.maxWeight), /the limit of 1000000 values/],
    ["more objects", array("{}", 91_000), /the limit of \d+ values/],
    ["more members", `{${Array.from({ length: 91_000 }, (_, at) => `"${at}":1`).join()}}`, /the limit of \d+ values/]
  ])("refuses %s", (_, json, why) => assert.match(JsonBounds.excessOf(json) ?? "", why))

  it("counts the members of any object, unless one of their names is written with escapes", () => {
    fc.assert(
      fc.property(JsonText.body, JsonText.body, (text, again) => {
        const doubled = `${text.trimEnd().slice(0, -1)}${Object.keys(parsed(text)).length === 0 ? "" : ","}"more":${again}}`
        for (const json of [text, doubled, `{"a":${again},"a":[${text}]}`]) {
          const members = JsonMembers.topLevel(json)
          const plain = members.some(({ escaped }) => escaped) ? undefined : members.length
          assert.strictEqual(JsonBounds.shapeOf(Buffer.from(json)).members, plain)
        }
      }),
      { numRuns: 300 }
    )
  })
})

const parsed = (text: string): object => JSON.parse(text)
