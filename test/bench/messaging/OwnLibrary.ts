import { randomUUID } from "node:crypto"
import { connect } from "amqplib"
import { Cause, Effect, ManagedRuntime, Redacted } from "effect"
import * as BrokerAmqp from "../../../layers/BrokerAmqp.ts"
import { BrokerClient } from "../../../src/messaging/BrokerClient.ts"
import * as TaskEnvelope from "../../../src/messaging/TaskEnvelope.ts"
import { SharedTasksSharedStatusTopology } from "../../../src/messaging/TaskTopology.ts"
import { Broker } from "../../../src/services/Broker.ts"
import { serve } from "./Serve.ts"
import { Countdown, Tally } from "./Tally.ts"
import { environment, type Kind, placesOf, prefetch, taskOf } from "./Work.ts"

const { created_at: _, spec_version: __, ...task } = taskOf("")

const runtime = ManagedRuntime.make(
  BrokerAmqp.layer({ url: Redacted.make(environment.rabbitmq), name: "svc-bench", windows: { tasks: 1_000 } })
)

const topologyOf = (kind: Kind) => {
  const places = placesOf(environment.prefix, kind)
  return new SharedTasksSharedStatusTopology({
    tasks_exchange: places.exchange,
    tasks_queue: places.queue,
    tasks_routing_key: "",
    task_queue_type: kind,
    status_exchange: places.statusExchange,
    status_queue: places.statusQueue
  })
}

const clientOf = (kind: Kind) =>
  runtime.runPromise(Effect.tap(BrokerClient.make({ topology: topologyOf(kind) }), (client) => client.initialize))
const clients = { classic: await clientOf("classic"), quorum: await clientOf("quorum") }

/** One of those who share the window. */
const sender = <E, R>(tally: Tally, send: Effect.Effect<unknown, E, R>) => {
  const one = Effect.suspend(() => {
    const since = performance.now()
    return Effect.map(send, () => tally.succeeded(since))
  })
  return Effect.whileLoop({ while: () => tally.open, body: () => one, step: () => {} }).pipe(
    Effect.catchCause((cause) => Effect.sync(() => tally.failed(Cause.pretty(cause))))
  )
}

const inFlight = <E, R>(window: number, ms: number, send: Effect.Effect<unknown, E, R>) =>
  Effect.suspend(() => {
    const tally = new Tally(ms)
    return Effect.map(
      Effect.replicateEffect(sender(tally, send), window, { concurrency: "unbounded", discard: true }),
      () => tally.done
    )
  })

serve({
  publish: ({ kind, ms, window }) =>
    runtime.runPromise(
      inFlight(
        window,
        ms,
        Effect.suspend(() => clients[kind].publishTask({ ...task, task_id: randomUUID() }))
      )
    ),

  consume: ({ kind, messages }) =>
    runtime.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const countdown = new Countdown(messages)
          const broker = yield* Broker
          yield* broker.consume({
            queue: placesOf(environment.prefix, kind).queue,
            prefetch,
            onDelivery: (delivery) => {
              TaskEnvelope.fromBytes(delivery.content, "")
              delivery.settle("ack")
              countdown.handled()
            }
          })
          return yield* Effect.promise(() => countdown.done)
        })
      )
    ),

  empty: async ({ kind }) => {
    const connection = await connect(environment.rabbitmq)
    const channel = await connection.createChannel()
    await channel.purgeQueue(placesOf(environment.prefix, kind).queue)
    await connection.close()
  }
})
