import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Result } from "effect"
import type { Guardrails } from "../../src/guardrails/Guardrails.ts"
import type { Reply } from "../../src/guardrails/StreamJudge.ts"
import * as StreamTest from "../../src/guardrails/StreamTest.ts"
import { streamStep } from "./stream/StreamSteps.ts"

/** Gives the replies in their order, and the last one again and again. */
const replying = (replies: ReadonlyArray<Reply>): Guardrails["Service"] => {
  let next = 0
  return {
    run: () => Effect.die("only streams are tested"),
    judgeStream: () =>
      Effect.suspend(() => Effect.succeed(replies[Math.min(next++, replies.length - 1)] ?? allow)).pipe(Effect.delay(1))
  }
}

const allow: Reply = Result.succeed({ action: "allow", reason: null, metadata: {} })

const request = {
  requestId: "r",
  context: {
    key_id: "k",
    team_id: null,
    user_id: null,
    project_id: null,
    model: null,
    route: "/v1/chat/completions",
    provider: "none"
  }
}

const test = (replies: ReadonlyArray<Reply>, ...chunks: ReadonlyArray<string>) =>
  StreamTest.run(replying(replies), [streamStep("window")], chunks, request)

describe("a test of a stream", () => {
  it.live("returns what is sent after each chunk, and at the end", () =>
    Effect.gen(function* () {
      const letters = "a".repeat(63)
      const run = yield* test([allow], "a", letters, "b")
      assert.deepStrictEqual(run.sent, ["", `a${letters}`, "", "b"])
      assert.isUndefined(run.stopped)
    })
  )

  it.live("ends with the guardrail that stops it, after what was sent before", () =>
    Effect.gen(function* () {
      const replies: ReadonlyArray<Reply> = [allow, Result.succeed({ action: "block", reason: null, metadata: {} })]
      const run = yield* test(replies, "a".repeat(128), "text", "b".repeat(64), "c".repeat(64))
      assert.strictEqual(run.stopped?.code, "guardrail_blocked")
      assert.deepStrictEqual(run.sent, ["a".repeat(128), "", ""])
      assert.deepStrictEqual(
        run.executions.map(({ action }) => action),
        ["block"]
      )
    })
  )

  it.live("fails if the gateway cannot apply a reply, instead of waiting forever", () =>
    Effect.gen(function* () {
      const bug = new Error("bug")
      const metadata = Object.defineProperty({}, "score", {
        enumerable: true,
        get: () => {
          throw bug
        }
      })
      const exit = yield* Effect.exit(test([Result.succeed({ action: "allow", reason: null, metadata })], "text"))
      assert.deepStrictEqual(exit, Exit.die(bug))
    })
  )
})
