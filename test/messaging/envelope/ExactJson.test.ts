import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import fc from "fast-check"
import * as CanonicalJson from "../../../src/messaging/envelope/CanonicalJson.ts"
import { isJsonObject } from "../../../src/messaging/envelope/Envelope.ts"
import * as ExactJson from "../../../src/messaging/envelope/ExactJson.ts"
import * as StatusEvent from "../../../src/messaging/envelope/StatusEvent.ts"
import * as TaskEnvelope from "../../../src/messaging/envelope/TaskEnvelope.ts"
import { ContractAliasConfig } from "../../../src/messaging/topology/Aliases.ts"

const digits = (from: number, to: number) =>
  fc
    .tuple(fc.integer({ min: 1, max: 9 }), fc.array(fc.integer({ min: 0, max: 9 }), { minLength: from, maxLength: to }))
    .map(([first, rest]) => [first, ...rest].join(""))

/** As JSON spells them: around 2^53 and far from it. */
const number = fc
  .tuple(
    fc.constantFrom("", "-"),
    fc.oneof(
      digits(0, 25),
      fc.constantFrom("0", "9007199254740991", "9007199254740992", "9007199254740993", "1e400", "999999999999999.9e1")
    ),
    fc.oneof(
      fc.constant(""),
      digits(0, 20).map((text) => `.${text}`)
    ),
    fc.oneof(
      fc.constant(""),
      fc.constantFrom("e", "E", "e+", "e-", "E+0").chain((e) => digits(0, 2).map((n) => e + n))
    )
  )
  .filter(([, whole, fraction, exponent]) => /^\d+$/.test(whole) || fraction + exponent === "")
  .map((parts) => parts.join(""))

/** Texts that look like such numbers as well. */
const string = fc.oneof(
  fc.string(),
  fc.uuid(),
  number.map((text) => `a:${text},"[ ${text}]"`)
)

const space = fc.constantFrom("", " ", "\n", "\t", "\r\n ")

const { json } = fc.letrec<{ json: string }>((tie) => ({
  json: fc.oneof(
    { depthSize: "small" },
    fc.oneof(
      number,
      string.map((text) => JSON.stringify(text)),
      fc.constantFrom("true", "false", "null")
    ),
    fc
      .tuple(space, fc.array(fc.tuple(tie("json"), space), { maxLength: 5 }))
      .map(([gap, items]) => `[${gap}${items.map((item) => item.join("")).join(`,${gap}`)}]`),
    fc.tuple(space, fc.array(fc.tuple(string, space, tie("json"), space), { maxLength: 5 })).map(([gap, members]) => {
      const written = members.map(([key, before, value, behind], n) => {
        // of different names, and none that JavaScript puts in front
        return `${gap}${JSON.stringify(`k${n} ${key}`)}${before}:${gap}${value}${behind}`
      })
      return `{${written.join(",")}${gap}}`
    })
  )
}))

/** Numbers that JavaScript has are spelled as it spells them, and texts as well. */
const tokens = (text: string, spelled: boolean) =>
  (text.match(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null|[{}[\],:]/g) ?? []).map((token) =>
    spelled && /^["\d-]/.test(token) && !isWide(token) ? JSON.stringify(JSON.parse(token)) : token
  )

const isWide = (token: string) => /^[\d-]/.test(token) && Math.abs(Number(token)) >= 2 ** 53

const parsed = (text: string) => Result.getOrThrow(new ContractAliasConfig().read("status", Buffer.from(text)))

describe("exact JSON", () => {
  it("is written again with the numbers that it came with, wherever they are", () => {
    fc.assert(
      fc.property(space, json, (gap, text) => {
        const { exact, ordinary } = ExactJson.read(gap + text)
        assert.deepStrictEqual(tokens(JSON.stringify(exact), false), tokens(text, true))
        assert.strictEqual(JSON.stringify(ExactJson.parse(gap + text)), JSON.stringify(exact))
        assert.deepStrictEqual(ordinary, JSON.parse(text))
        if (!tokens(text, false).some(isWide)) assert.deepStrictEqual(exact, ordinary)
      }),
      { numRuns: 2_000 }
    )
  })

  it("is the ordinary value itself where every number is one", () => {
    const values = ["1e16a0b2-3f2c-4e10-9007-199254740993", 9007199254740991, 0.12345678901234568, -2e15]
    const one = ExactJson.read(JSON.stringify({ values, text: '"n": 12345678901234567890' }))
    assert.strictEqual(one.exact, one.ordinary)
    const other = ExactJson.read("[[9007199254740992]]")
    assert.notStrictEqual(other.exact, other.ordinary)
  })

  it("has one canonical spelling of a number, the one that it came with", () => {
    const write = (text: string) => CanonicalJson.write(ExactJson.parse(text))
    assert.strictEqual(write('{"b":[9007199254740993,1e400],"a":1.50}'), '{"a":1.5,"b":[9007199254740993,1e400]}')
    const event = (n: string) =>
      Result.getOrThrow(StatusEvent.eventId(parsed(`{"task_id":"t","status":"s","meta":{"n":${n}}}`).exact))
    assert.notStrictEqual(event("9007199254740992"), event("9007199254740993"))
    // golden: as it was before numbers were kept
    assert.strictEqual(event("17"), "b35a2e506ac9ee3f226da1e2d1e4e7c7d780755e8a552d66069f744f419ebd99")
  })

  it("knows no JSON object in such a number", () => {
    const raw = ExactJson.parse("12345678901234567890")
    assert.isFalse(isJsonObject(raw))
    const { exact } = parsed('{"task_id":"t","status":"s","meta":12345678901234567890,"message":1e400}')
    const read = StatusEvent.read(exact, "2026-04-06T10:00:00Z")
    assert.deepStrictEqual(Result.isFailure(read) && read.failure.mistakes.map(({ field }) => field), [
      "message",
      "meta"
    ])
    const task = ExactJson.readBoth(parsed('{"task_id":"t","priority":1e30}'), (json) =>
      TaskEnvelope.read(json, "never")
    )
    assert.deepInclude(Result.isFailure(task) ? task.failure.mistakes : [], {
      field: "priority",
      problem: "must be an integer from 0 to 255"
    })
  })

  it("gives a task the id that it was sent with, whoever reads it", () => {
    const { exact, ordinary } = parsed('{"documentId":12345678901234567890,"n":12345678901234567890}')
    assert.deepStrictEqual(
      [exact["task_id"], ordinary],
      ["12345678901234567890", { n: 12345678901234567000, task_id: exact["task_id"] }]
    )
    assert.strictEqual(
      StatusEvent.parentTaskId({ meta: { parent_task_id: ExactJson.parse("12345678901234567890") } }),
      "12345678901234567890"
    )
  })

  it("is refused where it is nested too deeply for that", () => {
    const text = `{"task_id":"t","n":${"[".repeat(100_000)}12345678901234567890${"]".repeat(100_000)}}`
    const read = new ContractAliasConfig().read("status", Buffer.from(text))
    assert.match(Result.isFailure(read) ? read.failure.message : "", /is nested too deeply/)
  })
})
