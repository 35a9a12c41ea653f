import { Effect } from "effect"
import {
  Broker,
  type ConsumeOptions,
  type Declarations,
  type Delivery,
  type Outcome
} from "../../src/services/Broker.ts"
import type { History } from "./History.ts"
import { publishLabel } from "./Labels.ts"
import type { Failures, WorkerProcess } from "./WorkerProcess.ts"

const failures: Failures<Outcome, never> = {
  before: Effect.succeed({ _tag: "Refused", reason: "nacked", detail: "The test kit refused the message" }),
  after: Effect.succeed({ _tag: "Unknown", reason: "deadline", detail: "The test kit withheld the confirm" })
}

/** Remembers which queues are declared over this connection, without those that no other connection may use. */
export const recorded = (broker: Broker["Service"], history: History): Broker["Service"] =>
  Broker.of({
    ...broker,
    declare: (declarations: Declarations) =>
      Effect.tap(broker.declare(declarations), () =>
        Effect.sync(() => {
          for (const queue of declarations.queues) {
            if (queue.exclusive !== true) history.queues.set(queue.name, queue)
          }
        })
      )
  })

/** The connection of a worker. Deliveries, publishes and settlements are operations of the run. */
export const make = (broker: Broker["Service"], worker: WorkerProcess, history: History): Broker["Service"] => {
  const consume = (options: ConsumeOptions) => {
    const own = new Set<Delivery>()
    const forget = (isLost: (delivery: Delivery) => boolean) =>
      worker.forget((delivery) => own.has(delivery) && isLost(delivery))
    const wrapped: ConsumeOptions = {
      ...options,
      onDelivery: (delivery) => {
        own.add(delivery)
        if (!worker.receive(delivery)) return
        options.onDelivery({
          ...delivery,
          settle: (how) => worker.settle(delivery, how)
        })
      },
      onLost: (epoch, reason) => {
        if (worker.isDead) return
        forget((delivery) => delivery.epoch === epoch)
        options.onLost?.(epoch, reason)
      },
      onResumed: (epoch) => {
        if (!worker.isDead) options.onResumed?.(epoch)
      }
    }
    return Effect.gen(function* () {
      history.consumedQueues.add(options.queue)
      yield* Effect.addFinalizer(() => Effect.sync(() => forget(() => true)))
      const subscription = yield* worker.alive(broker.consume(wrapped))
      return { ...subscription, cancel: worker.alive(subscription.cancel) }
    })
  }
  return Broker.of({
    server: worker.alive(broker.server),
    declare: (declarations) => worker.alive(broker.declare(declarations)),
    examine: (declared) => worker.alive(broker.examine(declared)),
    remove: (names) => worker.alive(broker.remove(names)),
    inspect: (queue) => worker.alive(broker.inspect(queue)),
    publish: (publication) =>
      worker.perform("publish", publishLabel(publication), broker.publish(publication), failures),
    consume,
    channel: (options) => worker.alive(broker.channel(options)),
    connection: broker.connection,
    ping: worker.alive(broker.ping)
  })
}
