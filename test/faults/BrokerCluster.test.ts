import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option, type Redacted } from "effect"
import * as BrokerAmqp from "../../layers/BrokerAmqp.ts"
import * as Handler from "../../src/messaging/consume/Handler.ts"
import * as TaskConsumer from "../../src/messaging/consume/TaskConsumer.ts"
import { BrokerClient } from "../../src/messaging/publish/BrokerClient.ts"
import { RetryPolicy } from "../../src/messaging/topology/RetryPolicy.ts"
import { RoutedTasksSharedStatusTopology } from "../../src/messaging/topology/TaskTopology.ts"
import { eventually } from "../Eventually.ts"
import { letters } from "../messaging/Letters.ts"
import * as RabbitmqProcess from "../RabbitmqProcess.ts"

/**
 * Three servers want more of a machine than the other tests leave it:
 *
 * SVC_TEST_CLUSTER=1 npm test -- test/faults/BrokerCluster.test.ts
 */
const wanted = process.env["SVC_TEST_CLUSTER"] === "1"

describe.skipIf(!wanted || !RabbitmqProcess.available)("a cluster of three RabbitMQs under load", () => {
  it.live(
    "loses nothing that was confirmed when the node of the queue's leader is killed, nor when the clients' own node is",
    () =>
      Effect.gen(function* () {
        const [a, b, c] = yield* RabbitmqProcess.cluster(RabbitmqProcess.offeringSoon)
        const publishing = yield* Layer.build(desk("svc-test-publishers", [a.url, b.url, c.url]))
        const consuming = yield* Layer.build(desk("svc-test-consumers", [b.url, c.url, a.url]))
        yield* Effect.gen(function* () {
          // The node by which a queue is declared leads it.
          yield* (yield* BrokerClient).initialize
          const { handlings, run, stop } = yield* Effect.provide(worker, consuming)
          yield* Effect.forkScoped(run)
          const load = yield* publishers
          yield* more(handlings, 500)
          assert.strictEqual(yield* leaderBy(c), a.name)

          // First the leader's, which is the publishers'; then the one where they have gone, which is the worker's.
          for (const victim of [a, b]) {
            const killedAt = performance.now()
            yield* victim.kill
            yield* more(load.confirmed, 500)
            yield* more(handlings, 500)
            const silent = { publishers: silence(load.confirmed, killedAt), worker: silence(handlings, killedAt) }
            yield* victim.start
            yield* Effect.logInfo(
              `${victim.name} killed: nothing confirmed for ${silent.publishers} ms, or handled for ${silent.worker} ms`
            )
            assert.isBelow(Math.max(silent.publishers, silent.worker), 15_000)
          }
          yield* load.stop
          const { inspectQueue } = yield* BrokerClient
          // those that have used up their retries are the last
          yield* eventually(
            Effect.all([inspectQueue(queue), inspectQueue(retryQueue)]),
            (found) => found.every(Option.exists(({ messages }) => messages === 0)),
            "30 seconds"
          )
          yield* eventually(c.deadLettering, (count) => count === 0, "30 seconds")
          yield* stop

          const [waiting, fresh, dead] = yield* Effect.all([idsIn(retryQueue), idsIn(queue), idsIn(`${queue}.dlq`)])
          const queued = new Set([...waiting, ...fresh])
          const done = new Set(handlings.filter(({ ended }) => ended).map(({ id }) => id))
          const confirmed = load.confirmed.map(({ id }) => id)
          yield* Effect.logInfo(
            `confirmed ${confirmed.length}, refused ${load.refused.length}, unknown ${load.unknown.size}; ` +
              `handled ${done.size}, dead-lettered ${dead.size}, still queued ${queued.size}`
          )
          assert.deepStrictEqual(
            confirmed.filter((id) => !done.has(id) && !dead.has(id) && !queued.has(id)),
            []
          )
          assert.deepStrictEqual(
            load.refused.filter((id) => done.has(id) || dead.has(id) || queued.has(id)),
            []
          )
          // a retry may come twice without a mark: its retry queue let it out, and died before it had written that down
          const firsts = handlings.filter(({ attempt }) => attempt === 0)
          const redelivered = new Set(firsts.filter(({ redelivered }) => redelivered).map(({ id }) => id))
          const before = new Set<string>()
          const twice = firsts.filter(({ id }) => before.has(id) || !before.add(id))
          assert.deepStrictEqual(
            twice.filter(({ id }) => !redelivered.has(id) && !load.unknown.has(id)),
            []
          )
          assert.isAbove(dead.size, 0)
          assert.isAbove(handlings.filter(({ attempt, ended }) => ended && attempt > 0).length, 100)
        }).pipe(Effect.provide(publishing))
      }).pipe(Effect.scoped),
    180_000
  )
})

const queue = "tasks.queue"

const retryPolicy = new RetryPolicy({ max_retries: 2, delay_ms: 250 })
const retryQueue = `${queue}.retry.250ms.quorum`

const topology = new RoutedTasksSharedStatusTopology({
  tasks_exchange: "tasks",
  tasks_queue: queue,
  task_types: ["count"],
  task_queue_type: "quorum",
  status_exchange: "status",
  status_queue: "status.queue",
  status_use_streams: false
})

const desk = (name: string, url: readonly [Redacted.Redacted, ...ReadonlyArray<Redacted.Redacted>]) =>
  Layer.provideMerge(BrokerClient.layer({ topology }), BrokerAmqp.layer({ url, name, closeWithin: "500 millis" }))

/** What was seen of a task, at a time in milliseconds. */
interface Seen {
  readonly id: string
  readonly at: number
}

interface Handling extends Seen {
  readonly attempt: number
  readonly redelivered: boolean
  ended: boolean
}

/** One task in seven fails at first, and one in a hundred always. */
const worker = Effect.gen(function* () {
  const handlings: Array<Handling> = []
  const { run, stop } = yield* TaskConsumer.make({
    // Those that fail wait for their dead-letter queue, which is on one node alone, and must not be in everybody's way.
    concurrency: 200,
    retryPolicy,
    handler: Handler.make(({ payload, task_id: id }, { redelivered, retryAttempt: attempt }) =>
      Effect.gen(function* () {
        const handling: Handling = { id, at: performance.now(), attempt, redelivered, ended: false }
        handlings.push(handling)
        yield* Effect.sleep("5 millis")
        const n = Number(payload["n"])
        if (n === 0) return yield* Effect.fail(new Error("never"))
        if (n % 7 === 0 && attempt === 0) return yield* Effect.fail(new Error("not yet"))
        handling.ended = true
      })
    )
  })
  return { handlings, run, stop }
})

/** Ten callers, each with a task after the other, until they are stopped or the scope closes. */
const publishers = Effect.gen(function* () {
  const { publishTask } = yield* BrokerClient
  const confirmed: Array<Seen> = []
  const refused: Array<string> = []
  const unknown = new Set<string>()
  let going = true
  const publisher = (number: number) =>
    Effect.gen(function* () {
      for (let n = 0; going; n++) {
        const id = `${number} ${n}`
        yield* Effect.match(publishTask({ task_id: id, task_type: "count", payload: { n: n % 100 } }), {
          onSuccess: () => confirmed.push({ id, at: performance.now() }),
          onFailure: (error) => (error._tag === "PublishUnknown" ? unknown.add(id) : refused.push(id))
        })
        yield* Effect.sleep("20 millis")
      }
    })
  yield* Effect.forEach([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], (number) => Effect.forkScoped(publisher(number)))
  const stop = Effect.sync(() => {
    going = false
  })
  return { confirmed, refused, unknown, stop }
})

const more = (all: ReadonlyArray<Seen>, count: number) =>
  Effect.suspend(() => {
    const enough = all.length + count
    return eventually(
      Effect.sync(() => all.length),
      (length) => length >= enough,
      "30 seconds"
    )
  })

/** The longest time without anything since an instant, in whole milliseconds. */
const silence = (all: ReadonlyArray<Seen>, since: number): number => {
  const times = [since, ...all.map(({ at }) => at).filter((at) => at > since)]
  return Math.round(Math.max(...times.map((at, n) => at - (times[n - 1] ?? at))))
}

const idsIn = (name: string) =>
  Effect.map(letters(name), (all) => new Set(all.map(({ properties }) => properties.correlationId ?? "")))

const leaderBy = (node: RabbitmqProcess.Node) =>
  Effect.map(node.control("list_queues", "--quiet", "--no-table-headers", "name", "leader"), ({ stdout }) =>
    stdout
      .split("\n")
      .map((line) => line.split("\t"))
      .find(([name]) => name === queue)
      ?.at(1)
  )
