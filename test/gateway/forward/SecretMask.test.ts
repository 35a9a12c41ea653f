import { assert, describe, it } from "@effect/vitest"
import { Redacted } from "effect"
import { SecretMask } from "../../../src/gateway/forward/SecretMask.ts"

const masked = (secret: string, ...chunks: ReadonlyArray<string>): string => {
  const mask = new SecretMask(Redacted.make(secret))
  return Buffer.concat([...chunks.map((chunk) => mask.push(Buffer.from(chunk))), mask.flush()]).toString()
}

describe("SecretMask", () => {
  it("masks every occurrence, in pieces too, and keeps the length", () => {
    assert.strictEqual(masked("sk-secret", "a sk-secret b sk-sec", "ret c"), "a ********* b ********* c")
  })

  it.each([
    ["sk-se/cret", "a sk-se\\/cret b", "a *********** b"],
    ["sk-secret", "a \\u0073k\\u002Dsecre\\u0074 b", `a ${"*".repeat(24)} b`],
    ["sk-secret", "a \\\\u0073k-secret b", `a ${"*".repeat(15)} b`],
    ["sk-secret", "/x?key=sk%2dsecre%74&b", `/x?key=${"*".repeat(13)}&b`],
    ["sk-secret", "sk-s sk-secre\\u0073 sk-secre\\", "sk-s sk-secre\\u0073 sk-secre\\"],
    ['sk\\"secret', 'a sk\\\\\\"secret b', `a ${"*".repeat(12)} b`]
  ])("masks %s in %s, however it is cut", (secret, text, expected) => {
    for (let cut = 0; cut <= text.length; cut++) {
      assert.strictEqual(masked(secret, text.slice(0, cut), text.slice(cut)), expected)
    }
    assert.strictEqual(masked(secret, ...text), expected)
  })

  it("masks values of headers", () => {
    const mask = new SecretMask(Redacted.make("sk-secret"))
    assert.deepStrictEqual(mask.headers(["location", "/?k=sk%2Dsecret", "x-sk-secret", "Bearer sk-secret \u00e9"]), [
      "location",
      `/?k=${"*".repeat(11)}`,
      "x-sk-secret",
      "Bearer ********* \u00e9"
    ])
  })

  it("ends on a secret that equals its own mask", () => {
    assert.strictEqual(masked("********", "a ******** b"), "a ******** b")
  })
})
