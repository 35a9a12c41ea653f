import { assert, it } from "@effect/vitest"
import { anchorOf, anchorText } from "../../../src/portal/pages/audit/verification.ts"
import { align, heldAfter, isChanged } from "../../../src/portal/pages/guardrails/bench/align.ts"
import { chunksOf, contentOf } from "../../../src/portal/pages/guardrails/bench/chunks.ts"
import { linesOf } from "../../../src/portal/shared/diff/delta.ts"

it("what a guardrail changed stands apart from what it left", () => {
  const segments = align("Write to jane@example.com, now.", "Write to [EMAIL_1], now.")
  assert.deepStrictEqual(segments, [
    { before: "Write to ", after: "Write to " },
    { before: "jane@example.com", after: "[EMAIL_1]" },
    { before: ", now.", after: ", now." }
  ])
  const joined = (side: "before" | "after") => segments.map((segment) => segment[side]).join("")
  assert.deepStrictEqual(
    [joined("before"), joined("after")],
    ["Write to jane@example.com, now.", "Write to [EMAIL_1], now."]
  )
  assert.deepStrictEqual(align("same", "same").filter(isChanged), [])
  assert.deepStrictEqual(align("", "added"), [{ before: "", after: "added" }])
})

it("what waits is counted in bytes, also where a replacement has another length", () => {
  const chunks = ["To ", "jane@exam", "ple.com", ". Grüße"]
  assert.deepStrictEqual(heldAfter(chunks, ["To ", "", "[EMAIL_1]", ". Gr"]), [0, 9, 0, 5])
  assert.deepStrictEqual(heldAfter(["a", "b"], ["", "", "ab"]), [1, 2])
})

it("an answer is cut after each word, or where it says", () => {
  assert.deepStrictEqual(chunksOf("one two  three"), ["one", " two", "  three"])
  assert.deepStrictEqual(chunksOf("on|e tw|o"), ["on", "e tw", "o"])
  assert.strictEqual(contentOf({ messages: [{ role: "user", content: "hello" }] }), "hello")
  assert.strictEqual(contentOf({ choices: [{ message: { content: "answer" } }] }), "answer")
})

it("a noted head is read as the command prints it", () => {
  const hash = "0123456789abcdef".repeat(4)
  assert.deepStrictEqual(anchorOf(` 12:${hash.toUpperCase()} `), { sequence: 12, hash })
  assert.strictEqual(anchorText({ sequence: 12, hash }), `12:${hash}`)
  for (const wrong of ["", "12", `12:${hash}0`, `x:${hash}`, hash]) assert.isUndefined(anchorOf(wrong))
})

it("a difference names the member, and objects of lists by their names", () => {
  const before = {
    policy: { rpm_limit: 60 },
    tags: ["a"],
    services: [
      { name: "x", port: 1 },
      { name: "y", port: 1 }
    ]
  }
  const after = { policy: { rpm_limit: 30, tpm_limit: 5 }, tags: ["a", "b"], services: [{ name: "y", port: 2 }] }
  assert.sameDeepMembers(
    linesOf(before, after).map(({ kind, path }) => [kind, path.join(".")]),
    [
      ["changed", "policy.rpm_limit"],
      ["added", "policy.tpm_limit"],
      ["added", "tags.1"],
      ["removed", "services.x"],
      ["changed", "services.y.port"]
    ]
  )
  assert.deepStrictEqual(linesOf(null, { a: 1 }), [{ path: [], kind: "changed", before: null, after: { a: 1 } }])
  assert.deepStrictEqual(linesOf({ a: 1 }, { a: 1 }), [])
})
