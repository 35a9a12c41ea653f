import { Context, DateTime, Effect, Layer, type Schema } from "effect"
import type { KeyTest, KeyTestProtocol, KeyTestResult } from "../api/holder/KeyTest.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { KeyHolder } from "../api/schema/Security.ts"
import type { LimitOutcome } from "../policies/LimitCheck.ts"
import { PolicySimulator } from "../policies/PolicySimulator.ts"
import { type FailedRequest, sentenceOf } from "../policies/RefusalSentences.ts"
import type { StoreFailure } from "../store/Rows.ts"

/**
 * Tells the holder of a key what the gateway would do with a request. The control listener knows no secret of a key, so
 * it cannot send the request itself: it decides as the gateway does, and looks at the counters that admit requests.
 */
export class KeyTests extends Context.Service<
  KeyTests,
  {
    readonly test: (test: KeyTest) => Effect.Effect<KeyTestResult, Refused<"key_test_busy"> | StoreFailure, KeyHolder>
  }
>()("svc/control/KeyTests") {
  static readonly layer = Layer.suspend(() => Layer.effect(KeyTests, make))
}

/** A test reads the configuration and the counters of its key. */
const mostAtOnce = 4

const make = Effect.gen(function* () {
  const simulator = yield* PolicySimulator
  const running = new Set<string>()

  const decide = Effect.fnUntraced(function* (keyId: string, { model, protocol }: KeyTest) {
    const { body, path } = requests[protocol](model)
    const { limits, result } = yield* simulator.decide({ key_id: keyId, path, body })
    const { allowed: isAllowed, check, error_code, limits_checked } = result.final_decision
    if (limits?._tag === "Full") return usedUp(limits, error_code ?? "policy_denied")
    if (!isAllowed) return refused({ check, errorCode: error_code ?? "policy_denied" })
    return limits_checked ? allowed(result.guardrail_plan) : yield* noCounters
  })

  return KeyTests.of({
    test: Effect.fn("KeyTests.test")(function* (test: KeyTest) {
      const { keyId } = yield* KeyHolder
      if (running.has(keyId) || running.size >= mostAtOnce) return yield* busy
      running.add(keyId)
      return yield* decide(keyId, test).pipe(
        // The path and the key exist. A guardrail that the policy names may not.
        Effect.catch((error): Effect.Effect<KeyTestResult, StoreFailure> => {
          const { code, message } = error
          if (code === "store_unavailable") return Effect.fail(new ControlError(code, message))
          if (code === "invalid_request") return Effect.fail(new ControlError(code, message))
          return Effect.succeed(refused({ check: null, errorCode: code }))
        }),
        Effect.ensuring(Effect.sync(() => running.delete(keyId)))
      )
    })
  })
})

type Requests = Readonly<
  Record<KeyTestProtocol, (model: string) => { readonly path: string; readonly body: Schema.Json }>
>

const messages = [{ role: "user", content: "hello" }]

/** The first requests of the snippets. Only Anthropic's protocol requires a limit of output tokens. */
const requests: Requests = {
  chat: (model) => ({ path: "/v1/chat/completions", body: { model, messages } }),
  responses: (model) => ({ path: "/v1/responses", body: { model, input: "hello" } }),
  messages: (model) => ({ path: "/v1/messages", body: { model, messages, max_tokens: 256 } })
}

const allowed = (guardrails: ReadonlyArray<string>): KeyTestResult => ({
  allowed: true,
  error_code: null,
  sentence: "The gateway would let a short request like that of the example through.",
  what_to_do: "Run it. It appears here once it has ended.",
  meter: null,
  resets_at: null,
  guardrails
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
