import { Context, Effect, Layer, type Schema } from "effect"
import { toDollars } from "../../policy/Price.ts"
import type { KeyTest, KeyTestProtocol, KeyTestResult } from "../api/holder/KeyTest.ts"
import type { LimitState } from "../api/limits/LimitsApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { KeyHolder } from "../api/schema/Security.ts"
import { LimitStates } from "../limits/LimitStates.ts"
import { PolicySimulator } from "../policies/PolicySimulator.ts"
import { sentenceOf } from "../policies/RefusalSentences.ts"
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
  const states = yield* LimitStates
  const running = new Set<string>()

  const decide = Effect.fnUntraced(function* (keyId: string, { model, protocol }: KeyTest) {
    const { body, path } = requests[protocol](model)
    const { costNanos, result } = yield* simulator.decide({ key_id: keyId, path, body })
    if (!result.final_decision.allowed) {
      const { check, error_code } = result.final_decision
      return refused(check, error_code ?? "policy_denied")
    }
    const limits = yield* states.ofKey(keyId)
    const full = limits.find((limit) => meets(limit, model) && !fits(limit, toDollars(costNanos)))
    return full === undefined ? allowed(result.guardrail_plan) : usedUp(full)
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
          return Effect.succeed(refused(null, code))
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

const requests: Requests = {
  chat: (model) => ({ path: "/v1/chat/completions", body: { model, messages, max_completion_tokens: 1 } }),
  responses: (model) => ({ path: "/v1/responses", body: { model, input: "hello", max_output_tokens: 1 } }),
  messages: (model) => ({ path: "/v1/messages", body: { model, messages, max_tokens: 1 } })
}

/** Limits of a route or a model narrow requests of theirs alone. */
const meets = ({ within }: LimitState, model: string): boolean => within === null || within === `model:${model}`

/**
 * A request needs room for its cost; of the other limits one request, or a token, is all that it may need. How much is
 * left of a limit that keys share is not for one holder to find out.
 */
const fits = ({ remaining, scope, share, unit }: LimitState, dollars: number): boolean => {
  if (remaining === null || share === null) return true
  if (scope !== "key") return share < 1
  return unit === "usd" ? remaining > 0 && remaining >= dollars : remaining >= 1
}

const allowed = (guardrails: ReadonlyArray<string>): KeyTestResult => ({
  allowed: true,
  error_code: null,
  sentence: "The gateway would let this request through.",
  what_to_do: "Run it. It appears here once it has ended.",
  meter: null,
  resets_at: null,
  guardrails
})

const refused = (check: string | null, errorCode: string): KeyTestResult => ({
  ...allowed([]),
  ...sentenceOf({ statusCode: 403, errorCode, check }),
  allowed: false,
  error_code: errorCode
})

const codes = { requests: "rate_limit_exceeded", tokens: "token_rate_limit_exceeded", usd: "budget_exceeded" } as const

const usedUp = ({ meter, resets_at, scope, unit }: LimitState): KeyTestResult => ({
  ...refused(scope === "key" ? meter : `shared_${meter}`, codes[unit]),
  meter,
  resets_at
})

const busy = new ControlError("key_test_busy", "Another test of this key is running. Send one at a time.")
