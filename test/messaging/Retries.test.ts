import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import fc from "fast-check"
import * as BrokerMemory from "../../layers/BrokerMemory.ts"
import { SettingsError } from "../../src/messaging/envelope/Errors.ts"
import { decide } from "../../src/messaging/retry/RetryDecision.ts"
import * as RetryHeaders from "../../src/messaging/retry/RetryHeaders.ts"
import * as RetryQueues from "../../src/messaging/retry/RetryQueues.ts"
import { type RetryParameters, RetryPolicy } from "../../src/messaging/topology/RetryPolicy.ts"
import { LifecycleStatusConfig, RetryStatusConfig } from "../../src/messaging/topology/StatusSettings.ts"
import { Broker, BrokerError } from "../../src/services/Broker.ts"
import { logged } from "./Logged.ts"

const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
const growing = { max_retries: 20, delay_ms: 1000, backoff: { factor: 2, max_delay_ms: 60_000, jitter: 0.5, steps: 4 } }

describe("a retry policy", () => {
  it("tries three times again, half a minute apart", () => {
    const policy = new RetryPolicy()
    assert.strictEqual(policy.maxRetries, 3)
    assert.deepStrictEqual(policy.delays, [30_000])
    assert.strictEqual(policy.delayOf(3, 0.99), 30_000)
  })

  it("gives way to the contract of a stage, and comes into being for one", () => {
    const policy = new RetryPolicy({ max_retries: 5, retry_queue_suffix: ".again" })
    assert.deepStrictEqual(RetryPolicy.ofStage({}, policy), Result.succeed(policy))
    assert.deepStrictEqual(RetryPolicy.ofStage({}, undefined), Result.succeed(undefined))
    const seen = [
      RetryPolicy.ofStage({ retry_delay_ms: 1000 }, policy),
      RetryPolicy.ofStage({ max_retries: 0 }, policy),
      RetryPolicy.ofStage({ max_retries: 1 }, undefined)
    ]
      .map((policy) => Result.getOrThrow(policy))
      .map((policy) => [policy?.maxRetries, policy?.delayMs, policy?.retryQueueSuffix])
    assert.deepStrictEqual(seen, [
      [5, 1000, ".again"],
      [0, 30_000, ".again"],
      [1, 30_000, ".retry"]
    ])
  })

  it("grows exponentially up to its longest delay, less the jitter", () => {
    const policy = new RetryPolicy(growing)
    assert.deepStrictEqual(
      [1, 2, 3, 7, 20].map((retry) => [policy.delayOf(retry, 0), policy.delayOf(retry, 0.999)]),
      [
        [500, 1000],
        [1000, 2000],
        [2000, 4000],
        [30_000, 60_000],
        [30_000, 60_000]
      ]
    )
  })

  it("without jitter has one delay for each retry until the longest", () => {
    const policy = new RetryPolicy({ ...growing, backoff: { ...growing.backoff, jitter: 0 } })
    assert.deepStrictEqual(policy.delays, [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000])
  })

  it("only ever waits a delay that has a queue, of which there are few", () => {
    fc.assert(
      fc.property(anyPolicy, fc.integer({ min: 1, max: 1000 }), chance, (policy, retry, chance) => {
        fc.pre(policy.maxRetries > 0)
        assert.include(policy.delays, policy.delayOf(retry, chance))
        assert.isAtMost(policy.delays.length, 64)
      })
    )
  })

  it.each([
    [{ max_retries: -1 }, "max_retries"],
    [{ max_retries: 1.5 }, "max_retries"],
    [{ delay_ms: 0 }, "delay_ms"],
    [{ delay_ms: 49 * 86_400_000 }, "delay_ms"],
    [{ retry_queue_suffix: " " }, "retry_queue_suffix"],
    [{ retry_queue_suffix: ".dlq" }, "dead_letter_queue_suffix"],
    [{ backoff: { factor: 1 } }, "backoff.factor"],
    [{ backoff: { jitter: 2 } }, "backoff.jitter"],
    [{ backoff: { steps: 17 } }, "backoff.steps"],
    [{ backoff: { max_delay_ms: 1 } }, "backoff.max_delay_ms"],
    [{ max_retries: 100, delay_ms: 1000, backoff: { factor: 1.01, steps: 16 } }, "backoff"]
  ])("refuses %j", (parameters: RetryParameters, field) => {
    assert.deepStrictEqual(
      mistaken(() => new RetryPolicy(parameters)),
      [field]
    )
  })
})

describe("a failed delivery", () => {
  it.each([
    [0, 1],
    [2, 3]
  ])("of attempt %d below max_retries is retried as attempt %d", (attempt, next) => {
    assert.deepStrictEqual(decide(new RetryPolicy(), { attempt, reason: "handler_error", retryable: true }, 0), {
      _tag: "Retry",
      attempt: next,
      delayMs: 30_000,
      reason: "handler_error"
    })
  })

  it("of attempt max_retries is dead-lettered with handler_error", () => {
    assert.deepStrictEqual(decide(new RetryPolicy(), { attempt: 3, reason: "handler_error", retryable: true }, 0), {
      _tag: "DeadLetter",
      attempt: 3,
      reason: "handler_error"
    })
  })

  it.each([
    "malformed_json",
    "invalid_envelope",
    "mixed_task_type_batch",
    "unsupported_action",
    "payload_schema_violation",
    "dedup_conflict"
  ] as const)("for %s is dead-lettered directly", (reason) => {
    const decision = decide(new RetryPolicy(), { attempt: 0, reason, retryable: true }, 0)
    assert.deepStrictEqual(decision, { _tag: "DeadLetter", attempt: 0, reason })
  })

  it("is dead-lettered when its handler says that retrying is pointless", () => {
    const decision = decide(new RetryPolicy(), { attempt: 0, reason: "handler_error", retryable: false }, 0)
    assert.strictEqual(decision._tag, "DeadLetter")
  })

  it("runs its handler at most max_retries + 1 times, whatever it throws at which chance", () => {
    fc.assert(
      fc.property(
        anyPolicy,
        fc.infiniteStream(chance),
        fc.constantFrom("handler_error", "stage_timeout"),
        (policy, chances, reason) => {
          let runs = 0
          let headers = {}
          for (let attempt: number | undefined = 0; attempt !== undefined; ) {
            runs++
            const { value = 0 } = chances.next()
            const decision = decide(
              policy,
              { attempt: RetryHeaders.attemptOf(headers), reason, retryable: true },
              value
            )
            headers = RetryHeaders.of(headers, {
              attempt: decision.attempt,
              maxRetries: policy.maxRetries,
              sourceQueue: "q",
              reason,
              exceptionType: "Error"
            })
            attempt = decision._tag === "Retry" ? decision.attempt : undefined
          }
          assert.strictEqual(runs, policy.maxRetries + 1)
        }
      )
    )
  })
})

describe("retry headers", () => {
  const failure = {
    attempt: 1,
    maxRetries: 3,
    sourceQueue: "tasks.queue",
    reason: "handler_error",
    exceptionType: "TypeError"
  } as const

  it("are the five of the specification, beside what the delivery brought", () => {
    assert.deepStrictEqual(RetryHeaders.of({ task_id: "t", "x-svc-retry-attempt": 0, own: null }, failure), {
      task_id: "t",
      own: null,
      "x-svc-retry-attempt": 1,
      "x-svc-max-retries": 3,
      "x-svc-source-queue": "tasks.queue",
      "x-svc-failure-reason": "handler_error",
      "x-svc-exception-type": "TypeError"
    })
  })

  it("say null where no exception was the cause", () => {
    const headers = RetryHeaders.of({}, { ...failure, reason: "malformed_json", exceptionType: null })
    assert.isNull(headers["x-svc-exception-type"])
  })

  it("leave behind what the broker wrote, and what would send copies elsewhere", () => {
    const broker = {
      "x-death": [{ count: 1n }],
      "x-first-death-queue": "q",
      "x-last-death-reason": "expired",
      "x-delivery-count": 3,
      CC: ["other"]
    }
    assert.deepStrictEqual(RetryHeaders.withoutBrokerHeaders({ ...broker, batch_id: "b" }), { batch_id: "b" })
  })

  it.each([
    [undefined, 0],
    [2, 2],
    [2n, 2],
    ["2", 2],
    [-1, 0],
    [1.5, 0],
    ["many", 0],
    [null, 0],
    [Number.MAX_VALUE, 0]
  ])("count the attempt %s as %d", (value, attempt) => {
    assert.strictEqual(RetryHeaders.attemptOf(value === undefined ? {} : { "x-svc-retry-attempt": value }), attempt)
  })
})

describe("retry queues", () => {
  it("carry their delay and their type in their name, and let go of a message when its queue has it", () => {
    const queues = Result.getOrThrow(RetryQueues.of("tasks.queue", new RetryPolicy({ delay_ms: 5000 })))
    assert.strictEqual(queues.retryQueueOf(5000), "tasks.queue.retry.5000ms.quorum")
    assert.deepStrictEqual(queues.declarations, {
      exchanges: [],
      bindings: [],
      queues: [
        {
          name: "tasks.queue.retry.5000ms.quorum",
          arguments: {
            "x-queue-type": "quorum",
            "x-message-ttl": 5000,
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": "tasks.queue",
            "x-dead-letter-strategy": "at-least-once",
            "x-overflow": "reject-publish"
          }
        },
        { name: "tasks.queue.dlq" }
      ]
    })
  })

  it.effect("are those of former releases where the broker has no better ones, and it says what is at risk", () =>
    Effect.gen(function* () {
      const broker = yield* withoutStreams
      const log = logged()
      const wanted = Result.getOrThrow(RetryQueues.of("tasks.queue", new RetryPolicy({ delay_ms: 5000 })))
      const queues = yield* Effect.provide(RetryQueues.declare(broker, wanted), log.layer)
      assert.strictEqual(queues.retryQueueOf(5000), "tasks.queue.retry.5000ms")
      const former = {
        name: "tasks.queue.retry.5000ms",
        arguments: {
          "x-queue-type": "classic",
          "x-message-ttl": 5000,
          "x-expires": 86_405_000,
          "x-dead-letter-exchange": "",
          "x-dead-letter-routing-key": "tasks.queue"
        }
      }
      assert.deepStrictEqual(yield* broker.examine({ queue: former }), { _tag: "Same" })
      const [said, ...more] = log.lines()
      assert.match(said ?? "", /Retries of tasks\.queue .* is lost if RabbitMQ crashes .*\. Enable all feature flags/)
      // and neither asks nor says it again
      yield* Effect.provide(RetryQueues.declare(broker, queues), log.layer)
      assert.deepStrictEqual([more, log.lines().length], [[], 1])
    }).pipe(Effect.scoped, Effect.provide(BrokerMemory.layer()))
  )

  it.effect("take a dead-letter queue as it is", () =>
    Effect.gen(function* () {
      const broker = yield* Broker
      const replicated = { name: "tasks.queue.dlq", arguments: { "x-queue-type": "quorum" } }
      yield* broker.declare({ exchanges: [], queues: [replicated], bindings: [] })
      yield* RetryQueues.declare(broker, Result.getOrThrow(RetryQueues.of("tasks.queue", new RetryPolicy())))
      assert.deepStrictEqual(yield* broker.examine({ queue: replicated }), { _tag: "Same" })
    }).pipe(Effect.provide(BrokerMemory.layer()))
  )

  it.effect("that differ are named with the argument and the way out", () =>
    Effect.gen(function* () {
      const broker = yield* Broker
      const wanted = Result.getOrThrow(RetryQueues.of("tasks.queue", new RetryPolicy({ delay_ms: 5000 })))
      const name = wanted.retryQueueOf(5000)
      yield* broker.declare({
        exchanges: [],
        queues: [{ name, arguments: { "x-queue-type": "quorum" } }],
        bindings: []
      })
      const { message } = yield* Effect.flip(RetryQueues.declare(broker, wanted))
      assert.include(message, `queue ${name} exists and differs`)
      assert.match(message, /inequivalent arg 'x-message-ttl'.*received the value '5000'.*current is none/)
      assert.include(message, "or use another queue name")
    }).pipe(Effect.provide(BrokerMemory.layer()))
  )

  it("are none but the dead letter queue where nothing is retried", () => {
    const { declarations } = Result.getOrThrow(RetryQueues.of("q", new RetryPolicy({ max_retries: 0 })))
    assert.deepStrictEqual(declarations.queues, [{ name: "q.dlq" }])
  })

  it.each([[" "], ["q".repeat(242)]])("refuse the source %j", (source) => {
    assert.isTrue(Result.isFailure(RetryQueues.of(source, new RetryPolicy())))
  })
})

describe("automatic statuses", () => {
  it("are off, and bear the names of the reference", () => {
    const retry = new RetryStatusConfig()
    const lifecycle = new LifecycleStatusConfig()
    assert.deepStrictEqual(
      [retry.enabled, retry.retryingStatus, retry.deadLetteredStatus],
      [false, "retrying", "failed"]
    )
    assert.deepStrictEqual(
      [lifecycle.enabled, lifecycle.processing, lifecycle.completed, lifecycle.failed],
      [false, "processing", "completed", "failed"]
    )
  })

  it("say how many retries there were of how many", () => {
    assert.deepStrictEqual(new RetryStatusConfig().retrying(1, 3, " no route "), {
      status: "retrying",
      message: "Retry 1/3 is scheduled: no route",
      meta: { retry_attempt: 1, max_retries: 3 }
    })
  })

  it("keep the error's text to themselves where they are told to", () => {
    const quiet = { include_error_text: false }
    assert.strictEqual(new RetryStatusConfig(quiet).retrying(1, 3, "s3cret").message, "Retry 1/3 is scheduled.")
    assert.strictEqual(new RetryStatusConfig(quiet).deadLettered(3, 3, "s3cret").message, "The handler failed.")
    assert.strictEqual(new LifecycleStatusConfig(quiet).failure("s3cret").message, "The handler failed.")
    assert.strictEqual(new LifecycleStatusConfig().failure(" ").message, "The handler failed.")
  })

  it("must have names", () => {
    assert.deepStrictEqual(
      mistaken(() => new RetryStatusConfig({ retrying_status: " " })),
      ["retrying_status"]
    )
    assert.deepStrictEqual(
      mistaken(() => new LifecycleStatusConfig({ failed: "" })),
      ["failed"]
    )
  })
})

/** A broker that is upgraded, and whose feature flags are not enabled. It says so, and hangs up. */
const withoutStreams = Effect.map(Broker, (broker) =>
  Broker.of({
    ...broker,
    declare: (declarations) =>
      declarations.queues.some((queue) => queue.arguments?.["x-queue-type"] === "stream")
        ? Effect.fail(
            new BrokerError({
              operation: "declare",
              reason: "refused",
              message: "Cannot declare a queue: the corresponding feature flag is disabled"
            })
          )
        : broker.declare(declarations)
  })
)

const anyPolicy = fc
  .record({
    max_retries: fc.integer({ min: 0, max: 12 }),
    delay_ms: fc.integer({ min: 1, max: 48 * 86_400_000 }),
    backoff: fc.option(
      fc.record({
        factor: fc.double({ min: 1.5, max: 10, noNaN: true }),
        jitter: fc.double({ min: 0, max: 1, noNaN: true }),
        steps: fc.integer({ min: 1, max: 5 })
      }),
      { nil: undefined }
    )
  })
  .map(({ backoff, ...fixed }) => new RetryPolicy({ ...fixed, ...(backoff && { backoff }) }))

function mistaken(make: () => unknown): ReadonlyArray<string> {
  try {
    make()
  } catch (error) {
    if (error instanceof SettingsError) return error.mistakes.map(({ field }) => field)
    throw error
  }
  return []
}
