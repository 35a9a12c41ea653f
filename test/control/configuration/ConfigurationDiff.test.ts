import { assert, describe, it } from "@effect/vitest"
import type { Schema } from "effect"
import fc from "fast-check"
import * as ConfigurationDiff from "../../../src/control/configuration/ConfigurationDiff.ts"
import { ofKey } from "../../../src/control/configuration/KeyChangeSummary.ts"
import { type EntriesById, fingerprint } from "../../../src/control/store/Fingerprint.ts"

const json: fc.Arbitrary<Schema.Json> = fc.letrec<{ json: Schema.Json }>((tie) => ({
  json: fc.oneof(
    { depthSize: "small" },
    fc.constant(null),
    fc.boolean(),
    fc.integer({ min: 0, max: 3 }),
    fc.constantFrom("a", "b"),
    fc.array(tie("json"), { maxLength: 2 }),
    fc.dictionary(fc.constantFrom("x", "y", "z"), tie("json"))
  )
})).json

const object = fc.dictionary(fc.constantFrom("x", "y", "z", "__proto__"), json)
const entries = fc
  .dictionary(fc.constantFrom("1", "2", "3", "4"), object, { noNullPrototype: true })
  .map((all): EntriesById => new Map(Object.entries(all)))

const reordered = (value: Schema.Json): Schema.Json =>
  Array.isArray(value)
    ? value.map(reordered)
    : value === null || typeof value !== "object"
      ? value
      : Object.fromEntries(
          Object.entries(value)
            .reverse()
            .map(([name, member]) => [name, reordered(member)])
        )

const shuffled = (all: EntriesById): EntriesById =>
  new Map([...all].reverse().map(([id, entry]) => [id, Object(reordered(entry))]))

const applied = (before: EntriesById, differences: ReadonlyArray<ConfigurationDiff.EntryChange>): EntriesById => {
  const entries = new Map(before)
  for (const { after, id } of differences) {
    if (after === null) entries.delete(id)
    else entries.set(id, after)
  }
  return entries
}

describe("Difference", () => {
  it("there is none between equals, however they are ordered", () => {
    fc.assert(
      fc.property(entries, (all) => {
        assert.deepStrictEqual(ConfigurationDiff.diffEntries(all, all), [])
        assert.deepStrictEqual(ConfigurationDiff.diffEntries(all, shuffled(all)), [])
      })
    )
  })

  it("applied, it leaves none", () => {
    fc.assert(
      fc.property(entries, entries, (before, after) => {
        const led = applied(before, ConfigurationDiff.diffEntries(before, after))
        assert.deepStrictEqual(ConfigurationDiff.diffEntries(led, after), [])
        assert.deepStrictEqual(new Set(led.keys()), new Set(after.keys()))
      })
    )
  })

  it("does not depend on any order", () => {
    fc.assert(
      fc.property(entries, entries, (before, after) => {
        assert.deepStrictEqual(
          ConfigurationDiff.diffEntries(shuffled(before), shuffled(after)).map(({ action, fields, id }) => ({
            action,
            fields,
            id
          })),
          ConfigurationDiff.diffEntries(before, after).map(({ action, fields, id }) => ({ action, fields, id }))
        )
      })
    )
  })

  it("has a field for all that differs, and the same fingerprint only for the same", () => {
    const of = (all: EntriesById) => fingerprint(new Map([["section", all]]))
    fc.assert(
      fc.property(entries, entries, (before, after) => {
        const differences = ConfigurationDiff.diffEntries(before, after)
        for (const { action, fields } of differences) assert.isTrue(action !== "update" || fields.length > 0)
        assert.strictEqual(of(before) === of(after), differences.length === 0)
        assert.strictEqual(of(before), of(shuffled(before)))
      })
    )
  })

  it("names a field by its path, and takes a list as one value", () => {
    const before = new Map([["k", { policy: { rpm_limit: 1, allowed_models: ["a"] }, disabled: false }]])
    const after = new Map([["k", { policy: { rpm_limit: null, allowed_models: ["a", "b"] }, disabled: false }]])
    assert.deepStrictEqual(ConfigurationDiff.diffEntries(before, after)[0]?.fields, [
      { path: "policy.allowed_models", before: ["a"], after: ["a", "b"] },
      { path: "policy.rpm_limit", before: 1, after: null }
    ])
  })
})

describe("what a key loses or gains", () => {
  it.each([
    ["policy.allowed_models", ["a", "b"], ["b", "c"], "loses models a; gains models c"],
    ["policy.allowed_models", null, ["a"], "loses all models but a"],
    ["policy.allowed_routes", null, [], "loses all routes but none"],
    ["policy.allowed_providers", ["upstream"], null, "gains all providers (it had upstream)"],
    ["policy.allowed_hours_utc", [1, 2], [2, 1], "has its hours_utc in another order"],
    ["policy.rpm_limit", 60, 10, "loses: its rpm_limit falls from 60 to 10"],
    ["policy.rpm_limit", 0, 10, "gains: its rpm_limit rises from 0 to 10"],
    ["policy.daily_budget_usd", null, 0.5, "loses: its daily_budget_usd is 0.5, where there was none"],
    ["policy.daily_budget_usd", 0.5, null, "gains: its daily_budget_usd of 0.5 is lifted"],
    ["policy.allow_tools", true, false, "loses tools"],
    ["policy.allow_streaming", false, true, "gains streaming"],
    ["policy.deny", false, true, "is denied everything"],
    ["disabled", false, true, "is disabled and loses everything"],
    ["expires_at", null, "2030-01-01T00:00:00.000Z", "expires on 2030-01-01T00:00:00.000Z"],
    ["project", "a", null, "has project none instead of a"]
  ] as const)("%s from %j to %j", (path, before, after, meaning) => {
    assert.strictEqual(ofKey("k", [{ path, before, after }]), `Key k ${meaning}.`)
  })

  it("shortens long lists", () => {
    const many = Array.from({ length: 25 }, (_, n) => `m${n}`)
    const said = ofKey("k", [{ path: "policy.allowed_models", before: [], after: many }])
    assert.match(said, /gains models m0, .*m19 and 5 more\.$/)
  })
})
