import { assert, describe, it } from "@effect/vitest"
import { marksOf } from "../../../src/portal/shared/foreign/marks.ts"

const textOf = (text: string) =>
  marksOf(text)
    .map((part) => part.text)
    .join("")

describe("Foreign text", () => {
  it("shows what turns or hides a part of it, and is as it is otherwise", () => {
    assert.deepStrictEqual(marksOf("in\u202Egnp\u0000"), [
      { text: "in", isMark: false },
      { text: "U+202E", isMark: true },
      { text: "gnp", isMark: false },
      { text: "U+0000", isMark: true }
    ])
    assert.strictEqual(textOf("till\u200e \u{e0061}"), "tillU+200E U+E0061")
    for (const text of ["", "plain", "❤️", "two\nlines\tand a tab", "שלום", "👩‍💻", "می‌خواهم"])
      assert.strictEqual(textOf(text), text)
  })

  it("names thousands of marks without a frame for each", () => {
    const parts = marksOf("a\u200b".repeat(5_000))
    assert.isAtMost(parts.length, 201)
    assert.strictEqual(textOf("a\u200b".repeat(5_000)), "aU+200B".repeat(5_000))
  })
})
