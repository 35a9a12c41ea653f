import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import * as JsonMembers from "../../../src/policy/facts/JsonMembers.ts"
import * as JsonText from "../../gateway/JsonText.ts"

describe("JsonMembers", () => {
  it("finds each member of any object where it stands", () => {
    fc.assert(
      fc.property(JsonText.body, (text) => {
        const members = JsonMembers.topLevel(text)
        assert.sameMembers(
          members.map(({ key }) => key),
          Object.keys(parsed(text))
        )
        for (const { end, key, start, valueStart } of members) {
          assert.deepStrictEqual(JSON.parse(text.slice(valueStart, end)), parsed(text)[key])
          assert.strictEqual(text[start], '"')
        }
      }),
      { numRuns: 300 }
    )
  })

  it("removes members as if they had never been there, and leaves the others' text as it was", () => {
    fc.assert(
      fc.property(JsonText.body, fc.func(fc.boolean()), (text, drop) => {
        const result = JsonMembers.without(text, drop)
        const kept = Object.entries(parsed(text)).filter(([key]) => !drop(key))
        assert.deepStrictEqual(parsed(result), Object.fromEntries(kept))
        assert.deepStrictEqual(
          texts(result),
          texts(text).filter(([key]) => !drop(key))
        )
      }),
      { numRuns: 300 }
    )
  })

  it("sets a member, and leaves every other byte as it was", () => {
    fc.assert(
      fc.property(JsonText.body, fc.constantFrom("usage", "a", "new"), JsonText.value, (text, key, json) => {
        const result = JsonMembers.withMember(text, key, json)
        assert.deepStrictEqual(parsed(result), { ...parsed(text), [key]: JSON.parse(json) })
        const others = (all: ReturnType<typeof texts>) => all.filter(([name]) => name !== key)
        assert.deepStrictEqual(others(texts(result)), others(texts(text)))
      }),
      { numRuns: 300 }
    )
  })

  it("lists the items of any array", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(JsonText.value, fc.constantFrom("", " ", "\n"))), (values) => {
        const text = ` [ ${values.map(([value, space]) => value + space).join(",")} ] `
        assert.deepStrictEqual(
          JsonMembers.items(text),
          values.map(([value]) => value)
        )
      }),
      { numRuns: 200 }
    )
  })

  it.each([
    ['{"a":1,"usage":null}', '{"a":1}'],
    ['{"a": 1, "b": 2, "usage": null}', '{"a": 1, "b": 2}'],
    ['{"usage":null,"a":1}', '{"a":1}'],
    ['{ "usage" : null , "a" : 1 }', '{ "a" : 1 }'],
    ['{"a":1,"usage":null,"b":1.50}', '{"a":1,"b":1.50}'],
    ['{"usage":null}', "{}"],
    ['{"us\\u0061ge":null,"a":{"usage":null}}', '{"a":{"usage":null}}'],
    ['{"\\\\":1,"usage":null,"\\\\\\"":2}', '{"\\\\":1,"\\\\\\"":2}'],
    ['{"a":"\\"usage\\":{"}', '{"a":"\\"usage\\":{"}'],
    ["{}", "{}"],
    ['[{"usage":null}]', '[{"usage":null}]']
  ])("%s without usage is %s", (text, expected) => {
    assert.strictEqual(
      JsonMembers.without(text, (key) => key === "usage"),
      expected
    )
  })

  it.each([
    ['{"a":12345678901234567890,"k":[1 , 2],"b":1e3}', '{"a":12345678901234567890,"k":true,"b":1e3}'],
    ['{ "a" : 1 }', '{"k":true, "a" : 1 }'],
    ["{}", '{"k":true}'],
    ["\n{ }", '\n{"k":true }'],
    ['{"k":1,"k":2}', '{"k":1,"k":true}']
  ])("%s with k set is %s", (text, expected) => {
    assert.strictEqual(JsonMembers.withMember(text, "k", "true"), expected)
  })

  it("walks text that nests deeper than the call stack", () => {
    const deep = `{"a":${'{"b":['.repeat(200_000)}${"]}".repeat(200_000)},"k":1}`
    assert.strictEqual(
      JsonMembers.without(deep, (key) => key === "a"),
      '{"k":1}'
    )
  })
})

const parsed = (text: string): { readonly [key: string]: unknown } => JSON.parse(text)

const texts = (text: string) =>
  JsonMembers.topLevel(text).map(({ end, key, start }) => [key, text.slice(start, end)] as const)
