import { describe } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import * as BrokerMemory from "../../layers/BrokerMemory.ts"
import * as RedisMemory from "../../layers/RedisMemory.ts"
import type { ExecutionGraph } from "../../src/graph/ExecutionGraph.ts"
import { ExecutionGraphService } from "../../src/graph/ExecutionGraphService.ts"
import type { Explanation } from "../../src/graph/Explain.ts"
import { ObservationStore } from "../../src/graph/observations/ObservationStore.ts"
import * as RedisObservationStore from "../../src/graph/observations/RedisObservationStore.ts"
import * as StatusRuntime from "../../src/graph/StatusRuntime.ts"
import { BrokerClient } from "../../src/messaging/publish/BrokerClient.ts"
import { RetryPolicy } from "../../src/messaging/topology/RetryPolicy.ts"
import { RetryStatusConfig } from "../../src/messaging/topology/StatusSettings.ts"
import type { Topology } from "../../src/messaging/topology/Topology.ts"
import type { Broker } from "../../src/services/Broker.ts"
import type { Redis } from "../../src/services/Redis.ts"
import { DeadLetterStore } from "../../src/status/dead-letters/DeadLetterStore.ts"
import { eventually } from "../Eventually.ts"
import * as RunningBroker from "../RunningBroker.ts"
import * as TemporaryNames from "../TemporaryNames.ts"
import * as TemporaryPrefix from "../TemporaryPrefix.ts"

/** Over a broker and a Redis that nobody else uses, or by names that nobody else uses. */
type Provided = <A, E>(
  run: Effect.Effect<A, E, Broker | Redis | TemporaryNames.TemporaryNames>
) => Effect.Effect<A, unknown>

/** Runs through workers, hub and stores to the graph: in memory, and on a RabbitMQ and a Redis. */
export const onBothServers = (runs: (provided: Provided) => void) => {
  const over =
    <E>(servers: Layer.Layer<Broker | Redis, E>): Provided =>
    (run) =>
      Effect.provide(run, TemporaryNames.layer.pipe(Layer.provideMerge(servers)))
  const [memory, real] = [
    Layer.merge(BrokerMemory.layer(), RedisMemory.layer({ prefix: "svc:" })),
    Layer.merge(RunningBroker.layer(), TemporaryPrefix.layer)
  ]
  describe("in memory", () => runs(over(memory)))
  describe.skipIf(RunningBroker.server === null || TemporaryPrefix.server === null)("on RabbitMQ and Redis", () =>
    runs(over(real))
  )
}

/** Long enough to be looked at meanwhile. */
const delay = 2_000

/** Parameters of topologies by names of their own, and the names of queues with their retries and dead letters. */
export const naming = Effect.map(TemporaryNames.TemporaryNames, ({ exchange, queue }) => {
  const worked = (base: string) => {
    for (const suffix of [".dlq", `.retry.${delay}ms.quorum`]) queue(base + suffix)
    return queue(base)
  }
  const status = { status_exchange: exchange("status"), status_queue: queue("status") }
  const tasks = { ...status, tasks_exchange: exchange("tasks"), tasks_queue: worked("tasks") }
  const aggregated = worked("aggregated.0-1")
  const shards = {
    shard_count: 2,
    aggregation_queue_template: queue("aggregated.{shard}"),
    aggregation_queue_name_prefix: aggregated.slice(0, aggregated.lastIndexOf("."))
  }
  return { exchange, worked, status, tasks, aggregated, shards }
})

/** Runs beside whatever a process that serves statuses and graphs of the topology has. */
export const living = <A, E, R>(topology: Topology, run: Effect.Effect<A, E, R>) =>
  Effect.flatMap(BrokerClient, ({ initialize }) => initialize).pipe(
    Effect.andThen(run),
    Effect.scoped,
    Effect.provide(StatusRuntime.layer({ topology }))
  )

/** What every consumer of these runs tells: into the stores that the graph is made of. */
export const telling = Effect.gen(function* () {
  return {
    dlqStore: yield* DeadLetterStore,
    observationSink: yield* RedisObservationStore.makeRedisObservationSink(yield* ObservationStore),
    retryPolicy: new RetryPolicy({ max_retries: 1, delay_ms: delay }),
    retryStatuses: new RetryStatusConfig({ enabled: true })
  }
})

interface Consumer<R> {
  readonly run: Effect.Effect<void, never, R>
  readonly stop: Effect.Effect<void>
}

/** Runs a consumer beside the run, until it ends. */
export const working = Effect.fnUntraced(function* <R, E, R2>(made: Effect.Effect<Consumer<R>, E, R2>) {
  const { run, stop } = yield* made
  yield* Effect.forkScoped(run)
  yield* Effect.addFinalizer(() => stop)
})

/** What is said of the task, once that is so. */
export const explained = (taskId: string, verdict: Explanation["verdict"]) =>
  Effect.flatMap(ExecutionGraphService, ({ explain }) =>
    eventually(Effect.map(explain(taskId), Option.getOrUndefined), (found) => found?.verdict === verdict)
  )

/** The graph of the task, once it has so many nodes. */
export const graphOf = (taskId: string, nodes: number) =>
  Effect.flatMap(ExecutionGraphService, ({ graph }) =>
    eventually(
      graph(taskId),
      Option.exists((found) => found.nodes.length >= nodes)
    )
  ).pipe(Effect.map(Option.getOrThrow))

/** Nodes as `id (label)`, with messages by their stage instead of their random id, and edges. */
export const drawn = ({ edges, nodes }: ExecutionGraph) => {
  const names = new Map(nodes.map(({ id, kind, label }) => [id, kind === "workflow_message" ? `message:${label}` : id]))
  return {
    nodes: nodes.map(({ id, label }) => `${names.get(id)} (${label})`).sort(),
    edges: edges.map(({ kind, source, target }) => `${names.get(source)} ${kind} ${names.get(target)}`).sort()
  }
}
