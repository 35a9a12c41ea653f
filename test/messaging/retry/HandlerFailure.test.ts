import { assert, describe, it } from "@effect/vitest"
import { Cause } from "effect"
import * as HandlerFailure from "../../../src/messaging/retry/HandlerFailure.ts"

const chain = (length: number): Error => {
  let last = new Error("first")
  for (let n = 1; n < length; n++) last = new Error(`number ${n}`, { cause: last })
  return last
}

const circular = (): Error => {
  const one = new Error("one")
  one.cause = new Error("other", { cause: one })
  return one
}

const throwing = (member: string): Error =>
  Object.defineProperty(new Error("no such page"), member, {
    get: () => {
      throw new Error("unreadable")
    }
  })

describe("the failure of a handler", () => {
  it.each([
    { name: "a chain of 50,000 causes", error: chain(50_000) },
    { name: "a chain of causes that is a circle", error: circular() },
    { name: "a cause that throws when it is read", error: throwing("cause") }
  ])("keeps message and stack of an error with $name", ({ error }) => {
    for (const cause of [Cause.fail(error), Cause.die(error)]) {
      const { stack, text } = HandlerFailure.ofCause(cause)
      assert.strictEqual(text, error.message)
      assert.match(stack, /HandlerFailure\.test/)
      assert.isAtMost(stack.length, 8_000)
    }
  })

  it.each(["message", "name", "_tag", "reason", "retryable", "constructor"])("survives %s that throws", (member) => {
    const { reason, retryable } = HandlerFailure.ofCause(Cause.fail(throwing(member)))
    assert.deepStrictEqual([reason, retryable], ["handler_error", true])
  })

  it("keeps the message of an error whose stack cannot be read", () => {
    const unreadable = Object.assign(new Error("no such page"), { stack: { length: 1e9 } })
    for (const error of [throwing("stack"), unreadable]) {
      assert.strictEqual(HandlerFailure.ofCause(Cause.fail(error)).text, "no such page")
    }
  })

  it("keeps no more than 8,000 characters of a stack of ten million", () => {
    const error = new Error("long")
    error.stack = `Error: long\n${"    at page (pages.ts:1:1)\n".repeat(370_000)}`
    assert.lengthOf(HandlerFailure.ofCause(Cause.fail(error)).stack, 8_000)
  })
})
