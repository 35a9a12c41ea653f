import { Cause, Clock, Duration, Effect, Exit, Fiber, Result, Schema } from "effect"
import type { Broker, BrokerError, Delivery } from "../../services/Broker.ts"
import * as HandledPayloads from "../control/HandledPayloads.ts"
import { cancellationOf, type WorkControl } from "../control/WorkControl.ts"
import * as BatchEnvelope from "../envelope/BatchEnvelope.ts"
import type { JsonObject } from "../envelope/Envelope.ts"
import type { EnvelopeError } from "../envelope/Errors.ts"
import { readBoth } from "../envelope/ExactJson.ts"
import * as TaskEnvelope from "../envelope/TaskEnvelope.ts"
import * as Timestamp from "../envelope/Timestamp.ts"
import type { FailedDelivery } from "../failure/FailedDelivery.ts"
import * as FailureLog from "../failure/FailureLog.ts"
import * as FailurePath from "../failure/FailurePath.ts"
import { type RedeliveryError, redeliveryEvents } from "../failure/Redelivery.ts"
import * as HandlerMetrics from "../observe/HandlerMetrics.ts"
import * as Observation from "../observe/Observation.ts"
import type { Observe } from "../observe/ObservationSink.ts"
import type { PublishError } from "../publish/BrokerClient.ts"
import type { PublishRefused, PublishUnknown } from "../publish/PublishOutcome.ts"
import * as TaskStatuses from "../publish/TaskStatuses.ts"
import * as HandlerFailure from "../retry/HandlerFailure.ts"
import * as ManualRetry from "../retry/ManualRetry.ts"
import type { FailureReason } from "../retry/RetryHeaders.ts"
import * as RetryHeaders from "../retry/RetryHeaders.ts"
import type { ContractAliasConfig } from "../topology/Aliases.ts"
import { LifecycleStatusConfig } from "../topology/StatusSettings.ts"
import * as BatchFanOut from "./BatchFanOut.ts"
import * as CancelledTask from "./CancelledTask.ts"
import type { DeliveryVerdict } from "./DeliveryVerdict.ts"
import type { TaskHandler } from "./Handler.ts"
import { type ConsumerIdentity, HandlerContext, handOverSignal } from "./HandlerContext.ts"

interface TaskDeliverySettings<R> extends FailurePath.FailureOptions {
  readonly broker: Broker["Service"]
  readonly consumer: ConsumerIdentity
  readonly handler: TaskHandler<R>
  readonly handleWithin: Duration.Duration | undefined
  readonly aliases: ContractAliasConfig
  readonly lifecycleStatuses?: LifecycleStatusConfig | undefined
  readonly isRouted: boolean
  readonly observe: Observe
  readonly concurrency: number
  readonly workControl: WorkControl | undefined
}

class HandlerTimeout extends Schema.TaggedError<HandlerTimeout>()("HandlerTimeout", {
  message: Schema.String
}) {}

const batchConcurrency = 64

/** Processes task deliveries. The specification prescribes the order of the steps. */
export const make = Effect.fnUntraced(function* <R>(settings: TaskDeliverySettings<R>) {
  const { aliases, broker, consumer, handler, handleWithin, observe } = settings
  const { client } = consumer
  const lifecycleStatuses = settings.lifecycleStatuses ?? new LifecycleStatusConfig()
  const consumerFields = { consumer_name: consumer.name, queue_name: consumer.queue }
  const { fail, group, prepare } = yield* FailurePath.make<AttemptFields>(broker, consumer, settings, observe, {
    failed: ({ fields, status }, exception) => {
      if (status === undefined) return
      observe((at) =>
        Observation.of("TaskHandlerFailed", at, { ...fields, task_id: status.about.taskId, ...exception })
      )
    },
    redelivered: (tag, redelivery, fields) =>
      observe((at) => Observation.of(redeliveryEvents[tag], at, { ...fields, ...redelivery })),
    retryScheduled: (dueMs) => control?.onRetryScheduled(dueMs),
    order: "observed first"
  })
  const control = settings.workControl?.consumer({
    name: consumer.name,
    queue: consumer.queue,
    concurrency: settings.concurrency,
    handled: HandledPayloads.of("task_type", handler),
    group
  })

  const work = (delivery: Delivery): Effect.Effect<DeliveryVerdict, RedeliveryError, R> =>
    Clock.clockWith((clock) => {
      const now = Timestamp.ofMillis(clock.currentTimeMillisUnsafe())
      const read = aliases.read("task", delivery.content)
      if (Result.isFailure(read)) return failUnreadable(delivery, read.failure, null)
      const raw = read.success.ordinary
      observe((at) => Observation.of("TaskMessageReceived", at, receivedOf(delivery, raw)))
      if (BatchEnvelope.isBatch(raw)) return splitBatch(delivery, read.success.exact, now)
      const task = readBoth(read.success, (message) => TaskEnvelope.read(message, now))
      if (Result.isFailure(task)) return failUnreadable(delivery, task.failure, textOf(raw["task_id"]))
      return handle(delivery, task.success.ordinary, new HandlerContext(consumer, delivery, raw, task.success))
    })

  const handle = (delivery: Delivery, task: TaskEnvelope.TaskEnvelope, context: HandlerContext) => {
    const handled = Effect.suspend(() => handler.handle(task, context))
    const inTime = HandlerMetrics.timed(
      consumer.queue,
      handleWithin === undefined ? handled : Effect.timeoutOrElse(handled, onTimeout(handleWithin))
    )
    const attempt = lifecycleStatuses.enabled ? withProcessing(task, context, inTime) : inTime
    const afterExit = (exit: Exit.Exit<unknown, unknown>) => afterHandler(delivery, task, context, exit)
    if (control === undefined) return Effect.flatMap(Effect.exit(attempt), afterExit)
    const identity = {
      taskId: task.task_id,
      taskType: task.task_type ?? null,
      attempt: context.retryAttempt,
      redelivered: delivery.redelivered,
      cancellable: true
    }
    return control.asDelivery(identity, Effect.flatMap(control.handle(identity, attempt), afterExit))
  }

  /** The handler runs during the publish of `processing`. The final status is published after both have ended. */
  const withProcessing = <A, E>(
    task: TaskEnvelope.TaskEnvelope,
    context: HandlerContext,
    handled: Effect.Effect<A, E, R>
  ) =>
    Effect.gen(function* () {
      const processing = yield* Effect.forkChild(
        publishLifecycle(task, context, { status: lifecycleStatuses.processing }),
        { startImmediately: true }
      )
      const exit = yield* Effect.exit(handled)
      yield* Fiber.await(processing)
      return yield* exit
    })

  const afterHandler = (
    delivery: Delivery,
    task: TaskEnvelope.TaskEnvelope,
    context: HandlerContext,
    exit: Exit.Exit<unknown, unknown>
  ): Effect.Effect<DeliveryVerdict, RedeliveryError> => {
    const cancelled = cancellationOf(exit)
    if (cancelled !== undefined) {
      const published = CancelledTask.publish(client, statusOwnerOf(task, context), cancelled, control)
      return Effect.as(published, acked(attemptFieldsOf(task, context)))
    }
    if (Exit.isFailure(exit) && !isManualHandOver(exit.cause)) {
      return failTask(delivery, task, context, HandlerFailure.ofCause(exit.cause))
    }
    const { handOver } = context
    if (handOver !== undefined) return publishHandOver(delivery, task, context, handOver)
    const done = acked(attemptFieldsOf(task, context))
    return lifecycleStatuses.enabled
      ? Effect.as(publishLifecycle(task, context, { status: lifecycleStatuses.completed }, true), done)
      : Effect.succeed(done)
  }

  /** Publishes the status, and then the task for the other worker. The delivery is acknowledged last. */
  const publishHandOver = Effect.fnUntraced(function* (
    delivery: Delivery,
    task: TaskEnvelope.TaskEnvelope,
    context: HandlerContext,
    retry: ManualRetry.ManualRetry
  ) {
    yield* Effect.catch(client.publishStatus(retry.status), (error) =>
      Effect.logWarning(
        `The status ${ManualRetry.status} of task ${task.task_id} could not be published, so readers will not see it. The retry of the task is published anyway`,
        error.message
      )
    )
    const published = yield* Effect.result(client.publishTask(retry.task, { headers: retry.headers }))
    if (Result.isSuccess(published)) return acked(attemptFieldsOf(task, context))
    const error = published.failure
    if (isBrokerFailure(error)) return yield* error
    // The new task was not published. Acknowledging the delivery would lose the task, so the delivery fails.
    return yield* failTask(delivery, task, context, HandlerFailure.of(error))
  })

  const failTask = (
    delivery: Delivery,
    task: TaskEnvelope.TaskEnvelope,
    context: HandlerContext,
    failure: HandlerFailure.HandlerFailure
  ) => {
    const ended = (text: string) =>
      publishLifecycle(task, context, { ...lifecycleStatuses.failure(text), failed: true }, true)
    const status = { about: statusOwnerOf(task, context), ended: lifecycleStatuses.enabled ? ended : undefined }
    return failDelivery({ delivery, failure, fields: attemptFieldsOf(task, context), status }, failure.exceptionType)
  }

  const failUnreadable = (delivery: Delivery, error: EnvelopeError, taskId: string | null) =>
    failDelivery({ delivery, failure: HandlerFailure.ofEnvelope(error), fields: unknownTaskFields(delivery, taskId) })

  const failDelivery = (
    failed: FailedDelivery<AttemptFields>,
    failure?: string
  ): Effect.Effect<DeliveryVerdict, RedeliveryError> =>
    Effect.map(fail(failed), (verdict) =>
      verdict.settle === "reject" ? rejected(failed.fields, failed.failure.reason, failure) : verdict
    )

  /**
   * Replaces a batch with one message per task. A crash before the acknowledgement publishes all tasks of the batch
   * again. `message` keeps integers of 2^53 and more exact.
   */
  const splitBatch = (
    delivery: Delivery,
    message: JsonObject,
    now: Timestamp.Timestamp
  ): Effect.Effect<DeliveryVerdict, RedeliveryError> => {
    const fields = unknownTaskFields(delivery, null)
    const refusedBatch = (reason: FailureReason, text: string) => ({
      delivery,
      failure: { reason, text, exceptionType: null, stack: "", retryable: false },
      fields
    })
    if (consumer.maxRetries === null) {
      const failed = refusedBatch(
        "unsupported_batch_envelope",
        "A batch requires a consumer with a retry policy: set retryPolicy, or publish the tasks individually"
      )
      return Effect.as(FailureLog.log(consumer, failed), rejected(fields, failed.failure.reason))
    }
    const read = BatchEnvelope.read(message, now, (item) => aliases.inbound(item))
    if (Result.isFailure(read)) return failUnreadable(delivery, read.failure, null)
    if (settings.isRouted && BatchFanOut.hasMixedTaskTypes(read.success)) {
      return failDelivery(refusedBatch("mixed_task_type_batch", ""))
    }
    const { contentType, priority } = delivery.properties
    const items = BatchFanOut.publications(read.success, { queue: consumer.queue, contentType, priority })
    if (Result.isFailure(items)) return failUnreadable(delivery, items.failure, null)
    return Effect.as(
      Effect.forEach(items.success, (item) => client.publish(item), { concurrency: batchConcurrency, discard: true }),
      acked(fields)
    )
  }

  const publishLifecycle = (
    task: TaskEnvelope.TaskEnvelope,
    context: HandlerContext,
    content: TaskStatuses.StatusContent,
    terminal = false
  ) =>
    Effect.map(TaskStatuses.publish(client, statusOwnerOf(task, context), content, terminal), (published) => {
      if (!published) return
      observe((at) =>
        Observation.of("TaskLifecycleStatusPublished", at, {
          ...attemptFieldsOf(task, context),
          status: content.status
        })
      )
    })

  const receivedOf = (delivery: Delivery, raw: JsonObject) => ({
    ...consumerFields,
    task_id: textOf(raw["task_id"]),
    delivery_tag: delivery.deliveryTag,
    redelivered: delivery.redelivered,
    correlation_id: textOf(raw["correlation_id"]) ?? delivery.properties.correlationId ?? null,
    retry_attempt: RetryHeaders.attemptOf(delivery.properties.headers ?? {}),
    task_type: textOf(raw["task_type"])
  })

  const attemptFieldsOf = (task: TaskEnvelope.TaskEnvelope, context: HandlerContext) => ({
    ...consumerFields,
    task_id: task.task_id,
    correlation_id: context.correlationId,
    retry_attempt: context.retryAttempt,
    task_type: task.task_type ?? null
  })

  const unknownTaskFields = ({ properties }: Delivery, taskId: string | null) => ({
    ...consumerFields,
    task_id: taskId,
    correlation_id: properties.correlationId ?? null,
    retry_attempt: RetryHeaders.attemptOf(properties.headers ?? {}),
    task_type: null
  })

  const acked = (attempt: AttemptFields): DeliveryVerdict => ({
    settle: "ack",
    settled: observe.deferred((at) => Observation.of("TaskMessageAcked", at, attempt))
  })

  /**
   * The broker moves a rejected message to the dead-letter exchange of the queue. Without one, it drops the message.
   */
  const rejected = (attempt: AttemptFields, reason: string, failure = reason): DeliveryVerdict => ({
    settle: "reject",
    settled: observe.deferred((at) =>
      Observation.of("TaskMessageRejected", at, { ...attempt, requeue: false, reason })
    ),
    failure
  })

  return { prepare, work, control }
})

type AttemptFields = Observation.FieldsOf<"TaskMessageAcked">

const statusOwnerOf = (task: TaskEnvelope.TaskEnvelope, context: HandlerContext): TaskStatuses.StatusOwner => ({
  taskId: task.task_id,
  correlationId: context.correlationId,
  lineage: context.lineage,
  replay: context.replay,
  task
})

const onTimeout = (within: Duration.Duration) => ({
  duration: within,
  orElse: () =>
    Effect.fail(
      new HandlerTimeout({
        message: `The handler was interrupted, because it did not end within ${Duration.format(within)} (handleWithin).`
      })
    )
})

const isManualHandOver = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.some((reason) => Cause.isDieReason(reason) && reason.defect === handOverSignal) &&
  cause.reasons.every((reason) => !Cause.isFailReason(reason))

/** AMQP cannot carry a message that is refused as `invalid`. Another delivery of the task would fail as well. */
const isBrokerFailure = (error: PublishError): error is BrokerError | PublishUnknown | PublishRefused =>
  error._tag === "BrokerError" ||
  error._tag === "PublishUnknown" ||
  (error._tag === "PublishRefused" && error.reason !== "invalid")

const textOf = (value: unknown): string | null => (typeof value === "string" ? value : null)
