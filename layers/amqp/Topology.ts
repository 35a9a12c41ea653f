import type { Channel } from "amqplib/callback_api"
import { Effect, Option, Semaphore } from "effect"
import type {
  Binding,
  Broker,
  BrokerError,
  Declarations,
  Examination,
  Exchange,
  Queue
} from "../../src/services/Broker.ts"
import * as Fields from "./Fields.ts"
import type { Link } from "./Link.ts"

type GetLink = (operation: BrokerError["operation"]) => Effect.Effect<Link, BrokerError>

type Declaration = { readonly exchange: Exchange } | { readonly queue: Queue } | { readonly binding: Binding }

const declareOne = (link: Link, channel: Channel, declaration: Declaration): Effect.Effect<void, BrokerError> =>
  Effect.asVoid(
    link.ask<unknown>("declare", (answer) => {
      if ("exchange" in declaration) assertExchange(channel, declaration.exchange, answer)
      else if ("queue" in declaration) assertQueue(channel, declaration.queue, answer)
      else bind(channel, declaration.binding, answer)
    })
  )

type Answer = (error: Error, reply: unknown) => void

const assertExchange = (channel: Channel, exchange: Exchange, answer: Answer) =>
  channel.assertExchange(
    exchange.name,
    exchange.kind,
    { durable: exchange.durable ?? true, arguments: Fields.toWire(exchange.arguments ?? {}) },
    answer
  )

const assertQueue = (channel: Channel, queue: Queue, answer: Answer) =>
  channel.assertQueue(
    queue.name,
    {
      durable: queue.durable ?? true,
      autoDelete: queue.autoDelete ?? false,
      exclusive: queue.exclusive ?? false,
      arguments: Fields.toWire(queue.arguments ?? {})
    },
    answer
  )

const bind = (channel: Channel, binding: Binding, answer: Answer) =>
  channel.bindQueue(binding.queue, binding.exchange, binding.routingKey, Fields.toWire(binding.arguments ?? {}), answer)

const declarationsOf = ({ bindings, exchanges, queues }: Declarations): ReadonlyArray<Declaration> => [
  ...exchanges.map((exchange) => ({ exchange })),
  ...queues.map((queue) => ({ queue })),
  ...bindings.map((binding) => ({ binding }))
]

const nameOf = (declaration: Declaration): string => {
  if ("exchange" in declaration) return `exchange ${declaration.exchange.name}`
  if ("queue" in declaration) return `queue ${declaration.queue.name}`
  return `binding ${JSON.stringify([declaration.binding.queue, declaration.binding.exchange, declaration.binding.routingKey])}`
}

/** Declares and inspects exchanges, queues and bindings, and repeats the declarations after a reconnect. */
export const make = (getLink: GetLink) => {
  let remembered: ReadonlyArray<Declaration> = []
  const mutex = Semaphore.makeUnsafe(1)

  const remember = (declarations: ReadonlyArray<Declaration>) => {
    const names = new Set(declarations.map(nameOf))
    const bindings = declarations.filter((declaration) => "binding" in declaration)
    const known = remembered.filter((declaration) => "binding" in declaration || !names.has(nameOf(declaration)))
    const same = new Set(bindings.map((binding) => JSON.stringify(binding, bigintAsText)))
    const others = known.filter((declaration) => !same.has(JSON.stringify(declaration, bigintAsText)))
    // Exchanges and queues come first, because a binding needs both.
    remembered = [...others, ...declarations].toSorted((a, b) => rank(a) - rank(b))
  }

  const declare: Broker["Service"]["declare"] = (declarations) =>
    Effect.flatMap(getLink("declare"), (link) => {
      const list = declarationsOf(declarations)
      return link
        .withChannel("declare", (channel) =>
          Effect.forEach(list, (declaration) => declareOne(link, channel, declaration), { discard: true })
        )
        .pipe(
          Effect.tap(() => Effect.sync(() => remember(list))),
          mutex.withPermits(1)
        )
    })

  /** Repeats all declarations, even if RabbitMQ refuses some of them. */
  const declareAgain = (link: Link): Effect.Effect<void> =>
    Effect.gen(function* () {
      let rest = remembered
      while (rest.length > 0 && link.failure === undefined) {
        let next = 0
        const outcome = yield* Effect.result(
          link.withChannel("declare", (channel) =>
            Effect.forEach(
              rest,
              (declaration) => Effect.tap(declareOne(link, channel, declaration), () => Effect.sync(() => void next++)),
              { discard: true }
            )
          )
        )
        if (outcome._tag === "Success") return
        if (link.failure !== undefined) return
        const refused = rest[next]
        if (refused === undefined) return
        const { message, reason } = outcome.failure
        yield* permanentReasons.has(reason)
          ? Effect.logError(
              "After a reconnect RabbitMQ refuses a declaration, so this exchange, queue or binding may be missing",
              nameOf(refused),
              message
            )
          : Effect.logWarning(
              "After a reconnect a declaration failed, so this exchange, queue or binding may be missing for now",
              nameOf(refused),
              message
            )
        rest = rest.slice(next + 1)
      }
    }).pipe(mutex.withPermits(1))

  const remove: Broker["Service"]["remove"] = ({ exchanges = [], queues = [] }) =>
    Effect.suspend(() => {
      const isRemoved = (declaration: Declaration): boolean => {
        if ("exchange" in declaration) return exchanges.includes(declaration.exchange.name)
        if ("queue" in declaration) return queues.includes(declaration.queue.name)
        return exchanges.includes(declaration.binding.exchange) || queues.includes(declaration.binding.queue)
      }
      remembered = remembered.filter((declaration) => !isRemoved(declaration))
      return Effect.flatMap(getLink("remove"), (link) =>
        link
          .withChannel("remove", (channel) =>
            Effect.gen(function* () {
              for (const queue of queues)
                yield* link.ask<unknown>("remove", (answer) => channel.deleteQueue(queue, {}, answer))
              for (const exchange of exchanges)
                yield* link.ask<unknown>("remove", (answer) => channel.deleteExchange(exchange, {}, answer))
            })
          )
          .pipe(mutex.withPermits(1))
      )
    })

  /** A passive check comes first, because a declaration would create a missing exchange or queue. */
  const examine: Broker["Service"]["examine"] = (declaration) =>
    Effect.flatMap(getLink("examine"), (link) =>
      link
        .withChannel("examine", (channel) =>
          Effect.andThen(
            link.ask<unknown>("examine", (answer) => {
              if ("exchange" in declaration) channel.checkExchange(declaration.exchange.name, answer)
              else channel.checkQueue(declaration.queue.name, answer)
            }),
            link.ask<unknown>("examine", (answer) => {
              if ("exchange" in declaration) assertExchange(channel, declaration.exchange, answer)
              else assertQueue(channel, declaration.queue, answer)
            })
          )
        )
        .pipe(
          Effect.as<Examination>({ _tag: "Same" }),
          Effect.catch((error): Effect.Effect<Examination, BrokerError> => {
            if (error.reason === "not_found") return Effect.succeed({ _tag: "Missing" })
            if (error.reason === "mismatch") return Effect.succeed({ _tag: "Differs", differs: error.message })
            return Effect.fail(error)
          })
        )
    )

  const inspect: Broker["Service"]["inspect"] = (queue) =>
    Effect.flatMap(getLink("inspect"), (link) =>
      link.withChannel("inspect", (channel) =>
        link.ask<{ readonly messageCount: number; readonly consumerCount: number }>("inspect", (answer) =>
          channel.checkQueue(queue, answer)
        )
      )
    ).pipe(
      Effect.map(({ consumerCount, messageCount }) =>
        Option.some({ messages: messageCount, consumers: consumerCount })
      ),
      Effect.catch((error) => (error.reason === "not_found" ? Effect.succeed(Option.none()) : Effect.fail(error)))
    )

  /** Returns false for streams that this program has not declared. */
  const isStream = (name: string): boolean =>
    remembered.some(
      (declaration) =>
        "queue" in declaration &&
        declaration.queue.name === name &&
        declaration.queue.arguments?.["x-queue-type"] === "stream"
    )

  return { declare, declareAgain, remove, examine, inspect, isStream }
}

export type Topology = ReturnType<typeof make>

const permanentReasons: ReadonlySet<BrokerError["reason"]> = new Set(["mismatch", "denied", "locked"])

const rank = (declaration: Declaration): number => {
  if ("exchange" in declaration) return 0
  return "queue" in declaration ? 1 : 2
}

const bigintAsText = (_: string, value: unknown) => (typeof value === "bigint" ? String(value) : value)
