import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Result } from "effect"
import type { Guardrails } from "../../src/guardrails/Guardrails.ts"
import type { Reply } from "../../src/guardrails/StreamJudge.ts"
import * as StreamTest from "../../src/guardrails/StreamTest.ts"
import { streamStep } from "./stream/StreamSteps.ts"

const replying = (reply: Reply): Guardrails["Service"] => ({
  run: () => Effect.die("only streams are tested"),
  judgeStream: () => Effect.delay(Effect.succeed(reply), 1)
})

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

const test = (reply: Reply, ...chunks: ReadonlyArray<string>) =>
  StreamTest.run(replying(reply), [streamStep("window")], chunks, request)

describe("a test of a stream", () => {
  it.live("returns what is sent after each chunk, and at the end", () =>
    Effect.gen(function* () {
      const letters = "a".repeat(63)
      const run = yield* test(Result.succeed({ action: "allow", reason: null, metadata: {} }), "a", letters, "b")
      assert.deepStrictEqual(Result.getOrThrow(run).sent, ["", `a${letters}`, "", "b"])
    })
  )

  it.live("ends with the guardrail that stops it", () =>
    Effect.gen(function* () {
      const run = yield* test(Result.succeed({ action: "block", reason: null, metadata: {} }), "text")
      assert.strictEqual(Result.isFailure(run) && run.failure.code, "guardrail_blocked")
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
      const exit = yield* Effect.exit(test(Result.succeed({ action: "allow", reason: null, metadata }), "text"))
      assert.deepStrictEqual(exit, Exit.die(bug))
    })
  )
})
