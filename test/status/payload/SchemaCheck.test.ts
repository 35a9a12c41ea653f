import { assert, describe, it } from "@effect/vitest"
import { Effect, Result, Schema } from "effect"
import * as Payload from "../../../src/messaging/envelope/Payload.ts"
import * as PayloadJsonSchema from "../../../src/messaging/envelope/PayloadJsonSchema.ts"
import * as SchemaCheck from "../../../src/status/payload/SchemaCheck.ts"
import { excessiveGrowth } from "../../linear/Growth.ts"

const jsonSchemaOf = (schema: Schema.Constraint): unknown =>
  JSON.parse(Result.getOrThrow(PayloadJsonSchema.ofSchema(schema)))

const compare = (schema: unknown, value: unknown) => SchemaCheck.compare(schema, value, "payload")

const told = (schema: unknown, value: unknown) =>
  compare(schema, value).mistakes.map(({ field, problem }) => `${field} ${problem}`)

interface Category {
  readonly name: string
  readonly children: ReadonlyArray<Category>
}
const Category = Schema.Struct({
  name: Schema.NonEmptyString,
  children: Schema.Array(Schema.suspend((): Schema.Codec<Category> => Category))
})

const Order = Schema.Struct({
  to: Schema.String,
  copies: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 5 })),
  price: Schema.Number,
  note: Schema.optional(Schema.String),
  colour: Schema.Literals(["red", "green"]),
  code: Schema.String.check(Schema.isPattern(/^[A-Z]{2}\d+$/u)),
  at: Schema.DateFromString,
  limits: Schema.Record(Schema.String, Schema.Finite),
  pair: Schema.Tuple([Schema.String, Schema.Finite]),
  items: Schema.Array(Schema.Struct({ id: Schema.NonEmptyString, tags: Schema.UniqueArray(Schema.String) })),
  way: Schema.Union([
    Schema.TaggedStruct("Mail", { address: Schema.String }),
    Schema.TaggedStruct("Call", { number: Schema.String })
  ]),
  category: Category
})

const good = {
  to: "ada",
  copies: 2,
  price: 3.5,
  colour: "red",
  code: "AB12",
  at: "2026-01-01",
  limits: { day: 1 },
  pair: ["a", 1],
  items: [{ id: "1", tags: ["x", "y"] }],
  way: { _tag: "Call", number: "5" },
  category: { name: "a", children: [{ name: "b", children: [] }] },
  more: "is allowed"
}

describe("a payload is compared with the schema of its handler", () => {
  const schema = jsonSchemaOf(Order)
  const decode = Payload.decoder(Order)
  /** The members that the handler itself refuses. */
  const refusedByHandler = (value: unknown) =>
    Effect.matchEffect(decode(value), {
      onSuccess: () => Effect.succeed([]),
      onFailure: (mistakes) => Effect.succeed(mistakes.map(({ field }) => `payload${field === "" ? "" : `.${field}`}`))
    })

  it.effect.each<[string, unknown, ReadonlyArray<string>]>([
    ["what fits", good, []],
    ["a member that is missing", { ...good, to: undefined }, ["payload.to is required"]],
    ["another type", { ...good, to: 5 }, ["payload.to must be string"]],
    ["a number out of bounds", { ...good, copies: 9 }, ["payload.copies must be at most 5"]],
    ["a number that is not whole", { ...good, copies: 1.5 }, ["payload.copies must be an integer"]],
    ["a text in place of a number", { ...good, price: "NaN" }, ["payload.price must be number"]],
    ["null for a member that may be missing", { ...good, note: null }, ["payload.note must be string"]],
    ["another literal", { ...good, colour: "blue" }, ['payload.colour must be "red" | "green"']],
    ["another pattern", { ...good, code: "ab" }, ["payload.code must match the pattern ^[A-Z]{2}\\d+$"]],
    ["a value of a record", { ...good, limits: { day: "1" } }, ["payload.limits.day must be number"]],
    ["an item of a tuple", { ...good, pair: ["a", "b"] }, ["payload.pair.1 must be number"]],
    ["a tuple that is too short", { ...good, pair: ["a"] }, ["payload.pair must have at least 2 items"]],
    [
      "an item of a list",
      { ...good, items: [{ id: "", tags: [] }] },
      ["payload.items.0.id must have at least 1 character"]
    ],
    [
      "an item twice",
      { ...good, items: [{ id: "1", tags: ["x", "x"] }] },
      ["payload.items.0.tags must not have an item twice"]
    ],
    ["a member of the form that is meant", { ...good, way: { _tag: "Call" } }, ["payload.way.number is required"]],
    [
      "no form",
      { ...good, way: { _tag: "Walk" } },
      ['payload.way must be object with _tag "Mail" | object with _tag "Call"']
    ],
    [
      "a part of a recursive schema",
      { ...good, category: { name: "a", children: [{ name: "", children: [] }] } },
      ["payload.category.children.0.name must have at least 1 character"]
    ],
    ["no object", [], ["payload must be object"]]
  ])("and told of: %s", ([, given, mistakes]) =>
    Effect.gen(function* () {
      const value: unknown = JSON.parse(JSON.stringify(given))
      assert.deepStrictEqual(told(schema, value), mistakes)
      const refused = yield* refusedByHandler(value)
      // A tuple's own mistakes name the item that is missing.
      if (!mistakes.some((mistake) => mistake.startsWith("payload.pair must"))) {
        assert.deepStrictEqual(
          refused,
          mistakes.map((mistake) => mistake.split(" ")[0])
        )
      } else assert.isNotEmpty(refused)
    })
  )
})

describe("a schema is foreign text", () => {
  /** The schema of what is nested in itself, by two ways that fit alike. */
  const twice = (part: (next: unknown) => unknown) => {
    const next = { properties: { next: { $ref: "#/$defs/it" } } }
    return { $ref: "#/$defs/it", $defs: { it: part([next, next]) } }
  }
  const nested = (levels: number) => {
    let value: unknown = { end: 1 }
    for (let level = 0; level < levels; level++) value = { next: value }
    return value
  }
  const pairs = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`member${n}`, n]))

  /** The longest that a check may keep the server from other work, on a machine that does other things as well. */
  const briefly = 1_500

  it.each<[string, unknown, unknown, string | undefined]>([
    ["no schema at all", 5, {}, "a part of the schema that is no schema"],
    [
      "one elsewhere",
      { $ref: "https://example.org/schema.json" },
      {},
      'what "https://example.org/schema.json" refers to'
    ],
    ["a part that is not there", { $ref: "#/$defs/it" }, {}, 'what "#/$defs/it" refers to'],
    ["a part of every object", { $ref: "#/constructor" }, {}, 'what "#/constructor" refers to'],
    ["itself", { $ref: "#" }, {}, undefined],
    ["itself by two ways", { anyOf: [{ $ref: "#" }, { $ref: "#" }] }, {}, undefined],
    ["itself for the members, by two ways", twice((next) => ({ anyOf: next })), nested(80), undefined],
    ["itself for the members, by all of two ways", twice((next) => ({ allOf: next })), nested(80), undefined],
    ["itself for the members, by one of two ways", twice((next) => ({ oneOf: next })), nested(80), undefined],
    [
      "itself for each level of a deep payload",
      { properties: { next: { $ref: "#" } } },
      nested(100_000),
      "what is nested in more than 300 levels"
    ],
    [
      "a schema of many levels",
      JSON.parse(`${'{"not":'.repeat(9_000)}true${"}".repeat(9_000)}`),
      {},
      "what is nested in more than 300 levels"
    ],
    [
      "many forms of many members",
      { anyOf: Array.from({ length: 5_000 }, () => ({ properties: { member0: false } })) },
      pairs(100_000),
      "the rest, because the comparison takes too long"
    ],
    [
      "many counts of many members",
      { allOf: Array.from({ length: 3_000 }, () => ({ minProperties: 1 })) },
      pairs(100_000),
      undefined
    ],
    [
      "many values for many items",
      { items: { enum: Array.from({ length: 9_000 }, (_, n) => `v${n}`) } },
      Array.from({ length: 100_000 }, () => "v8999"),
      "the rest, because the comparison takes too long"
    ],
    ["a pattern that would take for ever", { pattern: "^(a+)+$" }, `${"a".repeat(100_000)}!`, undefined],
    ["a pattern with a reference back", { pattern: "^(a*)*\\1$" }, "a".repeat(1_000), "the pattern ^(a*)*\\1$"],
    ["a pattern with a look-ahead", { pattern: "^(?=a)(a|aa)+$" }, "a".repeat(1_000), "the pattern ^(?=a)(a|aa)+$"],
    [
      "a pattern that is long when it is written out",
      { pattern: "((a{1000}b{1000}){1000}){1000}" },
      "a",
      "the pattern ((a{1000}b{1000}){1000}){1000}"
    ],
    [
      "many patterns",
      { patternProperties: Object.fromEntries(Array.from({ length: 3_000 }, (_, n) => [`(a|b|${n}){99}`, true])) },
      pairs(1_000),
      "the rest, because the comparison takes too long"
    ],
    ["no pattern", { pattern: "(" }, "a", "the pattern ("],
    ["a keyword that is not checked", { contains: { const: 1 } }, [], "the keyword contains"],
    [
      "the names of all objects",
      { required: ["constructor"], properties: { toString: { type: "string" } } },
      { constructor: 1 },
      undefined
    ]
  ])("that may refer to or be: %s", (_, schema, value, left) => {
    const startedAt = performance.now()
    const { mistakes, notChecked } = compare(schema, value)
    assert.isBelow(performance.now() - startedAt, briefly)
    if (left === undefined) assert.deepStrictEqual(notChecked, [])
    else
      assert.isTrue(
        notChecked.some((note) => note.endsWith(`: ${left}`)),
        notChecked.join("\n")
      )
    if (!/for ever|many forms|by one of two ways/.test(_)) assert.deepStrictEqual(mistakes, [])
  })

  it("that can neither prove nor refute what was left out of it", () => {
    const pattern = { pattern: "^(?=a)" }
    for (const schema of [
      { not: pattern },
      { oneOf: [pattern, true] },
      { anyOf: [pattern, false] },
      { allOf: [pattern] }
    ])
      assert.deepStrictEqual(told(schema, "b"), [])
    assert.deepStrictEqual(told({ allOf: [pattern, { maxLength: 0 }] }, "b"), [
      "payload must have at most 0 characters"
    ])
  })

  it("whose patterns mean what they mean to handlers", () => {
    assert.deepStrictEqual(told({ pattern: "^\\p{Lu}.$" }, "Äß"), [])
    assert.deepStrictEqual(told({ pattern: "^\\s$" }, "a"), ["payload must match the pattern ^\\s$"])
    // RE2 knows less white space than JavaScript
    assert.deepStrictEqual(compare({ pattern: "^\\s$" }, "\u00a0"), {
      mistakes: [],
      hasMore: false,
      notChecked: ["payload: the pattern ^\\s$"]
    })
  })

  it("of which 50 mistakes are told, with paths that do not grow with the names in them", () => {
    const items = Array.from({ length: 60 }, () => 1)
    const { hasMore, mistakes } = compare({ items: { type: "string" } }, items)
    assert.deepStrictEqual([mistakes.length, hasMore, mistakes.at(-1)?.field], [50, true, "payload.49"])
    const named = { ["x".repeat(100_000)]: { inner: 1 } }
    assert.deepStrictEqual(told({ additionalProperties: { required: ["y"] } }, named), ["payload is required"])
    const large = { enum: Array.from({ length: 500 }, () => "y".repeat(1_000)) }
    assert.isBelow(told(large, "x").join().length, 1_000)
  })

  it("is read in a time that grows as the payload does", () => {
    const schema = {
      items: { anyOf: [{ $ref: "#/$defs/item" }, { type: "null" }] },
      $defs: {
        item: {
          type: "object",
          required: ["id"],
          properties: {
            id: { type: "string", pattern: "^(a|ab|b)*$" },
            tags: { type: "array", uniqueItems: true, items: { enum: ["x", "y"] } }
          },
          patternProperties: { "^x-": { type: "string" } },
          additionalProperties: { type: ["number", "string"] }
        }
      }
    }
    const item = { id: "abab", tags: ["x", "y"], "x-a": "1", more: 5 }
    const growth = excessiveGrowth(
      (length) => {
        const value = Array.from({ length }, (_, n) => (n % 3 === 0 ? null : item))
        return () => compare(schema, value)
      },
      { longest: 32_768, cheapMs: 5 }
    )
    assert.isUndefined(growth)
  })
})
