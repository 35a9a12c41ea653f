import { randomUUID } from "node:crypto"
import { connect } from "amqplib"
import { Cause, Effect, Fiber, ManagedRuntime, Redacted, Result, Schema } from "effect"
import * as BrokerAmqp from "../../../layers/BrokerAmqp.ts"
import * as Handler from "../../../src/messaging/consume/Handler.ts"
import * as TaskConsumer from "../../../src/messaging/consume/TaskConsumer.ts"
import * as StatusEvent from "../../../src/messaging/envelope/StatusEvent.ts"
import { BrokerClient } from "../../../src/messaging/publish/BrokerClient.ts"
import { LifecycleStatusConfig } from "../../../src/messaging/topology/StatusSettings.ts"
import { SharedTasksSharedStatusTopology } from "../../../src/messaging/topology/TaskTopology.ts"
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

/** A worker, until `use` is done. */
const working = <A, E, R>(
  kind: Kind,
  options: Omit<TaskConsumer.Options<never>, "concurrency">,
  use: Effect.Effect<A, E, R>
) =>
  Effect.gen(function* () {
    const { run, stop } = yield* TaskConsumer.make({ ...options, concurrency: prefetch })
    const running = yield* Effect.forkChild(run)
    const used = yield* use
    yield* stop
    yield* Fiber.join(running)
    return used
  }).pipe(Effect.provideService(BrokerClient, clients[kind]))

const lifecycleStatuses = new LifecycleStatusConfig({ enabled: true })

const Payload = Schema.Struct({ text: Schema.String })

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

  consume: ({ kind, messages }) => {
    const countdown = new Countdown(messages)
    const handler = Handler.withPayload(Payload, () => Effect.sync(() => countdown.handled()))
    return runtime.runPromise(
      working(
        kind,
        { handler },
        Effect.promise(() => countdown.done)
      )
    )
  },

  roundTrip: ({ ms, window }) =>
    Effect.gen(function* () {
      const broker = yield* Broker
      const waiting = new Map<string, () => void>()
      yield* broker.consume({
        queue: placesOf(environment.prefix, "classic").statusQueue,
        prefetch,
        arguments: { "x-stream-offset": "next" },
        onDelivery: ({ content, settle }) => {
          settle("ack")
          const { status, task_id: taskId } = Result.getOrThrow(StatusEvent.fromBytes(content, ""))
          if (status !== "completed") return
          waiting.get(taskId)?.()
          waiting.delete(taskId)
        }
      })
      const trip = Effect.suspend(() => {
        const taskId = randomUUID()
        const ended = Effect.callback<void>((resume) => {
          waiting.set(taskId, () => resume(Effect.void))
        })
        return Effect.all([clients.classic.publishTask({ ...task, task_id: taskId }), ended], {
          concurrency: "unbounded",
          discard: true
        }).pipe(Effect.timeout("30 seconds"))
      })
      const handler = Handler.withPayload(Payload, () => Effect.void)
      return yield* working("classic", { handler, lifecycleStatuses }, inFlight(window, ms, trip))
    }).pipe(Effect.scoped, runtime.runPromise),

  empty: async ({ kind }) => {
    const connection = await connect(environment.rabbitmq)
    const channel = await connection.createChannel()
    await channel.purgeQueue(placesOf(environment.prefix, kind).queue)
    await connection.close()
  }
})
