import { randomUUID } from "node:crypto"
import { Clock, Context, Effect, Layer, type Option, Result, type Scope, Semaphore } from "effect"
import { Broker, type BrokerError, type Channel, type Fields, type Publication } from "../../services/Broker.ts"
import { isJsonObject, type JsonObject } from "../envelope/Envelope.ts"
import {
  type ContractError,
  type EnvelopeError,
  type InvalidPublish,
  type SettingsError,
  TopologyError
} from "../envelope/Errors.ts"
import type { StatusInput } from "../envelope/StatusEvent.ts"
import * as TaskEnvelope from "../envelope/TaskEnvelope.ts"
import * as Timestamp from "../envelope/Timestamp.ts"
import * as TraceContext from "../envelope/TraceContext.ts"
import * as WorkflowEnvelope from "../envelope/WorkflowEnvelope.ts"
import * as RetryQueues from "../retry/RetryQueues.ts"
import { ContractAliasConfig } from "../topology/Aliases.ts"
import * as BrokerCapabilities from "../topology/BrokerCapabilities.ts"
import type { RetryPolicy } from "../topology/RetryPolicy.ts"
import { aggregationQueue } from "../topology/TaskTopology.ts"
import { declarations, exchangesOnly, type Topology } from "../topology/Topology.ts"
import * as TopologyPlan from "../topology/TopologyPlan.ts"
import * as Publications from "./Publications.ts"
import * as PublishMany from "./PublishMany.ts"
import { requireConfirmed, type UnconfirmedPublish } from "./PublishOutcome.ts"
import * as PublishSpan from "./PublishSpan.ts"

/** Options of a `BrokerClient`. The address, name and other settings of the connection are options of the `Broker`. */
export interface ClientOptions {
  readonly topology: Topology
  /** Aliases of top-level members in bodies. Default: only the built-in alias `documentId` for `task_id`. */
  readonly aliasConfig?: ContractAliasConfig | undefined
  /**
   * Declares only the exchanges, and leaves the queues to the workers. Until a worker has declared its queue,
   * publishing to it fails with `Unroutable`. Default: false.
   */
  readonly publishOnly?: boolean | undefined
}

/**
 * The failures of `initialize`. A `TopologyError` means that this release of the broker refuses the topology, or that
 * an existing exchange or queue differs from it. The error names each of them and the remedy.
 */
export type InitializeError = TopologyError | BrokerError

export type PublishError = InvalidPublish | EnvelopeError | UnconfirmedPublish | InitializeError

export interface PublishOptions {
  /** Headers to send with the message. They take precedence over the headers that the library sets. */
  readonly headers?: Fields | undefined
}

/**
 * Input of a publish that the compiler does not check: a body with the names of `aliasConfig`, or JSON from another
 * source. Aliases are resolved for checked input as well.
 */
export interface Aliased {
  readonly aliased: true
}

interface PublishTask {
  (task: JsonObject, options: PublishOptions & Aliased): Effect.Effect<void, PublishError>
  (task: TaskEnvelope.TaskInput, options?: PublishOptions): Effect.Effect<void, PublishError>
}

interface PublishTasks {
  (
    tasks: ReadonlyArray<JsonObject>,
    options: PublishMany.ManyTasksOptions & Aliased
  ): Effect.Effect<void, PublishError | PublishMany.TasksUnpublished>
  (
    tasks: ReadonlyArray<TaskEnvelope.TaskInput>,
    options?: PublishMany.ManyTasksOptions
  ): Effect.Effect<void, PublishError | PublishMany.TasksUnpublished>
}

interface PublishWorkflow {
  (
    envelope: JsonObject,
    target: string,
    options: PublishOptions & Aliased
  ): Effect.Effect<void, PublishError | ContractError>
  (
    envelope: WorkflowEnvelope.WorkflowInput,
    target: string,
    options?: PublishOptions
  ): Effect.Effect<void, PublishError | ContractError>
}

interface PublishStatus {
  (event: JsonObject, options: Aliased): Effect.Effect<void, PublishError>
  (event: StatusInput): Effect.Effect<void, PublishError>
}

/**
 * Publishes tasks, workflow messages and statuses, and declares the topology that they need. Bodies are plain objects
 * with canonical or aliased member names, and are validated before anything is sent.
 *
 * A publish succeeds once the broker has confirmed it. Otherwise it fails, and `mayDuplicate` of the error says whether
 * publishing again may duplicate the message. The client never publishes a message twice by itself.
 *
 * ```ts
 * const program = Effect.gen(function* () {
 *   const client = yield* BrokerClient
 *   yield* client.publishTask({ task_id: "42", task_type: "resize", payload: { url } })
 * }).pipe(Effect.provide(BrokerClient.layer({ topology })))
 * ```
 */
export class BrokerClient extends Context.Service<
  BrokerClient,
  {
    readonly topology: Topology
    readonly aliases: ContractAliasConfig

    /**
     * Declares the topology. After the first success, further calls have no effect. Publishing calls it if necessary.
     */
    readonly initialize: Effect.Effect<void, InitializeError>

    /** Publishes a task to the task queue of the topology. Routed topologies route it by `task_type`. */
    readonly publishTask: PublishTask

    /**
     * Publishes many tasks, which are all validated before the first is sent.
     *
     * - `{ mode: "individual" }`, the default, sends one message for each task. It fails with a `TasksUnpublished` if
     *   some are not confirmed.
     * - `{ mode: "batch_envelope", batchId }` sends one message for all, which a consumer with a retry policy splits.
     */
    readonly publishTasks: PublishTasks

    /** Publishes a workflow message by a named entry route. Its envelope gets the target of the route as `stage`. */
    readonly publishToEntry: PublishWorkflow

    /** Publishes a workflow message to the inbox queue of a stage. Its envelope gets that name as `stage`. */
    readonly publishToStage: PublishWorkflow

    /** Publishes a workflow message by a routing key. Its envelope gets the stage that the key leads to as `stage`. */
    readonly publishWorkflowMessage: PublishWorkflow

    /** Publishes a status of any task. In a handler, use the context instead, which adds the current task. */
    readonly publishStatus: PublishStatus

    /** Publishes a status that is also input for the aggregation of `meta.parent_task_id`, which is required. */
    readonly publishAggregationStatus: PublishStatus

    /** Declares and binds the aggregation queue of these shards and returns its name, which `name` replaces. */
    readonly ensureAggregationQueue: (
      shards: ReadonlyArray<number>,
      name?: string
    ) => Effect.Effect<string, InvalidPublish | InitializeError>

    /** Declares the retry queues and the dead-letter queue of a worker queue. */
    readonly ensureRetryInfrastructure: (
      sourceQueue: string,
      policy: RetryPolicy
    ) => Effect.Effect<RetryQueues.RetryQueues, SettingsError | InitializeError>

    /** Publishes bytes unchanged and directly to a queue. */
    readonly publishRawToQueue: (
      queue: string,
      content: Uint8Array,
      options?: Publications.RawOptions
    ) => Effect.Effect<void, UnconfirmedPublish>

    /** Publishes a message that is already encoded, such as a retry, a dead letter or a task of a batch. */
    readonly publish: (publication: Publication) => Effect.Effect<void, UnconfirmedPublish>

    /** Opens a channel, which is closed together with the scope. `prefetch` is 200 by default. */
    readonly acquireChannel: (options?: {
      readonly prefetch?: number
    }) => Effect.Effect<Channel, BrokerError, Scope.Scope>

    /**
     * Returns how many messages are ready in a queue and how many consumers it has. Returns none if it does not exist.
     */
    readonly inspectQueue: (
      queue: string
    ) => Effect.Effect<Option.Option<{ readonly messages: number; readonly consumers: number }>, BrokerError>

    /** Succeeds when the broker has answered. */
    readonly ping: Effect.Effect<void, BrokerError>
  }
>()("svc/messaging/BrokerClient") {
  static readonly make: (options: ClientOptions) => Effect.Effect<BrokerClient["Service"], never, Broker> =
    Effect.fnUntraced(function* ({ aliasConfig: aliases = new ContractAliasConfig(), publishOnly: only, topology }) {
      const broker = yield* Broker
      const clock = yield* Clock.Clock
      const withPublishSpan = yield* PublishSpan.make
      const traceIds = yield* TraceContext.current
      const initializeLock = yield* Semaphore.make(1)
      let brokerOptions: Publications.TaskOptions = {}
      let isInitialized = false

      const declared = only === true ? exchangesOnly(topology) : declarations(topology)

      const declare = Effect.gen(function* () {
        if (isInitialized) return
        const { version } = yield* broker.server
        const { refusals, warnings } = topology.check(version)
        if (refusals.length > 0) return yield* TopologyError.of(topology.kind, refusals)
        for (const { field, problem } of [...topology.warnings, ...warnings]) {
          yield* Effect.logWarning(`Topology ${topology.kind}: ${field} ${problem}`)
        }
        yield* TopologyPlan.declare(broker, topology, declared)
        const capabilities = BrokerCapabilities.of(version)
        if (capabilities !== undefined) brokerOptions = { capabilities }
        isInitialized = true
      }).pipe(Effect.withSpan("BrokerClient.initialize"))
      const initialize = Effect.suspend(() => (isInitialized ? Effect.void : initializeLock.withPermit(declare)))

      const publish = (publication: Publication): Effect.Effect<void, UnconfirmedPublish> =>
        withPublishSpan(publication, (publication) =>
          Effect.flatMap(broker.publish(publication), (outcome) => requireConfirmed(publication, outcome))
        )

      /**
       * The first preparation validates, so that an invalid body fails without a broker. The second one runs with the
       * connection, which tells the message priorities that the broker supports.
       */
      const prepareAndPublish = <A, B, E, E2>(
        prepare: () => Result.Result<A, E>,
        publish: (ready: A) => Effect.Effect<B, E2>
      ) =>
        Effect.suspend((): Effect.Effect<B, E | E2 | InitializeError> => {
          const first = prepare()
          if (Result.isFailure(first)) return Effect.fail(first.failure)
          if (isInitialized) return publish(first.success)
          return Effect.flatMap(initialize, () =>
            Effect.flatMap(Effect.fromResult(Result.flatMap(first, prepare)), publish)
          )
        })

      const now = () => Timestamp.ofMillis(clock.currentTimeMillisUnsafe())
      const uniqueId = () => randomUUID().replaceAll("-", "")
      const withBrokerOptions = (options?: PublishOptions): Publications.TaskOptions =>
        options === undefined ? brokerOptions : { ...options, ...brokerOptions }

      const publishWorkflow = (input: JsonObject, target: Publications.WorkflowTarget, options?: PublishOptions) =>
        prepareAndPublish(() => {
          const given = aliases.inbound(input)
          const withoutStage = isJsonObject(given) ? { ...given, stage: "" } : given
          return Result.flatMap(WorkflowEnvelope.read(withoutStage, uniqueId()), (envelope) =>
            Publications.workflow(topology, envelope, target, withBrokerOptions(options))
          )
        }, publish)

      const publishStatus = (prepare: typeof Publications.status, event: JsonObject) =>
        prepareAndPublish(
          () => prepare(topology, aliases.inbound(event), { now: now(), unique: uniqueId(), trace: traceIds() }),
          publish
        )

      return BrokerClient.of({
        topology,
        aliases,
        initialize,
        publishTask: (task: JsonObject, options?: PublishOptions) =>
          prepareAndPublish(
            () =>
              Result.flatMap(TaskEnvelope.read(aliases.inbound(task), now()), (task) =>
                Publications.task(topology, task, withBrokerOptions(options))
              ),
            publish
          ),
        publishTasks: (tasks: ReadonlyArray<JsonObject>, options: PublishMany.ManyTasksOptions = {}) =>
          prepareAndPublish(
            () =>
              PublishMany.publications(
                topology,
                tasks.map((task) => aliases.inbound(task)),
                options,
                now(),
                brokerOptions.capabilities
              ),
            (publications) => PublishMany.publishAll(publications, publish, options)
          ),
        publishToEntry: (envelope: JsonObject, route: string, options?: PublishOptions) =>
          publishWorkflow(envelope, { _tag: "Entry", route }, options),
        publishToStage: (envelope: JsonObject, stage: string, options?: PublishOptions) =>
          publishWorkflow(envelope, { _tag: "Stage", stage }, options),
        publishWorkflowMessage: (envelope: JsonObject, routingKey: string, options?: PublishOptions) =>
          publishWorkflow(envelope, { _tag: "Key", routingKey }, options),
        publishStatus: (event: JsonObject) => publishStatus(Publications.status, event),
        publishAggregationStatus: (event: JsonObject) => publishStatus(Publications.aggregationStatus, event),
        ensureAggregationQueue: Effect.fn("BrokerClient.ensureAggregationQueue")((shards, name) =>
          prepareAndPublish(
            () => aggregationQueue(topology, shards, name),
            ({ declarations, name }) => Effect.as(TopologyPlan.declare(broker, topology, declarations), name)
          )
        ),
        ensureRetryInfrastructure: Effect.fn("BrokerClient.ensureRetryInfrastructure")((sourceQueue, policy) =>
          Effect.flatMap(Effect.fromResult(RetryQueues.of(sourceQueue, policy)), (queues) =>
            RetryQueues.declare(broker, queues)
          )
        ),
        publishRawToQueue: (queue, content, options = {}) => publish(Publications.raw(queue, content, options)),
        publish,
        acquireChannel: ({ prefetch = 200 } = {}) => broker.channel({ prefetch }),
        inspectQueue: (queue) => broker.inspect(queue),
        ping: broker.ping
      })
    })

  /** A client that uses the provided `Broker`. */
  static readonly layer = (options: ClientOptions): Layer.Layer<BrokerClient, never, Broker> =>
    Layer.effect(BrokerClient, BrokerClient.make(options))
}
