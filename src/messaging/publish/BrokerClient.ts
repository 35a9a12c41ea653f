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

/** The connection, its address and its name belong to the `Broker` that the client is given. */
export interface ClientOptions {
  readonly topology: Topology
  /** Default: no alias but the built-in one. */
  readonly aliasConfig?: ContractAliasConfig | undefined
  /**
   * Declares the exchanges alone: queues belong to those who work on them, and what no queue takes is `Unroutable`.
   * Default: false.
   */
  readonly publishOnly?: boolean | undefined
}

/** `TopologyError`: the release of the broker refuses it, or what is there differs, by name and with the way out. */
export type InitializeError = TopologyError | BrokerError

export type PublishError = InvalidPublish | EnvelopeError | UnconfirmedPublish | InitializeError

export interface PublishOptions {
  /** Beside those of the library, over which they win. */
  readonly headers?: Fields | undefined
}

/**
 * For a body whose members bear the names of `aliasConfig`, or that comes from elsewhere as JSON: the compiler does not
 * know its members. The publish reads aliases with and without it.
 */
export interface Aliased {
  readonly aliased: true
}

/** A task, with members that the compiler checks, or `{ aliased: true }`. */
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
 * Publishes what the specification's operations publish, and declares what they need. Bodies are plain objects, by
 * canonical names or by the aliases of `aliasConfig`; they are read and checked before anything is sent. A publish
 * succeeds once the broker has confirmed it. Otherwise it fails, and the error says whether publishing again may
 * duplicate; nothing is published twice here.
 */
export class BrokerClient extends Context.Service<
  BrokerClient,
  {
    readonly topology: Topology
    readonly aliases: ContractAliasConfig

    /** Declares the topology, once: later calls do nothing. Publishing does it by itself. */
    readonly initialize: Effect.Effect<void, InitializeError>

    /** To the task queue of the topology; routed topologies route by `task_type`. */
    readonly publishTask: PublishTask

    /**
     * Many tasks: `{ mode: "individual" }`, the default, sends a message for each, `{ mode: "batch_envelope", batchId }` one
     * message for all of them, which a consumer with a retry policy takes apart. All of them are checked before the first
     * is sent.
     */
    readonly publishTasks: PublishTasks

    /** By a named entry route, whose target becomes the stage of the envelope. */
    readonly publishToEntry: PublishWorkflow

    /** To the inbox of a stage, which becomes the stage of the envelope. */
    readonly publishToStage: PublishWorkflow

    /** By a routing key; the stage that it leads to becomes the stage of the envelope. */
    readonly publishWorkflowMessage: PublishWorkflow

    /** A status of any task, on the status exchange. A handler says that of its own task by its context. */
    readonly publishStatus: PublishStatus

    /** A status that also goes to the shard of `meta.parent_task_id`. */
    readonly publishAggregationStatus: PublishStatus

    /** Declares and binds the queue of these shards, and answers its name. `name`: in place of the one that they give. */
    readonly ensureAggregationQueue: (
      shards: ReadonlyArray<number>,
      name?: string
    ) => Effect.Effect<string, InvalidPublish | InitializeError>

    /** Declares the queues in which failed messages of a queue wait, and the one in which they end. */
    readonly ensureRetryInfrastructure: (
      sourceQueue: string,
      policy: RetryPolicy
    ) => Effect.Effect<RetryQueues.RetryQueues, SettingsError | InitializeError>

    /** Bytes as they are, straight to a queue. */
    readonly publishRawToQueue: (
      queue: string,
      content: Uint8Array,
      options?: Publications.RawOptions
    ) => Effect.Effect<void, UnconfirmedPublish>

    /** What was prepared elsewhere: retries, dead letters, the items of a batch. */
    readonly publish: (publication: Publication) => Effect.Effect<void, UnconfirmedPublish>

    /** A channel of one's own, closed with the scope. `prefetch`: default 200. */
    readonly acquireChannel: (options?: {
      readonly prefetch?: number
    }) => Effect.Effect<Channel, BrokerError, Scope.Scope>

    /** Messages that are ready, and consumers; none where there is no such queue. */
    readonly inspectQueue: (
      queue: string
    ) => Effect.Effect<Option.Option<{ readonly messages: number; readonly consumers: number }>, BrokerError>

    /** A round trip. */
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
          yield* Effect.logWarning(`${topology.kind}: ${field} ${problem}`)
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

      /** What is refused is refused without a broker. Which priorities there are is known once there is one. */
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
          // whatever stage it names, the target takes its place
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

  /** A client over the connection that is provided. */
  static readonly layer = (options: ClientOptions): Layer.Layer<BrokerClient, never, Broker> =>
    Layer.effect(BrokerClient, BrokerClient.make(options))
}
