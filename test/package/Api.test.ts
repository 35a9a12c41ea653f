import { assert, beforeAll, describe, it } from "@effect/vitest"
import { others, stored } from "./ApiFiles.ts"
import { reports } from "./ApiReport.ts"
import { entries } from "./Declarations.ts"

const renewal =
  "The public API differs from its report. If the change is intended, run `npm run api` and commit test/package/api."

describe("the public API", () => {
  let current: ReadonlyMap<string, string>

  beforeAll(() => {
    current = reports()
  }, 300_000)

  it.each(entries)("is that of the report: $name", ({ name }) => {
    assert.strictEqual(current.get(name), stored(name), renewal)
  })

  it("has no report without an entry", () => {
    assert.deepStrictEqual(others(current.keys()), [], renewal)
  })
})
