import { Result } from "effect"
import type { Fields, Properties, Publication } from "../../services/Broker.ts"
import * as BatchEnvelope from "../envelope/BatchEnvelope.ts"
import { type ContractError, type EnvelopeError, InvalidPublish } from "../envelope/Errors.ts"
import * as StatusEvent from "../envelope/StatusEvent.ts"
import * as TaskEnvelope from "../envelope/TaskEnvelope.ts"
import type { Timestamp } from "../envelope/Timestamp.ts"
import type { TraceIds } from "../envelope/TraceContext.ts"
import * as WorkflowEnvelope from "../envelope/WorkflowEnvelope.ts"
import { type CurrentDelivery, headersOf } from "../observe/CurrentDelivery.ts"
import { amqpPriority, type BrokerCapabilities } from "../topology/BrokerCapabilities.ts"
import type { QueueFamily } from "../topology/Parameters.ts"
import * as StageContract from "../topology/StageContract.ts"
import { TaskTopology } from "../topology/TaskTopology.ts"
import type { Topology } from "../topology/Topology.ts"
import { SharedStatusWorkflowTopology, type Stage } from "../topology/WorkflowTopology.ts"
import * as RoutingKey from "./RoutingKey.ts"

type PublicationResult = Result.Result<Publication, InvalidPublish | EnvelopeError>

/**
 * Options of a publish. The broker's `capabilities` determine the priority values of quorum queues. Without
 * `capabilities`, messages to quorum queues are sent without a priority.
 */
export interface TaskOptions {
  readonly headers?: Fields | undefined
  readonly capabilities?: BrokerCapabilities
}

/** Creates the message of a task. `Result.gen` would double the cost of this frequent function. */
export const task = (
  topology: Topology,
  envelope: TaskEnvelope.TaskEnvelope,
  options: TaskOptions = {}
): PublicationResult => {
  const routingKey = RoutingKey.ofTask(topology, envelope)
  if (Result.isFailure(routingKey)) return Result.fail(routingKey.failure)
  const { exchange, family } = taskPlane(topology)
  const priority = priorityFor(family, envelope.priority, options.capabilities)
  if (Result.isFailure(priority)) return Result.fail(priority.failure)
  const content = TaskEnvelope.encode(envelope)
  if (Result.isFailure(content)) return Result.fail(content.failure)
  return Result.succeed({
    purpose: "tasks",
    exchange,
    routingKey: routingKey.success,
    content: content.success,
    properties: properties({
      correlationId: TaskEnvelope.correlationId(envelope),
      priority: priority.success,
      headers: { task_id: envelope.task_id, ...options.headers }
    })
  })
}

/** Creates one message for many tasks. The message has one priority and one routing key. */
export const batch = (
  topology: Topology,
  envelope: BatchEnvelope.BatchEnvelope,
  options: TaskOptions = {}
): PublicationResult =>
  Result.gen(function* () {
    const [first] = envelope.tasks
    if (envelope.tasks.some(({ priority }) => priority !== first.priority)) {
      return yield* refused(
        "mixed_priorities",
        "tasks.priority",
        "The tasks of a batch must have the same priority, or none, because they are one message."
      )
    }
    const keys = yield* Result.all(envelope.tasks.map((task) => RoutingKey.ofTask(topology, task)))
    const [routingKey = ""] = keys
    if (keys.some((key) => key !== routingKey)) {
      return yield* refused(
        "mixed_task_types",
        "tasks.task_type",
        "The tasks of a batch must have the same task_type, because they are sent to one queue."
      )
    }
    const { exchange, family } = taskPlane(topology)
    return {
      purpose: "tasks",
      exchange,
      routingKey,
      content: yield* BatchEnvelope.encode(envelope),
      properties: properties({
        correlationId: envelope.batch_id,
        priority: yield* priorityFor(family, first.priority, options.capabilities),
        headers: { ...options.headers, batch_id: envelope.batch_id, batch_size: envelope.tasks.length }
      })
    }
  })

export type WorkflowTarget =
  | { readonly _tag: "Stage"; readonly stage: string }
  | { readonly _tag: "Entry"; readonly route: string }
  | { readonly _tag: "Key"; readonly routingKey: string }

export const workflow = (
  topology: Topology,
  envelope: WorkflowEnvelope.WorkflowEnvelope,
  target: WorkflowTarget,
  options: TaskOptions = {}
): Result.Result<Publication, InvalidPublish | EnvelopeError | ContractError> =>
  Result.gen(function* () {
    const { routingKey, stage } = yield* destination(topology, target)
    const addressed = { ...envelope, stage: stage.name, correlation_id: WorkflowEnvelope.correlationId(envelope) }
    const { origin_stage: origin } = addressed
    const source = origin === undefined ? undefined : yield* RoutingKey.findStage(topology, origin, "origin_stage")
    yield* StageContract.checkPublish(source, stage, addressed)
    return {
      purpose: "tasks",
      exchange: topology instanceof SharedStatusWorkflowTopology ? topology.workflowExchange : "",
      routingKey,
      content: yield* WorkflowEnvelope.encode(addressed),
      properties: properties({
        correlationId: addressed.correlation_id,
        priority: yield* priorityFor(stage.family, addressed.priority, options.capabilities),
        headers: {
          task_id: addressed.task_id,
          message_id: addressed.message_id,
          stage: addressed.stage,
          ...(origin !== undefined && { origin_stage: origin }),
          ...options.headers
        }
      })
    }
  })

interface StatusOptions {
  readonly now: Timestamp
  /** The event id for an event without a timestamp. See `StatusEvent.readForPublish`. */
  readonly unique: string
  /** Trace ids to add, unless the event already has trace ids. They do not change the event id. */
  readonly trace?: TraceIds | undefined
  /** The delivery that the publisher handles, if it is known. */
  readonly delivery?: CurrentDelivery | undefined
}

export const status = (topology: Topology, event: unknown, options: StatusOptions): PublicationResult =>
  Result.flatMap(StatusEvent.readForPublish(event, options), (complete) =>
    Result.flatMap(RoutingKey.ofStatus(topology, complete), (routingKey) =>
      statusPublication(topology, complete, routingKey, options)
    )
  )

export const aggregationStatus = (topology: Topology, event: unknown, options: StatusOptions): PublicationResult =>
  Result.gen(function* () {
    const read = yield* StatusEvent.read(event, options.now)
    const { routingKey, shard } = yield* RoutingKey.ofAggregation(topology, read)
    // The event id is a hash of the stored event. The shard must therefore be added before the hash is computed.
    const sharded = { ...read, meta: { ...read.meta, aggregation_shard: shard, aggregation_role: "aggregation" } }
    const complete = yield* StatusEvent.withIds(sharded, StatusEvent.lacksTimestamp(event), options.unique)
    return yield* statusPublication(topology, complete, routingKey, options)
  })

/** Properties that a republished message keeps. For example, a body is unreadable without its content encoding. */
interface DescriptiveProperties {
  readonly contentEncoding?: string | undefined
  readonly replyTo?: string | undefined
  readonly messageId?: string | undefined
  readonly timestamp?: Date | undefined
  readonly type?: string | undefined
  readonly appId?: string | undefined
}

export interface RawOptions extends DescriptiveProperties {
  readonly correlationId?: string | undefined
  readonly headers?: Fields | undefined
  /** Default: `application/json`. */
  readonly contentType?: string | undefined
  readonly priority?: number | undefined
  /** Default: true. */
  readonly persistent?: boolean | undefined
}

/** Creates a message with the given bytes for one queue, such as a retry, a dead letter or a replay. */
export const raw = (
  queue: string,
  content: Uint8Array,
  { contentType, correlationId, headers = {}, persistent = true, priority, ...described }: RawOptions
): Publication => ({
  purpose: "retries",
  exchange: "",
  routingKey: queue,
  content,
  properties: {
    ...properties({ correlationId, priority, headers }),
    persistent,
    contentType: contentType ?? json,
    ...descriptiveProperties(described)
  }
})

/**
 * Returns the properties that a republished message keeps. Drops `expiration`, because it counts from the first
 * publish. Drops `userId`, because it must be the user of the current connection.
 */
export const descriptiveProperties = ({
  appId,
  contentEncoding,
  messageId,
  replyTo,
  timestamp,
  type
}: DescriptiveProperties) => ({
  ...(contentEncoding !== undefined && { contentEncoding }),
  ...(replyTo !== undefined && { replyTo }),
  ...(messageId !== undefined && { messageId }),
  ...(timestamp !== undefined && { timestamp }),
  ...(type !== undefined && { type }),
  ...(appId !== undefined && { appId })
})

const json = "application/json"

const properties = ({
  correlationId,
  headers,
  priority
}: {
  readonly correlationId: string | undefined
  readonly priority: number | undefined
  readonly headers: Fields
}): Properties => {
  const always = { contentType: json, persistent: true, headers }
  if (correlationId === undefined) return priority === undefined ? always : { ...always, priority }
  return priority === undefined ? { ...always, correlationId } : { ...always, correlationId, priority }
}

const statusPublication = (
  { status }: Topology,
  event: StatusEvent.PublishedStatus,
  routingKey: string,
  { delivery, trace }: StatusOptions
): PublicationResult =>
  Result.flatMap(StatusEvent.encode(trace === undefined ? event : withTraceIds(event, trace)), (content) =>
    content.byteLength > status.maxEventBytes
      ? refused("status_too_large", "status_max_event_bytes", tooLarge(event, content.byteLength, status.maxEventBytes))
      : Result.succeed({
          purpose: "statuses",
          exchange: status.exchange,
          routingKey,
          content,
          properties: properties({
            correlationId: event.correlation_id,
            priority: 0,
            headers: { task_id: event.task_id, status: event.status, ...headersOf(delivery, event.task_id) }
          })
        })
  )

const tooLarge = ({ status, task_id }: StatusEvent.PublishedStatus, bytes: number, maxBytes: number): string =>
  `The status ${status} of task ${task_id} has ${bytes} bytes, but hubs store at most ${maxBytes}. Store a large result elsewhere and publish a reference to it, or raise status_max_event_bytes in the topologies of publishers and hubs.`

const withTraceIds = (event: StatusEvent.PublishedStatus, trace: TraceIds): StatusEvent.PublishedStatus =>
  event["trace_id"] === undefined && event["span_id"] === undefined ? { ...event, ...trace } : event

/** Other topologies than a `TaskTopology` are impossible here, because `RoutingKey.ofTask` has refused them. */
const taskPlane = (topology: Topology): { readonly exchange: string; readonly family: QueueFamily | undefined } =>
  topology instanceof TaskTopology ? topology.tasks : { exchange: "", family: undefined }

export const destination = (
  topology: Topology,
  target: WorkflowTarget
): Result.Result<{ readonly routingKey: string; readonly stage: Stage }, InvalidPublish> => {
  switch (target._tag) {
    case "Stage":
      return Result.map(RoutingKey.findStage(topology, target.stage), (stage) => ({
        routingKey: stage.publishRoutingKey,
        stage
      }))
    case "Entry":
      return Result.flatMap(RoutingKey.findEntryRoute(topology, target.route), ({ routingKey, targetStage }) =>
        Result.map(RoutingKey.findStage(topology, targetStage), (stage) => ({ routingKey, stage }))
      )
    case "Key":
      return Result.map(RoutingKey.stageOfKey(topology, target.routingKey), (stage) => ({
        routingKey: target.routingKey,
        stage
      }))
  }
}

const priorityFor = (
  family: QueueFamily | undefined,
  priority: number | undefined,
  capabilities: BrokerCapabilities | undefined
): Result.Result<number | undefined, InvalidPublish> => {
  if (priority === undefined || family?.maxPriority === undefined) return Result.succeed(priority)
  const { maxPriority, priorityField, queueType } = family
  if (priority > maxPriority) {
    return refused(
      "priority_above_maximum",
      "priority",
      `priority is ${priority}, but the queue allows at most ${maxPriority} (${priorityField}).`
    )
  }
  if (queueType !== "quorum") return Result.succeed(priority)
  return Result.succeed(capabilities && amqpPriority(priority, maxPriority, queueType, capabilities))
}

const refused = (reason: InvalidPublish["reason"], field: string, message: string) =>
  Result.fail(new InvalidPublish({ reason, field, message }))
