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
import { CurrentDelivery } from "../observe/CurrentDelivery.ts"
import * as PublishMetrics from "../observe/PublishMetrics.ts"
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

/** Options of a `BrokerClient`. Connection settings, such as the address, are options of the `Broker`. */
export interface ClientOptions {
  readonly topology: Topology
  /** Aliases of top-level members in bodies. Default: only the built-in alias `documentId` for `task_id`. */
  readonly aliasConfig?: ContractAliasConfig | undefined
  /**
   * Declares only the exchanges. The workers declare their queues. Publishing to a queue that no worker has declared
   * yet fails with `Unroutable`. Default: false.
   */
  readonly publishOnly?: boolean | undefined
}

/**
 * The failures of `initialize`. A `TopologyError` means that the broker's release does not support the topology, or
 * that an existing exchange or queue differs from the topology. The error names each problem and the remedy.
 */
export type InitializeError = TopologyError | BrokerError

export type PublishError = InvalidPublish | EnvelopeError | UnconfirmedPublish | InitializeError

export interface PublishOptions {
  /** Headers of the message. They take precedence over the headers that the library sets. */
  readonly headers?: Fields | undefined
}

/**
 * Disables the compiler's check of the member names of a published body. Set it for bodies with aliases or for JSON
 * from another source. Aliases are also resolved without this option.
 */
export interface Aliased {
  readonly aliased: true
}

export interface PublishTask {
  (task: JsonObject, options: PublishOptions & Aliased): Effect.Effect<void, PublishError>
  (task: TaskEnvelope.TaskInput, options?: PublishOptions): Effect.Effect<void, PublishError>
}

export interface PublishTasks {
  (
    tasks: ReadonlyArray<JsonObject>,
    options: PublishMany.ManyTasksOptions & Aliased
  ): Effect.Effect<void, PublishError | PublishMany.TasksUnpublished>
  (
    tasks: ReadonlyArray<TaskEnvelope.TaskInput>,
    options?: PublishMany.ManyTasksOptions
  ): Effect.Effect<void, PublishError | PublishMany.TasksUnpublished>
}

export interface PublishWorkflow {
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

export interface PublishStatus {
  (event: JsonObject, options: Aliased): Effect.Effect<void, PublishError>
  (event: StatusInput): Effect.Effect<void, PublishError>
}

/**
 * Publishes tasks, workflow messages and statuses, and declares their topology. Bodies are plain objects with canonical
 * or aliased member names. They are validated before anything is sent.
 *
 * A publish succeeds after the broker has confirmed the message. Otherwise, it fails. `mayDuplicate` of the error says
 * whether publishing again may duplicate the message. The client itself never retries a publish.
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

    /** Declares the topology. Publishing calls this effect if necessary. It is a no-op after the first success. */
    readonly initialize: Effect.Effect<void, InitializeError>

    /** Publishes a task to the task queue of the topology. Routed topologies route it by `task_type`. */
    readonly publishTask: PublishTask

    /**
     * Publishes many tasks. All tasks are validated before the first one is sent.
     *
     * - `{ mode: "individual" }`, the default, sends one message for each task. It fails with `TasksUnpublished` if
     *   the broker does not confirm all tasks.
     * - `{ mode: "batch_envelope", batchId }` sends one message with all tasks. Its consumer needs a retry policy.
     */
    readonly publishTasks: PublishTasks

    /** Publishes a workflow message by a named entry route. Its `stage` is set to the target stage of the route. */
    readonly publishToEntry: PublishWorkflow

    /** Publishes a workflow message to the inbox queue of a stage. Its `stage` is set to the name of this stage. */
    readonly publishToStage: PublishWorkflow

    /** Publishes a workflow message by a routing key. Its `stage` is set to the stage that is bound to the key. */
    readonly publishWorkflowMessage: PublishWorkflow

    /** Publishes a status of any task. In a handler, `context.publishStatus` adds the id of the current task. */
    readonly publishStatus: PublishStatus

    /** Publishes a status that the aggregation worker of the parent also receives. Requires `meta.parent_task_id`. */
    readonly publishAggregationStatus: PublishStatus

    /** Declares and binds the aggregation queue of these shards. Returns its name. `name` replaces the default name. */
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

    /** Opens a channel. Closing the scope closes the channel. Default of `prefetch`: 200. */
    readonly acquireChannel: (options?: {
      readonly prefetch?: number
    }) => Effect.Effect<Channel, BrokerError, Scope.Scope>

    /** Returns the numbers of ready messages and consumers of a queue, or `None` if the queue does not exist. */
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
      const countPublish = yield* PublishMetrics.make
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
          Effect.flatMap(broker.publish(publication), (outcome) => {
            countPublish(publication.purpose, outcome)
            return requireConfirmed(publication, outcome)
          })
        )

      /**
       * Prepares the message before `initialize`, so that an invalid body fails without a connection. Prepares the
       * message again after `initialize`, because the supported priorities are then known.
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
        Effect.withFiber(({ context }) => {
          const delivery = Context.get(context, CurrentDelivery)
          return prepareAndPublish(
            () =>
              prepare(topology, aliases.inbound(event), {
                now: now(),
                unique: uniqueId(),
                trace: traceIds(),
                delivery
              }),
            publish
          )
        })

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
