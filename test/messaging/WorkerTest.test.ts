import { assert, it } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { BrokerClient } from "svc-runtime/messaging"
import { BrokerMemory } from "svc-runtime/testing"
import { client, worker } from "./WorkerExample.ts"

it.effect("dead-letters a mail without a text", () =>
  Effect.gen(function* () {
    const { inspectQueue, publishTask } = yield* BrokerClient
    yield* publishTask({ task_id: "m1", task_type: "send", payload: { to: "ada@example.com" } })
    yield* TestClock.adjust("1 minute")
    assert.deepStrictEqual(yield* inspectQueue("mail.send.dlq"), Option.some({ messages: 1, consumers: 0 }))
  }).pipe(Effect.provide(Layer.merge(worker, client).pipe(Layer.provide(BrokerMemory.layer()))))
)
