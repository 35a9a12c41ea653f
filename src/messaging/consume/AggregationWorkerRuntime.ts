import { Effect, Fiber, Layer, Scope, Semaphore } from "effect"
import type { Broker } from "../../services/Broker.ts"
import { type InvalidPublish, SettingsError } from "../envelope/Errors.ts"
import { BrokerClient, type InitializeError } from "../publish/BrokerClient.ts"
import { noAggregationError } from "../topology/Aggregation.ts"
import * as Shards from "../topology/Shards.ts"
import { TaskTopology } from "../topology/TaskTopology.ts"
import type { Topology } from "../topology/Topology.ts"
import * as AggregationConsumer from "./AggregationConsumer.ts"
import * as OrphanedShards from "./OrphanedShards.ts"

/**
 * Of all its consumers, beside `shardGroups`. `client`: over that one; `topology`: over a client of its own, without aliases.
 * Two defaults are its own: `consumerName` is `svc-aggregation-worker`, behind which its consumers count from 0, and
 * `stopWithin` is 5 seconds.
 */
export type Options<R> = Omit<AggregationConsumer.Options<R>, "shards" | "queueName"> & {
  /** A consumer and a queue for each group of shards, such as `[[0], [1, 2]]`; they must not overlap. */
  readonly shardGroups: ReadonlyArray<ReadonlyArray<number>>
} & ({ readonly client: BrokerClient["Service"] } | { readonly topology: Topology })

/** One aggregation consumer for each group of shards. */
export interface AggregationWorkerRuntime<R> {
  readonly client: BrokerClient["Service"]
  /** Of the groups, in their order. */
  readonly queues: ReadonlyArray<string>
  /**
   * Initialises the client, declares and binds the queues of all groups, and lets the consumers run beside. An event that
   * is published once it has succeeded is aggregated. Does nothing while they run.
   */
  readonly start: Effect.Effect<void, InitializeError, R>
  /** Succeeds when every event that was taken is settled, or given back: those that hang are interrupted in the end. */
  readonly stop: Effect.Effect<void>
}

/** Consumers that were started live no longer than the scope. */
export const make = Effect.fnUntraced(function* <R>(
  options: Options<R>
): Effect.fn.Return<AggregationWorkerRuntime<R>, InvalidPublish | SettingsError, Broker | Scope.Scope> {
  const scope = yield* Scope.Scope
  const client = "client" in options ? options.client : yield* BrokerClient.make({ topology: options.topology })
  const { consumerName = "svc-aggregation-worker", shardGroups, stopWithin = "5 seconds" } = options
  const { topology } = client
  const aggregation = topology instanceof TaskTopology ? topology.aggregation : undefined
  if (aggregation === undefined) return yield* noAggregationError()
  const problem = Shards.groupsProblem(shardGroups, aggregation.shardCount)
  if (problem !== undefined) {
    return yield* SettingsError.of("AggregationWorkerRuntime", [{ field: "shardGroups", problem }])
  }
  const consumers = yield* Effect.forEach(shardGroups, (shards, index) =>
    Effect.provideService(
      AggregationConsumer.make<R>({ ...options, shards, stopWithin, consumerName: `${consumerName}-${index}` }),
      BrokerClient,
      client
    )
  )
  const oneAtATime = yield* Semaphore.make(1)
  let running: ReadonlyArray<Fiber.Fiber<void>> = []

  const start = Effect.gen(function* () {
    if (running.length > 0) return
    yield* client.initialize
    // each consumer declares its queue too, but only when its loop comes to it
    yield* Effect.forEach(shardGroups, (shards) => client.ensureAggregationQueue(shards), { discard: true }).pipe(
      // the groups were checked when the runtime was made
      Effect.catchTag("InvalidPublish", Effect.die)
    )
    running = yield* Effect.forEach(consumers, ({ run }) => Effect.forkIn(run, scope))
    yield* Effect.forkIn(OrphanedShards.warn(client, OrphanedShards.candidates(aggregation, shardGroups)), scope)
  })
  const stop = Effect.gen(function* () {
    yield* Effect.forEach(consumers, ({ stop }) => stop, { concurrency: "unbounded", discard: true })
    yield* Fiber.interruptAll(running)
    running = []
  })
  return {
    client,
    queues: consumers.map(({ queue }) => queue),
    start: oneAtATime.withPermit(start),
    stop: oneAtATime.withPermit(stop)
  }
})

/** Runs for as long as the layer is there. */
export const layer = <R>(
  options: Options<R>
): Layer.Layer<never, InitializeError | InvalidPublish | SettingsError, Broker | R> =>
  Layer.effectDiscard(Effect.flatMap(make(options), ({ start }) => start))
