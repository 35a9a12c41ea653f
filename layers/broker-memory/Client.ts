import { Effect, Option, SubscriptionRef } from "effect"
import { type Broker, BrokerError, type Connection, type Purpose, type Server } from "../../src/services/Broker.ts"
import { problemOf } from "../amqp/Deliveries.ts"
import { problemOfShort } from "../amqp/Messages.ts"
import type { Node } from "./Node.ts"
import * as OwnChannel from "./OwnChannel.ts"
import { type Limits, Publisher } from "./Publisher.ts"
import { Refusal } from "./queues/Refusal.ts"
import { type Connecting, pauseBefore, Subscriber } from "./Subscriber.ts"
import { Topology } from "./Topology.ts"
import { transmit } from "./Transmission.ts"
import { Line } from "./Wire.ts"

export interface Options extends Limits {
  readonly name: string
  /** Milliseconds, for every question to the broker. */
  readonly answerWithin: number
}

const server: Server = { product: "RabbitMQ (in memory)", version: "3.10.8" }

const purposes: ReadonlyArray<Purpose> = ["tasks", "retries", "statuses"]

type Operation = BrokerError["operation"]

const failed = (operation: Operation, reason: BrokerError["reason"], message: string) =>
  new BrokerError({ operation, reason, message })

/** A client of the broker, with the recovery that the door promises. It ends with its scope. */
export const connect = Effect.fnUntraced(function* (node: Node, options: Options) {
  if (!node.accepts(options.name)) return yield* failed("connect", "unreachable", "The broker takes no connections")
  const fork = Effect.runForkWith(yield* Effect.context<never>())
  const state = yield* SubscriptionRef.make<Connection>({ _tag: "Connected" })
  const topology = new Topology(node)
  const subscribers = new Set<Subscriber>()
  const publisher = () => new Publisher(options, node.now, node.timers)
  const publishers = { tasks: publisher(), retries: publisher(), statuses: publisher() } satisfies Record<
    Purpose,
    Publisher
  >
  const waiting = new Set<() => void>()
  let line: Line | undefined
  let isClosed = false

  const tell = (connection: Connection) => fork(SubscriptionRef.set(state, connection))

  const client: Connecting = {
    node,
    line: () => line,
    declareAgain: (current) =>
      topology.declareAgain(current, (name, why) =>
        client.report(`The broker refuses what was declared before: ${name}`, why)
      ),
    report: (what, defect) => {
      fork(Effect.logError(what, defect instanceof Refusal ? defect.message : defect))
    }
  }

  const open = (): Line => {
    const opened = new Line(node.wire, options.name)
    line = opened
    node.attach(opened)
    opened.onEnd((reason) => lost(reason))
    opened.onBlocked((reason) => {
      for (const purpose of purposes) publishers[purpose].block(reason)
      tell(reason === undefined ? { _tag: "Connected" } : { _tag: "Blocked", reason })
    })
    client.declareAgain(opened)
    for (const purpose of purposes) {
      publishers[purpose].attach((publication, answered) =>
        // Another channel for the purpose would be opened at once: its end is nobody's business.
        transmit({ node, line: opened, publication, answered, refused: () => {} })
      )
    }
    return opened
  }

  const lost = (reason: string) => {
    line = undefined
    for (const purpose of purposes) publishers[purpose].detach(reason)
    if (!isClosed) again(1, reason)
  }

  const again = (attempt: number, failure: string) => {
    tell({ _tag: "Connecting", attempt, failure })
    node.timers.set(state, node.now() + pauseBefore(attempt), () => {
      if (isClosed) return
      if (!node.accepts(options.name)) {
        again(attempt + 1, "The broker takes no connections")
        return
      }
      const opened = open()
      for (const subscriber of subscribers) subscriber.resume(opened)
      tell({ _tag: "Connected" })
      for (const resume of waiting) resume()
      waiting.clear()
    })
  }

  const connected = (operation: Operation): Effect.Effect<Line, BrokerError> =>
    Effect.suspend(() => {
      if (line !== undefined) return Effect.succeed(line)
      if (isClosed) return Effect.fail(failed(operation, "closed", "It was closed"))
      const next = Effect.callback<void>((resume) => {
        const told = () => resume(Effect.void)
        waiting.add(told)
        return Effect.sync(() => waiting.delete(told))
      })
      const message = `Not connected to RabbitMQ within ${options.answerWithin} ms`
      return Effect.andThen(
        Effect.timeoutOrElse(next, {
          duration: options.answerWithin,
          orElse: () => Effect.fail(failed(operation, "unreachable", message))
        }),
        connected(operation)
      )
    })

  /** What is asked happens at once; the answer comes by the line, or never. */
  const askOn = <A>(current: Line, operation: Operation, question: () => A): Effect.Effect<A, BrokerError> =>
    Effect.callback<A, BrokerError>((resume) => {
      const stop = current.onEnd((reason) => resume(Effect.fail(failed(operation, "lost", reason))))
      let answer: Effect.Effect<A, BrokerError>
      try {
        answer = Effect.succeed(question())
      } catch (error) {
        answer =
          error instanceof Refusal ? Effect.fail(failed(operation, error.reason, error.message)) : Effect.die(error)
      }
      current.send(() => {
        stop()
        resume(answer)
      })
      return Effect.sync(stop)
    }).pipe(
      Effect.timeoutOrElse({
        duration: options.answerWithin,
        orElse: () =>
          Effect.fail(failed(operation, "timeout", `RabbitMQ did not answer within ${options.answerWithin} ms`))
      })
    )

  const ask = <A>(operation: Operation, question: (line: Line) => A): Effect.Effect<A, BrokerError> =>
    Effect.flatMap(connected(operation), (current) => askOn(current, operation, () => question(current)))

  /** About queues or exchanges of those names, which AMQP must be able to carry. */
  const askOf = <A>(operation: Operation, names: ReadonlyArray<string>, question: (line: Line) => A) => {
    const problem = names.map((name) => problemOfShort("name", name)).find((problem) => problem !== undefined)
    return problem === undefined ? ask(operation, question) : Effect.fail(failed(operation, "refused", problem))
  }

  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      isClosed = true
      for (const purpose of purposes) publishers[purpose].close("It was closed")
      node.timers.clear(state)
      line?.end("It was closed")
      for (const resume of waiting) resume()
      return SubscriptionRef.set(state, { _tag: "Closed" })
    })
  )
  open()

  return {
    server: Effect.as(connected("channel"), server),
    declare: (declarations) =>
      askOf(
        "declare",
        [...declarations.exchanges, ...declarations.queues].map(({ name }) => name),
        (line) => topology.declare(declarations, line)
      ),
    examine: (declared) =>
      askOf("examine", ["exchange" in declared ? declared.exchange.name : declared.queue.name], (line) =>
        "exchange" in declared ? node.exchangeDifference(declared.exchange) : node.queueDifference(declared.queue, line)
      ).pipe(
        Effect.map((differs) =>
          differs === undefined ? { _tag: "Same" as const } : { _tag: "Differs" as const, differs: mismatch(differs) }
        ),
        Effect.catch((error) =>
          error.reason === "not_found" ? Effect.succeed({ _tag: "Missing" as const }) : Effect.fail(error)
        )
      ),
    remove: ({ exchanges = [], queues = [] }) =>
      Effect.suspend(() => {
        topology.forget(queues, exchanges)
        return askOf("remove", [...queues, ...exchanges], (line) =>
          node.step(() => {
            for (const name of queues) node.deleteQueue(name, line)
            for (const name of exchanges) node.deleteExchange(name)
          })
        )
      }),
    inspect: (queue) =>
      askOf("inspect", [queue], (line) => node.step(() => counts(node, queue, line))).pipe(
        Effect.map(Option.some),
        Effect.catch((error) => (error.reason === "not_found" ? Effect.succeed(Option.none()) : Effect.fail(error)))
      ),
    publish: ({ purpose, ...publication }) =>
      Effect.callback((resume) => {
        const leave = publishers[purpose].publish(publication, (outcome) => resume(Effect.succeed(outcome)))
        return Effect.sync(leave)
      }),
    consume: (given) =>
      Effect.gen(function* () {
        const problem = problemOf(given)
        if (problem !== undefined) return yield* problem
        const subscriber = new Subscriber(client, given)
        yield* Effect.acquireRelease(
          ask("consume", (line) => subscriber.begin(line)),
          () =>
            Effect.sync(() => {
              subscribers.delete(subscriber)
              subscriber.close()
            })
        )
        subscribers.add(subscriber)
        const cancel = Effect.suspend(() => {
          const current = line
          if (current !== undefined) return Effect.ignore(askOn(current, "consume", () => subscriber.cancel()))
          // the consumer ended with the connection, and there is nobody to ask
          return Effect.sync(() => subscriber.cancel())
        })
        return { queue: given.queue, cancel }
      }),
    channel: ({ prefetch }) =>
      Effect.gen(function* () {
        const problem = problemOf({ prefetch })
        if (problem !== undefined) return yield* failed("channel", "refused", problem.message)
        const current = yield* connected("channel")
        return yield* OwnChannel.make({
          client,
          line: current,
          prefetch,
          publisher: publisher(),
          ask: (operation, question) => askOn(current, operation, question)
        })
      }),
    connection: SubscriptionRef.changes(state),
    ping: ask("channel", () => {})
  } satisfies Broker["Service"]
})

const mismatch = (differs: string): string => `PRECONDITION_FAILED - ${differs}`

const counts = (node: Node, name: string, line: Line) => {
  const { consumers, messages } = node.queue(name, line)
  return { messages, consumers }
}
