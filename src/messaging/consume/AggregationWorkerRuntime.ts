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
 * Options of the runtime and of all its consumers. Pass either a `client` or a `topology`. With a `topology`, the
 * runtime creates a client without aliases. `consumerName` defaults to `svc-aggregation-worker`. Each consumer appends
 * `-` and its index to the name. `stopWithin` defaults to 5 seconds.
 */
export type Options<R> = Omit<AggregationConsumer.Options<R>, "shards" | "queueName"> & {
  /**
   * The groups of shards, such as `[[0], [1, 2]]`. Each group has one consumer and one queue. Groups must not overlap.
   */
  readonly shardGroups: ReadonlyArray<ReadonlyArray<number>>
} & ({ readonly client: BrokerClient["Service"] } | { readonly topology: Topology })

/** Runs one aggregation consumer for each group of shards. */
export interface AggregationWorkerRuntime<R> {
  readonly client: BrokerClient["Service"]
  /** The names of the queues, in the order of the groups. */
  readonly queues: ReadonlyArray<string>
  /**
   * Initialises the client, declares the queues of all groups, and starts the consumers in the background. The queues
   * receive all events that are published after `start` has succeeded. While the consumers run, `start` is a no-op.
   */
  readonly start: Effect.Effect<void, InitializeError, R>
  /** Stops all consumers. Handlers that are still running after `stopWithin` are interrupted. */
  readonly stop: Effect.Effect<void>
}

/** Creates the runtime. Closing the scope stops the consumers. */
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
    // The queues must exist when `start` succeeds. The consumers declare them later, in the background.
    yield* Effect.forEach(shardGroups, (shards) => client.ensureAggregationQueue(shards), { discard: true }).pipe(
      // `make` has validated the groups, so this failure is impossible.
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

/** Starts the runtime. Closing the layer stops the consumers. */
export const layer = <R>(
  options: Options<R>
): Layer.Layer<never, InitializeError | InvalidPublish | SettingsError, Broker | R> =>
  Layer.effectDiscard(Effect.flatMap(make(options), ({ start }) => start))
