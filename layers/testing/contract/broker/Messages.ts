import assert from "node:assert/strict"
import { Effect, Option, Queue } from "effect"
import {
  Broker,
  type ConsumeOptions,
  type Declarations,
  type Queue as Declared,
  type Delivery,
  type Fields,
  type Outcome,
  type Properties
} from "../../../../src/services/Broker.ts"
import { eventually } from "../law/Eventually.ts"
import * as Temporary from "./TemporaryNames.ts"

export const kinds = ["classic", "quorum"] as const
export type Kind = (typeof kinds)[number]

export const ofKind = (kind: Kind | "stream", more: Fields = {}): Fields =>
  kind === "classic" ? more : { "x-queue-type": kind, ...more }

/** Arguments of a quorum queue that keeps a dead message until another queue has stored it. */
export const atLeastOnce: Fields = { "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish" }

export const only = (...queues: ReadonlyArray<Declared>): Declarations => ({ exchanges: [], queues, bindings: [] })

export const text = (content: Uint8Array): string => Buffer.from(content).toString()

/** Declares a queue and returns its name. */
export const declared = Effect.fnUntraced(function* (base: string, fields: Fields = {}, more: Partial<Declared> = {}) {
  const broker = yield* Broker
  const name = (yield* Temporary.TemporaryNames).queue(base)
  yield* broker.declare(only({ name, arguments: fields, ...more }))
  return name
})

export const send = (queue: string, content: string, properties: Properties = {}) =>
  Effect.flatMap(Broker, (broker) =>
    broker.publish({
      purpose: "tasks",
      exchange: "",
      routingKey: queue,
      content: Buffer.from(content),
      properties
    })
  )

export const sendAll = (queue: string, contents: Iterable<string>) =>
  Effect.forEach(contents, (content) => Effect.map(send(queue, content), confirmed), { discard: true })

export const confirmed = (outcome: Outcome) => assert.deepStrictEqual(outcome, { _tag: "Confirmed" })

/** Starts a consumer whose deliveries wait until the law takes them. */
export const reader = Effect.fnUntraced(function* (
  queue: string,
  prefetch = 10,
  more: Partial<Pick<ConsumeOptions, "arguments" | "onLost" | "onResumed">> = {}
) {
  const broker = yield* Broker
  const deliveries = yield* Queue.unbounded<Delivery>()
  const subscription = yield* broker.consume({
    queue,
    prefetch,
    onDelivery: (delivery) => {
      Queue.offerUnsafe(deliveries, delivery)
    },
    ...more
  })
  const take = Effect.timeoutOrElse(Queue.take(deliveries), {
    duration: "30 seconds",
    orElse: () => Effect.die(new Error(`No message arrived from ${queue} within 30 seconds`))
  })
  return {
    ...subscription,
    take,
    takeN: (count: number) => Effect.all(Array.from({ length: count }, () => take)),
    /** The number of deliveries that wait. */
    arrived: Effect.sync(() => Queue.sizeUnsafe(deliveries))
  }
})

export const texts = (deliveries: ReadonlyArray<Delivery>): ReadonlyArray<string> =>
  deliveries.map(({ content, redelivered }) => text(content) + (redelivered ? "*" : ""))

export const settleAll = (deliveries: ReadonlyArray<Delivery>, how: "ack" | "requeue" | "reject" = "ack") =>
  Effect.sync(() => {
    for (const { settle } of deliveries) assert.strictEqual(settle(how), "requested")
  })

/** Takes and acknowledges all ready messages of a queue. */
export const drained = Effect.fnUntraced(function* (queue: string) {
  const { get } = yield* (yield* Broker).channel({ prefetch: 1 })
  const deliveries: Array<Delivery> = []
  for (;;) {
    const next = yield* get(queue)
    if (Option.isNone(next)) return deliveries
    next.value.settle("ack")
    deliveries.push(next.value)
  }
}, Effect.scoped)

export const ready = (queue: string, count: number) =>
  Effect.flatMap(Broker, (broker) =>
    eventually(
      Effect.map(broker.inspect(queue), (found) => Option.getOrUndefined(found)?.messages),
      (messages) => messages === count
    )
  )
