import { randomUUID } from "node:crypto"
import { Clock, Context, Effect, Layer, Option, type Redacted, Result } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import * as Price from "../../policy/Price.ts"
import { Database } from "../../services/Database.ts"
import type { KeyTest, KeyTestResult, SentKeyTest } from "../api/holder/KeyTest.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { KeyHolder } from "../api/schema/Security.ts"
import { transformResponse } from "../http/ResponseTransform.ts"
import { AuthSettings } from "../operators/AuthSettings.ts"
import * as PolicyState from "../policies/PolicyState.ts"
import * as PerMinute from "../store/PerMinute.ts"
import type { StoreFailure } from "../store/Rows.ts"
import { OwnGateway, type SendToGateway } from "./OwnGateway.ts"
import * as TestOutcome from "./TestOutcome.ts"
import * as TestRequests from "./TestRequests.ts"

type Sent = Pick<KeyTestResult, "sent" | "not_sent">

/** Sends the smallest request of a protocol through the gateway, as an application of the holder would. */
export class SentTests extends Context.Service<
  SentTests,
  {
    readonly send: (
      test: KeyTest
    ) => Effect.Effect<Sent, Refused<"key_test_busy"> | StoreFailure, KeyHolder | HttpServerRequest.HttpServerRequest>
  }
>()("svc/control/SentTests") {
  static readonly layer = Layer.suspend(() => Layer.effect(SentTests, make))
}

const maxPerMinute = 6
/** Shorter than the deadlines of applications, because a person waits for the answer. */
const deadlineSeconds = 20
const maxResponseBytes = 65_536
/** Each may hold `maxResponseBytes` until the deadline. */
const maxAtOnce = 16

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const policies = PolicyState.make(sql)
  const auth = yield* AuthSettings
  const gateway = yield* OwnGateway
  const rate = PerMinute.make(maxPerMinute)
  let running = 0

  /** The outcome is shown without the cost if the price cannot be read, because the request is sent already. */
  const costOf = Effect.fnUntraced(
    function* (model: string, { input_tokens, output_tokens }: TestOutcome.Outcome) {
      if (input_tokens === null || output_tokens === null) return null
      const price = (yield* policies.prices([model])).priceOf(model)
      const tokens = { input: input_tokens, output: output_tokens, cachedInput: 0, cacheWrite: 0 }
      return price === undefined ? null : Price.toDollars(Price.cost(price, tokens))
    },
    Effect.orElseSucceed(() => null)
  )

  const exchange = Effect.fnUntraced(function* (send: SendToGateway, test: KeyTest, key: Redacted.Redacted) {
    const begun = yield* Clock.currentTimeMillis
    const first = yield* ask(send, test, key, TestRequests.smallestOf(test), deadlineSeconds * 1000)
    const second =
      first.outcome.status_code === 400 ? TestRequests.secondOf(test, first.outcome.provider_message ?? "") : undefined
    const left = deadlineSeconds * 1000 - ((yield* Clock.currentTimeMillis) - begun)
    const { latency_ms, outcome, request_id } =
      second === undefined || left <= 0 ? first : yield* ask(send, test, key, second, left)
    return { ...outcome, latency_ms, request_id, cost_usd: yield* costOf(test.model, outcome) }
  })

  return SentTests.of({
    send: Effect.fn("SentTests.send")(function* (test) {
      const { keyId, secret } = yield* KeyHolder
      const { identity_provider, trusted_gateway } = yield* auth.get
      if (identity_provider.enabled || trusted_gateway.trusted_header_enabled) return notSent(needsIdentity)
      const send = yield* gateway
      if (Option.isNone(send)) return notSent(unknownAddress)
      const key = yield* secret
      if (Option.isNone(key)) return notSent(notKept)
      if (running >= maxAtOnce) return yield* tooManyAtOnce
      running++
      return yield* Effect.gen(function* () {
        const seconds = yield* rate(keyId)
        if (seconds > 0) return yield* tooMany(seconds)
        const sent: SentKeyTest = yield* exchange(send.value, test, key.value)
        return { sent, not_sent: null }
      }).pipe(Effect.ensuring(Effect.sync(() => running--)))
    })
  })
})

const ask = Effect.fnUntraced(function* (
  send: SendToGateway,
  { protocol }: KeyTest,
  key: Redacted.Redacted,
  { body, headers, path }: TestRequests.TestRequest,
  withinMs: number
) {
  const begun = yield* Clock.currentTimeMillis
  const request_id = randomUUID()
  const response = yield* Effect.result(
    send({
      method: "POST",
      path,
      headers: { ...headers, "x-request-id": request_id },
      bearer: key,
      body: Buffer.from(JSON.stringify(body)),
      withinMs,
      maxBytes: maxResponseBytes
    })
  )
  const latency_ms = Math.round((yield* Clock.currentTimeMillis) - begun)
  const outcome = Result.isSuccess(response)
    ? TestOutcome.ofResponse(response.success, protocol, key)
    : TestOutcome.ofError(response.failure, deadlineSeconds)
  return { request_id, latency_ms, outcome }
})

const notSent = (why: NonNullable<KeyTestResult["not_sent"]>): Sent => ({ sent: null, not_sent: why })

const needsIdentity = {
  sentence: "Nothing was sent: beside the key, the gateway wants to know who you are, which this page cannot tell it.",
  what_to_do: "Run the example with your program."
}
const unknownAddress = {
  sentence: "Nothing was sent: this page's server does not know the address of the gateway.",
  what_to_do: "Run the example. Operators name the address with GATEWAY_PUBLIC_ORIGIN."
}
const notKept = {
  sentence: "Nothing was sent: this session does not have your key.",
  what_to_do: "Sign out and sign in again."
}

const tooManyAtOnce = new ControlError(
  "key_test_busy",
  "Too many tests of other keys are running. Try again shortly, or ask without sending."
)

const tooMany = (seconds: number) =>
  Effect.andThen(
    transformResponse((response) => HttpServerResponse.setHeader(response, "retry-after", String(seconds))),
    new ControlError(
      "key_test_busy",
      `This key has sent ${maxPerMinute} tests within a minute. Send the next one in ${seconds} seconds, or ask without sending.`
    )
  )
