import { posix } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import fc from "fast-check"
import * as Path from "../../../src/policy/routes/Path.ts"

describe("Path", () => {
  describe("refuses what two upstreams could read differently, and says what it is", () => {
    it.each(attacks())("%j %s", (target, sentence) => {
      assert.deepStrictEqual(Path.canonicalise(target), Result.fail(sentence))
    })
  })

  describe("takes what has one reading, with its segments", () => {
    it.each([
      ["/", [""]],
      ["/v1/chat/completions", ["v1", "chat", "completions"]],
      ["/v1/models/", ["v1", "models", ""]],
      ["/v1/messages/batches/msgbatch_01HkcTjaV5uDC8jWR4ZsDV8d", ["v1", "messages", "batches", longId()]],
      ["/v1/models?after=//..%2f\\;#", ["v1", "models"]],
      ["/v1/models?", ["v1", "models"]],
      ["/a.b/..c/d..", ["a.b", "..c", "d.."]],
      ["/.../x", ["...", "x"]],
      ["/a,b=c&d@e:f!$'()*+", ["a,b=c&d@e:f!$'()*+"]]
    ])("%j", (target, segments) => {
      assert.deepStrictEqual(segmentsOf(target), segments)
    })
  })

  it("reads an escape of a letter, a digit, - _ or ~ as the character itself", () => {
    assert.deepStrictEqual(segmentsOf("/v1/%6Dodel%73"), ["v1", "models"])
    assert.deepStrictEqual(segmentsOf("/%76%31/%61%2D%5f%7e"), ["v1", "a-_~"])
  })

  it("keeps other escapes, in upper case", () => {
    assert.deepStrictEqual(segmentsOf("/v1/na%c3%afve%20a%2bb"), ["v1", "na%C3%AFve%20a%2Bb"])
  })

  it("takes 8192 characters and not one more, and any query behind them", () => {
    const longest = `/v1/${"x".repeat(8192 - "/v1/".length)}`
    assert.isTrue(Result.isSuccess(Path.canonicalise(longest)))
    assert.isTrue(Result.isSuccess(Path.canonicalise(`${longest}?${"x".repeat(8192)}`)))
    assert.deepStrictEqual(Path.canonicalise(`${longest}x`), Result.fail("is longer than 8192 characters"))
  })

  it("agrees with every reader on each path that it takes: URL parsers, decoders, normalisers", () => {
    let taken = 0
    fc.assert(
      fc.property(target, (target) => {
        const canonical = Path.canonicalise(target)
        if (Result.isFailure(canonical)) return
        taken++
        const ours = canonical.success.segments.map(decodeURIComponent)
        const parsed = new URL(`http://upstream${target}`).pathname
        assert.deepStrictEqual(parsed.slice(1).split("/").map(decodeURIComponent), ours)
        const decoded = decodeURIComponent(target.split("?", 1)[0] ?? "")
        assert.strictEqual(posix.normalize(decoded), decoded)
        assert.deepStrictEqual(decoded.slice(1).split("/"), ours)
      }),
      { numRuns: 300 }
    )
    assert.isAbove(taken, 30)
  })

  it("changes nothing in a path that it made", () => {
    fc.assert(
      fc.property(target, (target) => {
        const once = Path.canonicalise(target)
        if (Result.isFailure(once)) return
        assert.deepStrictEqual(Path.canonicalise(once.success.path), once)
      }),
      { numRuns: 300 }
    )
  })
})

const segmentsOf = (target: string) => Result.getOrThrow(Path.canonicalise(target)).segments

function longId() {
  return "msgbatch_01HkcTjaV5uDC8jWR4ZsDV8d"
}

function attacks(): ReadonlyArray<[target: string, sentence: string]> {
  const encoded = "contains an encoded dot, slash, backslash, percent, delimiter or control character"
  const unprintable = "contains a character that must be percent-encoded"
  return [
    ["", "does not begin with /"],
    ["*", "does not begin with /"],
    ["?x=/v1/models", "does not begin with /"],
    ["v1/models", "does not begin with /"],
    ["http://elsewhere/v1/models", "does not begin with /"],
    ["//elsewhere/v1/models", "contains an empty segment (//)"],
    ["/v1//models", "contains an empty segment (//)"],
    ["/v1/models//", "contains an empty segment (//)"],
    ["/v1/../key/info", "contains a dot segment"],
    ["/v1/./models", "contains a dot segment"],
    ["/v1/models/..", "contains a dot segment"],
    ["/v1/models/.?x", "contains a dot segment"],
    ["/..", "contains a dot segment"],
    ["/v1/%2e%2e/key/info", encoded],
    ["/v1/.%2E/key/info", encoded],
    ["/v1%2fmodels", encoded],
    ["/v1%2Fmodels", encoded],
    ["/v1/..%5ckey", encoded],
    ["/v1/models%00.json", encoded],
    ["/v1/models%0d%0aX-Svc-Key:1", encoded],
    ["/v1/models%09", encoded],
    ["/v1/models%1F", encoded],
    ["/v1/models%7f", encoded],
    ["/v1/%252e%252e/key", encoded],
    ["/v1/models%3fx", encoded],
    ["/v1/models%23x", encoded],
    ["/v1/models%3bx", encoded],
    ["/v1\\models", "contains a backslash, # or ;"],
    ["/v1/..\\key", "contains a backslash, # or ;"],
    ["/v1/models;jsessionid=1", "contains a backslash, # or ;"],
    ["/v1/models#x", "contains a backslash, # or ;"],
    ["/v1/models%", "contains a broken percent-escape"],
    ["/v1/models%2", "contains a broken percent-escape"],
    ["/v1/models%zz", "contains a broken percent-escape"],
    ["/v1/%u002e", "contains a broken percent-escape"],
    ["/v1/%c0%ae%c0%ae/key", "contains a percent-escape that is not UTF-8"],
    ["/v1/%ff", "contains a percent-escape that is not UTF-8"],
    ["/v1/naïve", unprintable],
    ["/v1/\u2025/key", unprintable],
    ["/v1/models\u0000", unprintable],
    ["/v1/mod els", unprintable],
    ["/v1/models\t", unprintable],
    ["/v1/models\r\nX: y", unprintable],
    ["/v1/models\u007f", unprintable]
  ]
}

const anyByte = fc.nat(255).map((byte) => `%${byte.toString(16).padStart(2, "0")}`)
const character = fc.constantFrom(..."abmodels019-_~.!$&'()*+,=:@|\"<>^`{}[]")
const plain = fc.string({ unit: character, minLength: 1, maxLength: 6 })
const encodedText = fc
  .string({ unit: "grapheme", minLength: 1, maxLength: 4 })
  .map((text) => encodeURIComponent(text.toWellFormed()))
const hostile = fc.constantFrom(
  "..",
  ".",
  "",
  "%2e",
  "%2E%2e",
  "\\",
  ";",
  "#",
  "%2f",
  "%5C",
  "%00",
  "%25",
  "%c0%af",
  "ü"
)
const segment = fc
  .array(fc.oneof({ weight: 8, arbitrary: plain }, { weight: 3, arbitrary: encodedText }, anyByte, hostile), {
    maxLength: 3
  })
  .map((parts) => parts.join(""))
const target = fc
  .tuple(fc.array(segment, { minLength: 1, maxLength: 5 }), fc.constantFrom("", "?", "?a=/../%2f"))
  .map(([segments, query]) => `/${segments.join("/")}${query}`)
