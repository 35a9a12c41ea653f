import fc from "fast-check"

/** JSON as people and programs write it: with any white space, any escapes, any nesting. */
export const { object, value } = fc.letrec<{ value: string; array: string; object: string }>((tie) => ({
  value: fc.oneof({ maxDepth: 4 }, scalar(), tie("object"), tie("array")),
  array: fc
    .tuple(fc.array(fc.tuple(space(), tie("value"), space()), { maxLength: 4 }), space())
    .map(([items, empty]) => `[${items.length === 0 ? empty : items.map((item) => item.join("")).join(",")}]`),
  object: fc
    .tuple(
      fc.uniqueArray(fc.tuple(space(), key(), space(), space(), tie("value"), space()), {
        maxLength: 6,
        selector: ([, key]): string => JSON.parse(key)
      }),
      space()
    )
    .map(([members, empty]) => `{${members.length === 0 ? empty : members.map(memberText).join(",")}}`)
}))

/** An object with white space around it. */
export const body = fc.tuple(space(), object, space()).map((parts) => parts.join(""))

function memberText([before, key, between, behind, value, after]: [string, string, string, string, string, string]) {
  return `${before}${key}${between}:${behind}${value}${after}`
}

function space() {
  return fc.constantFrom("", "", "", " ", "\n", "\t", " \r\n  ")
}

function scalar() {
  return fc.oneof(
    text(),
    fc.constantFrom("null", "true", "false", "0", "-0", "1.50", "1e5", "-12E-3", "12345678901234567890"),
    fc.integer().map(String)
  )
}

/**
 * The names that matter, also in disguise, among any others. None holds a backslash: behind the same keys, V8 14 would
 * read a key with escapes as that one (nodejs/node#63785), and the tests compare with what V8 reads.
 */
function key() {
  return fc.oneof(
    fc.constantFrom('"usage"', '"a"', '"guardrails"', '"us\\u0061ge"', '"stream_options"', '"__proto__"', '"1"', '""'),
    text().filter((key) => !JSON.parse(key).includes("\\"))
  )
}

function text() {
  const awkward = fc.constantFrom('"', "\\", "{", "}", "[", "]", ",", ":", '\\"', "\\\\", "é", "☃", "🚀", "\u2028", "x")
  return fc
    .tuple(fc.string({ unit: fc.oneof(awkward, fc.constantFrom(..."abc 012")), maxLength: 8 }), fc.boolean())
    .map(([text, escaped]) => (escaped ? `"${[...text].map(escapes).join("")}"` : JSON.stringify(text)))
}

function escapes(character: string) {
  return Array.from(
    { length: character.length },
    (_, i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, "0")}`
  ).join("")
}
