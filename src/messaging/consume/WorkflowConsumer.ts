import { hash } from "node:crypto"
import { Duration, Effect, Exit, Layer, Option, Result, Schema } from "effect"
import { Broker, type Delivery } from "../../services/Broker.ts"
import * as HandledPayloads from "../control/HandledPayloads.ts"
import { cancellationOf, DefaultWorkControl } from "../control/WorkControl.ts"
import { type InvalidPublish, SettingsError } from "../envelope/Errors.ts"
import { type ExactAndOrdinary, readBoth } from "../envelope/ExactJson.ts"
import * as WorkflowEnvelope from "../envelope/WorkflowEnvelope.ts"
import * as FailurePath from "../failure/FailurePath.ts"
import { holdSchedule, type RedeliveryError, redeliveryEvents } from "../failure/Redelivery.ts"
import * as HandlerMetrics from "../observe/HandlerMetrics.ts"
import * as Observation from "../observe/Observation.ts"
import { DefaultObservationSink, makeObserve } from "../observe/ObservationSink.ts"
import { BrokerClient } from "../publish/BrokerClient.ts"
import * as RoutingKey from "../publish/RoutingKey.ts"
import * as HandlerFailure from "../retry/HandlerFailure.ts"
import * as HandOverHeaders from "../retry/HandOverHeaders.ts"
import * as ReplayOrigin from "../retry/ReplayOrigin.ts"
import * as RetryHeaders from "../retry/RetryHeaders.ts"
import { RetryPolicy } from "../topology/RetryPolicy.ts"
import * as StageContract from "../topology/StageContract.ts"
import * as TopologyPlan from "../topology/TopologyPlan.ts"
import type { Stage } from "../topology/WorkflowTopology.ts"
import * as CancelledTask from "./CancelledTask.ts"
import * as ConsumerOptions from "./ConsumerOptions.ts"
import * as ConsumerTimeout from "./ConsumerTimeout.ts"
import * as DeliveryLoop from "./DeliveryLoop.ts"
import type { DeliveryVerdict } from "./DeliveryVerdict.ts"
import { type Claim, StageDedup } from "./StageDedup.ts"
import * as WorkflowContext from "./WorkflowContext.ts"
import type { WorkflowHandler } from "./WorkflowHandler.ts"

/** Options of a workflow consumer. The stage contract overrides the retry policy and the default `concurrency`. */
export type Options<R> = ConsumerOptions.ConsumerOptions & {
  readonly handler: WorkflowHandler<R>
} & (
    | {
        /** The name of a stage in the client's topology. */
        readonly stage: string
        readonly queue?: never
      }
    | {
        /** The queue of the stage. Pass either `stage` or `queue`. */
        readonly queue: string
        readonly stage?: never
      }
  )

/** A worker for one stage of a workflow. */
export interface WorkflowConsumer<R> {
  readonly stage: string
  readonly queue: string
  /** Processes messages until `stop` runs or the fiber is interrupted. Named `run_forever` in the specification. */
  readonly run: Effect.Effect<void, never, R>
  /** Stops the subscription. Succeeds after every message in progress is settled or returned to the queue. */
  readonly stop: Effect.Effect<void>
}

/** The handler exceeded the `timeout_seconds` of its stage. The message is retried. */
export class StageTimeout extends Schema.TaggedError<StageTimeout>()("StageTimeout", {
  stage: Schema.String,
  message: Schema.String
}) {
  readonly reason = "stage_timeout"
}

/** Another message with the same `dedup_key_fields` is being processed. This message is not retried. */
export class DedupConflict extends Schema.TaggedError<DedupConflict>()("DedupConflict", {
  stage: Schema.String,
  message: Schema.String
}) {
  readonly reason = "dedup_conflict"
  readonly retryable = false
}

/**
 * Creates a worker for one stage. Fails with `InvalidPublish` if the topology has no such stage. Fails with
 * `SettingsError` if an option is invalid. A stage with `dedup_key_fields` also needs the service `StageDedup`, or
 * `make` fails with `SettingsError`.
 */
export const make = <R>(
  options: Options<R>
): Effect.Effect<WorkflowConsumer<R>, InvalidPublish | SettingsError, BrokerClient | Broker> =>
  Effect.gen(function* () {
    const broker = yield* Broker
    const client = yield* BrokerClient
    const { topology } = client
    const stage = yield* Effect.fromResult(
      options.queue === undefined
        ? RoutingKey.findStage(topology, options.stage)
        : RoutingKey.stageOfQueue(topology, options.queue)
    )
    const { contract, name, queue } = stage
    const refusal = ConsumerOptions.validate("WorkflowConsumer", options)
    if (refusal !== undefined) return yield* refusal
    const { consumerName = "svc-workflow-consumer", handler } = options
    const aliases = options.aliasConfig ?? client.aliases
    const retryPolicy = yield* Effect.fromResult(RetryPolicy.ofStage(contract, options.retryPolicy))
    const observe = yield* makeObserve(options.observationSink ?? (yield* DefaultObservationSink))
    const failures = yield* FailurePath.make<Observation.FieldsOf<"WorkflowStageAcked">>(
      broker,
      { client, name: consumerName, queue },
      { ...options, retryPolicy },
      observe,
      {
        failed: ({ fields }, exception) =>
          observe((at) => Observation.of("WorkflowStageFailed", at, { ...fields, ...exception })),
        redelivered: (tag, redelivery, { correlation_id }) =>
          observe((at) =>
            Observation.of(redeliveryEvents[tag], at, { ...redelivery, correlation_id, task_type: null })
          ),
        retryScheduled: (dueMs) => control?.onRetryScheduled(dueMs),
        order: "logged first"
      }
    )
    const concurrency = options.concurrency ?? contract.max_inflight ?? topology.prefetchCount
    const workControl = options.workControl ?? (yield* DefaultWorkControl)
    const control = workControl?.consumer({
      name: consumerName,
      queue,
      concurrency,
      handled: HandledPayloads.of("action", handler),
      group: failures.group
    })
    const dedup = yield* dedupFor(stage)
    const stageRuntime = { client, consumerName, stage, maxRetries: retryPolicy?.maxRetries ?? null, observe }

    const messageFields = (delivery: Delivery, envelope: WorkflowEnvelope.WorkflowEnvelope | undefined) => ({
      consumer_name: consumerName,
      queue_name: queue,
      stage: name,
      routing_key: delivery.routingKey,
      task_id: envelope?.task_id ?? null,
      message_id: envelope?.message_id ?? null,
      origin_stage: envelope?.origin_stage ?? null,
      correlation_id: correlationIdOf(delivery, envelope)
    })

    const failMessage = (
      delivery: Delivery,
      envelope: WorkflowEnvelope.WorkflowEnvelope | undefined,
      failure: HandlerFailure.DeliveryFailure
    ): Effect.Effect<DeliveryVerdict, RedeliveryError> => {
      const fields = messageFields(delivery, envelope)
      if (envelope === undefined) return failures.fail({ delivery, failure, fields })
      const about = ownerOf(delivery, envelope)
      return failures.fail({ delivery, failure, fields, status: { about, meta: { stage: name } } })
    }

    const ownerOf = (delivery: Delivery, envelope: WorkflowEnvelope.WorkflowEnvelope) => ({
      taskId: envelope.task_id,
      correlationId: correlationIdOf(delivery, envelope) ?? envelope.task_id,
      lineage: HandOverHeaders.none,
      replay: ReplayOrigin.ofHeaders(delivery.properties.headers ?? {}),
      task: {}
    })

    const identityOf = (delivery: Delivery, { task_id: taskId }: WorkflowEnvelope.WorkflowEnvelope) => ({
      taskId,
      taskType: name,
      attempt: attemptOf(delivery),
      redelivered: delivery.redelivered,
      cancellable: true
    })

    const runHandler = (
      delivery: Delivery,
      envelope: WorkflowEnvelope.WorkflowEnvelope
    ): Effect.Effect<Exit.Exit<unknown, unknown>, never, R> => {
      const handled = HandlerMetrics.timed(
        delivery.queue,
        withStageTimeout(
          stage,
          Effect.suspend(() => handler.handle(envelope, WorkflowContext.make(stageRuntime, delivery, envelope)))
        )
      )
      return control === undefined ? Effect.exit(handled) : control.handle(identityOf(delivery, envelope), handled)
    }

    const afterHandler = (
      delivery: Delivery,
      envelope: WorkflowEnvelope.WorkflowEnvelope,
      exit: Exit.Exit<unknown, unknown>
    ): Effect.Effect<DeliveryVerdict, RedeliveryError> => {
      const acked: DeliveryVerdict = {
        settle: "ack",
        settled: observe.deferred((at) => Observation.of("WorkflowStageAcked", at, messageFields(delivery, envelope)))
      }
      const cancelled = cancellationOf(exit)
      if (cancelled !== undefined)
        return Effect.as(CancelledTask.publish(client, ownerOf(delivery, envelope), cancelled, control), acked)
      return Exit.isFailure(exit)
        ? failMessage(delivery, envelope, HandlerFailure.ofCause(exit.cause))
        : Effect.succeed(acked)
    }

    const handle = (delivery: Delivery, envelope: WorkflowEnvelope.WorkflowEnvelope) =>
      Effect.flatMap(runHandler(delivery, envelope), (exit) => afterHandler(delivery, envelope, exit))

    const handleOnce = (
      dedup: StageDedup["Service"],
      delivery: Delivery,
      { exact, ordinary: envelope }: ExactAndOrdinary<WorkflowEnvelope.WorkflowEnvelope>
    ) => {
      const { message_id: messageId, task_id: taskId } = envelope
      // The signature is a hash of exact integers. Rounded integers above 2^53 could give two ids the same signature.
      const signature = StageContract.dedupSignature(stage, exact)
      if (Result.isFailure(signature)) return failMessage(delivery, envelope, HandlerFailure.of(signature.failure))
      if (signature.success === undefined) return handle(delivery, envelope)
      const claim = {
        stage: name,
        taskId,
        signature: signature.success,
        messageId,
        redelivered: isRepeat(delivery)
      }
      // The claim is released before the failed message is published for a retry, because the retry needs the claim.
      const runClaimed = Effect.acquireUseRelease(
        dedup.claim(claim),
        (isClaimed) =>
          isClaimed
            ? runHandler(delivery, envelope)
            : Effect.succeed(Exit.fail(new DedupConflict({ stage: name, message: conflict }))),
        (isClaimed) => (isClaimed ? release(dedup, claim) : Effect.void)
      )
      return Effect.flatMap(runClaimed, (exit) => afterHandler(delivery, envelope, exit))
    }

    const work = (delivery: Delivery): Effect.Effect<DeliveryVerdict, unknown, R> => {
      const read = Result.flatMap(aliases.read("workflow", delivery.content), (message) =>
        readBoth(message, (json) => WorkflowEnvelope.read(json, messageIdOf(delivery)))
      )
      if (Result.isFailure(read)) return failMessage(delivery, undefined, HandlerFailure.ofEnvelope(read.failure))
      const envelope = read.success.ordinary
      const contractCheck = StageContract.checkConsume(stage, envelope)
      if (Result.isFailure(contractCheck))
        return failMessage(delivery, envelope, HandlerFailure.of(contractCheck.failure))
      observe((at) =>
        Observation.of("WorkflowMessageReceived", at, {
          ...messageFields(delivery, envelope),
          delivery_tag: delivery.deliveryTag,
          redelivered: delivery.redelivered,
          retry_attempt: attemptOf(delivery)
        })
      )
      const handled = dedup === undefined ? handle(delivery, envelope) : handleOnce(dedup, delivery, read.success)
      return control === undefined ? handled : control.asDelivery(identityOf(delivery, envelope), handled)
    }

    const { run, stop } = DeliveryLoop.make<R>(broker, {
      ...ConsumerOptions.loopOptions(options, control),
      name: consumerName,
      queue,
      concurrency,
      prepare: Effect.all([
        client.initialize,
        TopologyPlan.declare(broker, topology, ConsumerOptions.inboxDeclarations(topology, queue)),
        failures.prepare,
        ConsumerTimeout.warnOnce(broker, consumerName, stage.family, timeoutOf(stage))
      ]),
      work,
      onStarted: () =>
        observe((at) =>
          Observation.of("WorkflowStageStarted", at, { consumer_name: consumerName, stage: name, queue_name: queue })
        ),
      onError: ({ exceptionType, text }) =>
        observe((at) =>
          Observation.of("WorkflowStageFailed", at, {
            consumer_name: consumerName,
            queue_name: queue,
            stage: name,
            routing_key: null,
            task_id: null,
            message_id: null,
            origin_stage: null,
            correlation_id: null,
            exception_type: exceptionType,
            exception_message: text,
            requeue: true
          })
        )
    })
    return { stage: name, queue, run: control === undefined ? run : control.whileRunning(run), stop }
  })

/** Runs a consumer for the lifetime of the layer. Closing the layer has the effect of `stop`. */
export const layer = <R>(
  options: Options<R>
): Layer.Layer<never, InvalidPublish | SettingsError, Broker | BrokerClient | R> =>
  Layer.effectDiscard(Effect.flatMap(make(options), ({ run }) => Effect.forkScoped(run)))

const attemptOf = ({ properties: { headers = {} } }: Delivery): number => RetryHeaders.attemptOf(headers)

const correlationIdOf = (
  { properties }: Delivery,
  envelope: WorkflowEnvelope.WorkflowEnvelope | undefined
): string | null => envelope?.correlation_id || properties.correlationId || envelope?.task_id || null

const conflict =
  "Another message with the same dedup_key_fields is being processed, so this message was not processed. Replay this message if its work is still needed."

/** Returns whether an earlier delivery of the message has ended. The message may then take over its own claim. */
const isRepeat = ({ properties: { headers = {} }, redelivered }: Delivery): boolean =>
  redelivered || RetryHeaders.attemptOf(headers) > 0 || headers[RetryHeaders.replayedFromDlq] === true

/**
 * Releases a claim. An unreleased claim blocks other messages with the same work for a day. If Redis is unreachable,
 * the release is retried for a minute. An interruption ends the retries, because the redelivery takes over the claim.
 */
const release = (dedup: StageDedup["Service"], claim: Claim): Effect.Effect<void> => {
  const released = dedup.release(claim)
  return released.pipe(
    Effect.catchIf(
      ({ retryable }) => retryable,
      () =>
        Effect.interruptible(Effect.retry(released, { while: ({ retryable }) => retryable, schedule: holdSchedule }))
    ),
    Effect.catch((error) =>
      Effect.logWarning(
        `Task ${claim.taskId} stays claimed in stage ${claim.stage} for a day, because Redis did not release the claim. Until then, other messages with the same work are dead-lettered`,
        error.message
      )
    )
  )
}

/** Returns the id of a message without an id in its body. Claims need the same id for every delivery of a message. */
const messageIdOf = ({ content, properties: { headers = {} } }: Delivery): string => {
  const { message_id: given } = headers
  return typeof given === "string" && given !== "" ? given : hash("sha256", content, "hex").slice(0, 32)
}

const timeoutOf = ({ contract: { timeout_seconds: seconds } }: Stage): Duration.Duration | undefined =>
  seconds === undefined ? undefined : Duration.seconds(seconds)

const withStageTimeout = <A, E, R>(
  stage: Stage,
  handling: Effect.Effect<A, E, R>
): Effect.Effect<A, E | StageTimeout, R> => {
  const duration = timeoutOf(stage)
  if (duration === undefined) return handling
  const message = `The handler of stage ${stage.name} was interrupted, because it did not end within ${Duration.format(duration)} (timeout_seconds).`
  return Effect.timeoutOrElse(handling, {
    duration,
    orElse: () => Effect.fail(new StageTimeout({ stage: stage.name, message }))
  })
}

const dedupFor = ({ contract, name }: Stage): Effect.Effect<StageDedup["Service"] | undefined, SettingsError> =>
  Effect.gen(function* () {
    const dedup = Option.getOrUndefined(yield* Effect.serviceOption(StageDedup))
    if ((contract.dedup_key_fields?.length ?? 0) === 0 || dedup !== undefined) return dedup
    const problem = `require the service StageDedup, which is missing for stage ${name}: provide StageDedup.layerRedis or StageDedup.layerMemory`
    return yield* SettingsError.of("WorkflowConsumer", [{ field: "dedup_key_fields", problem }])
  })
