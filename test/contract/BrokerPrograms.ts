import { Effect, Exit, Option, Schedule, Scope } from "effect"
import fc from "fast-check"
import type { Broker, Channel, Declarations, Delivery, Fields, Outcome, Settlement } from "../../src/services/Broker.ts"
import { eventually } from "../Eventually.ts"

/** Two queues under test, and what each of them buries. */
export interface Program {
  readonly queues: readonly [Fields, Fields]
  readonly steps: ReadonlyArray<Step>
}

type Step =
  | { readonly do: "publish"; readonly queue: 0 | 1; readonly priority: number; readonly brief: boolean }
  | { readonly do: "get" | "subscribe" | "unsubscribe"; readonly queue: 0 | 1; readonly prefetch: number }
  | { readonly do: "settle"; readonly which: number; readonly how: Settlement }
  | { readonly do: "cut" }

const queue = fc.constantFrom(0 as const, 1 as const)

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("publish" as const),
      queue,
      priority: fc.nat(4),
      brief: fc.nat(3).map((chance) => chance === 0)
    })
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("settle" as const),
      which: fc.nat(5),
      how: fc.constantFrom<Settlement>("ack", "requeue", "reject")
    })
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("get" as const), queue, prefetch: fc.constant(0) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom("subscribe" as const, "unsubscribe" as const),
      queue,
      prefetch: fc.integer({ min: 1, max: 3 })
    })
  },
  { weight: 1, arbitrary: fc.constant({ do: "cut" as const }) }
)

const optional = (fields: Fields) => fc.constantFrom<Fields>({}, fields)

const merged = (...parts: ReadonlyArray<fc.Arbitrary<Fields>>): fc.Arbitrary<Fields> =>
  fc.tuple(...parts).map((parts) => Object.assign({}, ...parts))

/**
 * What is left out of quorum queues: `get` is refused with one active consumer; that it is full, such a queue learns at a
 * moment of its own; when it buries several for its length at once, they come in an order that the model has not; and
 * 3.10.8 gives a consumer one delivery more than its prefetch for each that it buries at the delivery limit.
 */
export const program: fc.Arbitrary<Program> = fc.record({
  queues: fc.tuple(
    merged(
      optional({ "x-max-priority": 3 }),
      optional({ "x-overflow": "reject-publish" }),
      optional({ "x-single-active-consumer": true }),
      optional({ "x-max-length": 3 })
    ),
    fc.constant<Fields>({ "x-queue-type": "quorum" })
  ),
  steps: fc.array(step, { minLength: 8, maxLength: 24 })
})

/** A broker, seen by the connection that is cut and by one that is not. */
export interface Subject {
  readonly broker: Broker["Service"]
  readonly observer: Broker["Service"]
  readonly cut: Effect.Effect<void>
  readonly restore: Effect.Effect<void>
}

/** What one can see when nothing is under way any more. */
export interface Sight {
  readonly step: string
  /** How many messages are ready in each queue. */
  readonly counts: ReadonlyArray<number>
  /** Of each queue since the step before, in order. */
  readonly arrived: ReadonlyArray<ReadonlyArray<string>>
  readonly outcome: string
}

interface Held {
  readonly delivery: Delivery
  readonly by: "get" | "consumer"
  readonly queue: number
}

const written = ({ content, properties: { headers = {} }, redelivered }: Delivery): string => {
  const deaths = headers["x-death"]
  const of = (death: unknown) =>
    typeof death === "object" && death !== null && "reason" in death && "count" in death
      ? `${String(death.reason)} ${String(death.count)}`
      : "?"
  return [
    Buffer.from(content).toString() + (redelivered ? "*" : ""),
    ...("x-delivery-count" in headers ? [`count ${String(headers["x-delivery-count"])}`] : []),
    ...(Array.isArray(deaths) ? deaths.map(of) : [])
  ].join(" ")
}

const said = (outcome: Outcome) => (outcome._tag === "Refused" ? outcome.reason : outcome._tag)

/** Not of the consumers: a quorum queue counts whoever holds a message that was got, too. */
const counted = ({ observer }: Subject, names: ReadonlyArray<string>) =>
  Effect.forEach(names, (name) => Effect.map(observer.inspect(name), (found) => Option.getOrThrow(found).messages))

/**
 * Runs a program. `settled` says when nothing is under way after a step: it looks at what can be seen, and is asked for
 * the outcome of each step in turn. At the end all queues are read to their end.
 */
export const run = Effect.fnUntraced(function* (
  subject: Subject,
  { queues, steps }: Program,
  prefix: string,
  settled: (look: Effect.Effect<Sight>, step: number) => Effect.Effect<Sight>
) {
  const { broker, cut, restore } = subject
  const names = [`${prefix}:0`, `${prefix}:1`, `${prefix}:0:dead`, `${prefix}:1:dead`]
  const [first = "", second = "", ...graves] = names
  const wanted: Declarations = {
    exchanges: [],
    queues: [
      ...graves.map((name) => ({ name })),
      ...[first, second].map((name, index) => ({
        name,
        arguments: { ...queues[index], "x-dead-letter-exchange": "", "x-dead-letter-routing-key": `${name}:dead` }
      }))
    ],
    bindings: []
  }
  // Not by the observer: a subject that is just coming back would declare them again.
  yield* Effect.acquireRelease(broker.declare(wanted), () =>
    Effect.orDie(Effect.retry(broker.remove({ queues: names }), { schedule: Schedule.spaced("50 millis"), times: 100 }))
  )

  const consumers: Array<Scope.Closeable | undefined> = [undefined, undefined]
  let resumed = 0
  let held: Array<Held> = []
  let arrived: Array<Array<string>> = names.map(() => [])
  let reading = yield* Scope.make()
  let channel: Channel = yield* Scope.provide(broker.channel({ prefetch: 1 }), reading)
  const history: Array<Sight> = []
  let published = 0

  const take = (index: number, by: Held["by"]) => (delivery: Delivery) => {
    arrived[index]?.push(written(delivery))
    held.push({ delivery, by, queue: index })
  }
  const settle = (which: number, how: Settlement) => {
    const chosen = held[which % held.length]
    held = held.filter((other) => other !== chosen)
    return chosen?.delivery.settle(how)
  }
  const get = (index: number) =>
    Effect.tap(channel.get(names[index] ?? ""), (found) => Effect.sync(() => Option.map(found, take(index, "get"))))

  const perform = Effect.fnUntraced(function* (step: Step) {
    switch (step.do) {
      case "publish": {
        const outcome = yield* broker.publish({
          purpose: "tasks",
          exchange: "",
          routingKey: names[step.queue] ?? "",
          content: Buffer.from(`m${published++}`),
          properties: { priority: step.priority, ...(step.brief ? { expiration: 1 } : {}) }
        })
        return said(outcome)
      }
      case "get":
        return Option.isSome(yield* get(step.queue)) ? "some" : "none"
      case "settle":
        return held.length === 0 ? "nothing" : (settle(step.which, step.how) ?? "nothing")
      case "subscribe": {
        // What two channels left on a quorum queue comes back in an order of its own.
        const apart = held.some(({ by, queue }) => by === "get" && queue === step.queue)
        if (consumers[step.queue] !== undefined || apart) return "not now"
        const scope = yield* Scope.make()
        consumers[step.queue] = scope
        yield* Scope.provide(
          broker.consume({
            queue: names[step.queue] ?? "",
            prefetch: step.prefetch,
            onDelivery: take(step.queue, "consumer"),
            onResumed: () => {
              resumed++
            }
          }),
          scope
        )
        return "subscribed"
      }
      case "unsubscribe": {
        const scope = consumers[step.queue]
        if (scope === undefined) return "nothing"
        consumers[step.queue] = undefined
        held = held.filter(({ by, queue }) => by === "get" || queue !== step.queue)
        yield* Scope.close(scope, Exit.void)
        return "unsubscribed"
      }
      case "cut":
        return "cut"
    }
  })

  const look = (step: string, outcome: string) =>
    Effect.map(
      counted(subject, names),
      (counts): Sight => ({ step, counts, arrived: arrived.map((list) => list.slice()), outcome })
    ).pipe(Effect.orDie)

  const see = Effect.fnUntraced(function* (step: string, outcome: string) {
    history.push(yield* settled(look(step, outcome), history.length))
    arrived = names.map(() => [])
  })

  for (const step of steps) {
    const apart = step.do === "get" && consumers[step.queue] !== undefined
    const outcome = apart ? "not now" : yield* perform(step)
    if (step.do !== "cut") {
      yield* see(JSON.stringify(step), outcome)
      continue
    }
    held = []
    resumed = 0
    // What was settled is with the server: nothing that can be seen tells an acknowledgement from one under way.
    yield* broker.ping
    yield* cut
    // What was held is back before anybody asks for it again. And whoever looks for a shorter program needs a connection.
    yield* Effect.ensuring(see("cut", ""), restore)
    const consuming = consumers.filter((scope) => scope !== undefined).length
    yield* eventually(
      Effect.sync(() => resumed),
      (count) => count === consuming
    )
    reading = yield* Scope.make()
    channel = yield* Scope.provide(broker.channel({ prefetch: 1 }), reading)
    yield* see("restored", "")
  }

  for (const scope of consumers) if (scope !== undefined) yield* Scope.close(scope, Exit.void)
  yield* Scope.close(reading, Exit.void)
  held = []
  yield* see("left", "")
  const last = yield* Scope.make()
  channel = yield* Scope.provide(broker.channel({ prefetch: 1 }), last)
  for (const index of names.keys()) while (Option.isSome(yield* get(index))) settle(held.length - 1, "ack")
  yield* see("read to the end", "")
  yield* Scope.close(last, Exit.void)
  return history
}, Effect.scoped)
