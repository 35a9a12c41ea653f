import { assert, describe, it } from "@effect/vitest"
import { Redacted } from "effect"
import { SecretMask } from "../../src/gateway/SecretMask.ts"

const masked = (secret: string, ...chunks: ReadonlyArray<string>): string => {
  const mask = new SecretMask(Redacted.make(secret))
  return Buffer.concat([...chunks.map((chunk) => mask.push(Buffer.from(chunk))), mask.flush()]).toString()
}

describe("SecretMask", () => {
  it("masks every occurrence, in pieces too, and keeps the length", () => {
    assert.strictEqual(masked("sk-secret", "a sk-secret b sk-sec", "ret c"), "a ********* b ********* c")
  })

  it("ends on a secret that equals its own mask", () => {
    assert.strictEqual(masked("********", "a ******** b"), "a ******** b")
  })
})
