import { Context, DateTime, Effect, Layer } from "effect"
import type { HttpServerRequest } from "effect/http"
import type { KeyTest, KeyTestResult } from "../api/holder/KeyTest.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { KeyHolder } from "../api/schema/Security.ts"
import type { LimitOutcome } from "../policies/LimitCheck.ts"
import { PolicySimulator } from "../policies/PolicySimulator.ts"
import { type FailedRequest, sentenceOf } from "../policies/RefusalSentences.ts"
import type { StoreFailure } from "../store/Rows.ts"
import { SentTests } from "./SentTests.ts"
import * as TestRequests from "./TestRequests.ts"

/**
 * Tells the holder of a key what the gateway would do with the first request of the snippets: it decides as the gateway
 * does, and looks at the counters that admit requests. Then, if the holder wants it, a request is sent.
 */
export class KeyTests extends Context.Service<
  KeyTests,
  {
    readonly test: (
      test: KeyTest
    ) => Effect.Effect<
      KeyTestResult,
      Refused<"key_test_busy"> | StoreFailure,
      KeyHolder | HttpServerRequest.HttpServerRequest
    >
  }
>()("svc/control/KeyTests") {
  static readonly layer = Layer.suspend(() => Layer.effect(KeyTests, make)).pipe(Layer.provide(SentTests.layer))
}

/** A decision reads the configuration and the counters of its key. */
const mostDecisions = 4

const make = Effect.gen(function* () {
  const simulator = yield* PolicySimulator
  const sentTests = yield* SentTests
  const running = new Set<string>()
  let decisions = 0

  const decide = Effect.fnUntraced(function* (keyId: string, test: KeyTest) {
    const { body, path } = TestRequests.exampleOf(test)
    const { limits, result } = yield* simulator.decide({ key_id: keyId, path, body })
    const { allowed: isAllowed, check, error_code, limits_checked } = result.final_decision
    if (limits?._tag === "Full") return usedUp(limits, error_code ?? "policy_denied")
    if (!isAllowed) {
      const refused_model = check === "model" ? test.model : null
      return { ...refused({ check, errorCode: error_code ?? "policy_denied" }), refused_model }
    }
    return limits_checked ? allowed(result.guardrail_plan) : yield* noCounters
  })

  const decided = Effect.fnUntraced(function* (keyId: string, test: KeyTest) {
    if (decisions >= mostDecisions) return yield* busy
    decisions++
    return yield* decide(keyId, test).pipe(
      // The path and the key exist. A guardrail that the policy names may not.
      Effect.catch((error): Effect.Effect<KeyTestResult, StoreFailure> => {
        const { code, message } = error
        if (code === "store_unavailable") return Effect.fail(new ControlError(code, message))
        if (code === "invalid_request") return Effect.fail(new ControlError(code, message))
        return Effect.succeed(refused({ check: null, errorCode: code }))
      }),
      Effect.ensuring(Effect.sync(() => decisions--))
    )
  })

  return KeyTests.of({
    test: Effect.fn("KeyTests.test")(function* (test: KeyTest) {
      const { keyId } = yield* KeyHolder
      if (running.has(keyId)) return yield* busy
      running.add(keyId)
      return yield* Effect.gen(function* () {
        const decision = yield* decided(keyId, test)
        if (test.send !== true || !decision.allowed) return decision
        return { ...decision, ...(yield* sentTests.send(test)) }
      }).pipe(Effect.ensuring(Effect.sync(() => running.delete(keyId))))
    })
  })
})

const allowed = (guardrails: ReadonlyArray<string>): KeyTestResult => ({
  allowed: true,
  error_code: null,
  sentence: "The gateway would let a short request like that of the example through.",
  what_to_do: "Run it. It appears here once it has ended.",
  meter: null,
  refused_model: null,
  resets_at: null,
  guardrails,
  sent: null,
  not_sent: null
})

const refused = (why: Omit<FailedRequest, "statusCode">): KeyTestResult => ({
  ...allowed([]),
  ...sentenceOf({ statusCode: 403, ...why }),
  allowed: false,
  error_code: why.errorCode
})

const usedUp = (
  { denial, meter }: Extract<LimitOutcome, { readonly _tag: "Full" }>,
  errorCode: string
): KeyTestResult => ({
  ...refused({ check: denial.check, amounts: denial.amounts, errorCode }),
  meter: meter.field,
  resets_at: DateTime.makeUnsafe(meter.endsAt)
})

const noCounters = new ControlError(
  "store_unavailable",
  "Redis, which counts the limits, is unavailable; try again later."
)

const busy = new ControlError("key_test_busy", "Another test of this key is running. Send one at a time.")
