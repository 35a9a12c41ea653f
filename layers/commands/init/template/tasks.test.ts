import { assert, it } from "@effect/vitest"
import { Clock, Context, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { BrokerClient } from "svc-runtime/messaging"
import { BrokerMemory, HandlerCheck, step } from "svc-runtime/testing"
import { Mailer, MailNotSent } from "./mailer.ts"
import { type Receipt, taskIdOf } from "./receipt.ts"
import { client, topology, worker } from "./tasks.ts"

const receipt: Receipt = { order: "1001", to: "ada@example.com", cents: 1999 }
const task = { task_id: taskIdOf(receipt), task_type: "receipt", payload: receipt }

/** The provider of mail: when it was called, and which mails it has sent, by their keys. */
class Provider extends Context.Service<
  Provider,
  { readonly calls: Array<number>; readonly sent: Map<string, string> }
>()("Provider") {}

/** A mailer whose provider refuses the first calls, as many as `refusals` says. */
const mailer = (refusals = 0) =>
  Layer.effect(
    Mailer,
    Effect.map(Provider, ({ calls, sent }) => ({
      send: (key, _, text) =>
        step(
          "send",
          Effect.gen(function* () {
            calls.push(yield* Clock.currentTimeMillis)
            if (calls.length <= refusals) return yield* new MailNotSent({ message: "the provider is down" })
            sent.set(key, text)
          })
        )
    }))
  ).pipe(Layer.provideMerge(Layer.sync(Provider, () => ({ calls: [], sent: new Map() }))))

it.effect("tries a mail again after ten seconds", () =>
  Effect.gen(function* () {
    const { publishTask } = yield* BrokerClient
    const { calls, sent } = yield* Provider
    yield* publishTask(task)
    yield* Effect.repeat(TestClock.adjust("1 second"), { times: 30 })
    const [first = 0, second = 0, ...others] = calls
    assert.isAtLeast(second - first, 10_000)
    assert.lengthOf(others, 0)
    assert.deepStrictEqual([...sent.values()], ["Thank you for order 1001. You paid 19.99."])
  }).pipe(
    Effect.provide(
      worker.pipe(Layer.provideMerge(client), Layer.provide(BrokerMemory.layer()), Layer.provideMerge(mailer(1)))
    )
  )
)

const receipts = HandlerCheck.make({
  name: "receipts",
  topology,
  world: mailer(),
  worker,
  tasks: [task],
  maxRuns: 100,
  invariant: ({ deadLetters, statusesOf }) =>
    Effect.map(Provider, ({ sent }) => {
      assert.deepStrictEqual([...sent.keys()], [task.task_id])
      assert.include(statusesOf(task.task_id), "sent")
      assert.lengthOf(deadLetters, 0)
    })
})

it.effect("sends a receipt, and one mail for it, whatever crashes", () => HandlerCheck.run(receipts), 60_000)
