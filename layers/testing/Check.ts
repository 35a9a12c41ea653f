import type { Duration, Effect, Layer } from "effect"
import type { TaskInput } from "../../src/messaging/envelope/TaskEnvelope.ts"
import type { BrokerClient } from "../../src/messaging/publish/BrokerClient.ts"
import type { Topology } from "../../src/messaging/topology/Topology.ts"
import type { Broker } from "../../src/services/Broker.ts"
import type { Redis } from "../../src/services/Redis.ts"
import type { FaultKind } from "./Schedule.ts"
import type { Settled } from "./Settled.ts"

/** A check runs a worker, and tells what must be true afterwards. `World` is the type of the services outside the worker. */
export interface Check<World = never, WorldError = never, WorkerError = never, InvariantError = unknown> {
  /** The name of the variable that holds this check. Error messages show code with it. */
  readonly name: string

  readonly topology: Topology

  /**
   * The services that survive a crash of the worker, such as a model of a payment provider or of a database. Each run
   * builds them anew, so their state must be made in the layer. `Layer.empty` if there are none.
   */
  readonly world: Layer.Layer<World, WorldError>

  /**
   * The worker, for example `TaskConsumer.layer(options)`. Each start of a worker builds it anew. It gets a connection
   * of its own, a client of the topology over it, a Redis, and the world.
   */
  readonly worker: Layer.Layer<never, WorkerError, Broker | BrokerClient | Redis | World>

  /**
   * The tasks to publish before the worker starts, or an effect that publishes them. Few tasks make a fast check. A run
   * with 5,000 operations fails as unsettled.
   */
  readonly tasks: ReadonlyArray<TaskInput> | Effect.Effect<unknown, unknown, BrokerClient>

  /**
   * Inspects the world and the broker after everything has settled. It fails or dies if they are not as they must be
   * after any schedule, for example with the error of an `assert`.
   */
  readonly invariant: (settled: Settled) => Effect.Effect<void, InvariantError, Broker | BrokerClient | Redis | World>

  /** The number of worker processes that run at once, each with a connection of its own. Default: 1. */
  readonly workers?: number | undefined

  /** Decides the combinations of faults and the random numbers of the worker. Default: 1. */
  readonly seed?: number | undefined

  /** The maximum number of runs of the search. Shrinking takes at most as many again. Default: 300. */
  readonly maxRuns?: number | undefined

  /** The maximum number of faults in one run. Default: 3. */
  readonly maxFaults?: number | undefined

  /** The kinds of fault that the search uses. Default: all. */
  readonly faults?: ReadonlyArray<FaultKind> | undefined

  /** The time by which a delayed operation begins or returns late, in virtual time. Default: 5 seconds. */
  readonly delay?: Duration.Input | undefined

  /** The virtual time after which a worker that has not settled fails the check. Default: 2 hours. */
  readonly deadline?: Duration.Input | undefined
}

export const defaults = {
  workers: 1,
  seed: 1,
  maxRuns: 300,
  maxFaults: 3,
  delay: "5 seconds",
  deadline: "2 hours"
} as const
