import { Result } from "effect"
import type { Binding, Exchange, Fields, Queue } from "../../services/Broker.ts"
import type { InvalidPublish } from "../envelope/Errors.ts"
import type { StatusEvent } from "../envelope/StatusEvent.ts"
import type { TaskEnvelope } from "../envelope/TaskEnvelope.ts"
import * as Aggregation from "./Aggregation.ts"
import { argumentFromField, mergeQueueFamily, type QueueFamily, ValidationIssues } from "./Parameters.ts"
import type { StatusParameters } from "./StatusPlane.ts"
import { Topology } from "./Topology.ts"

interface TaskParameters extends StatusParameters {
  readonly tasks_exchange: string
  readonly tasks_queue: string
  /** The broker drops or dead-letters a task after this many milliseconds in its queue. Default: never. */
  readonly tasks_message_ttl_ms?: number | undefined
  /** The consumer timeout in ms. Ignored before RabbitMQ 3.12 and on classic queues from 4.3. Default: the broker's. */
  readonly task_consumer_timeout_ms?: number | undefined
  /** The queue argument `x-single-active-consumer`. `false` is also sent. Default: the argument is not sent. */
  readonly task_single_active_consumer?: boolean | undefined
  /** The highest message priority, 1 to 255. Quorum queues support it from RabbitMQ 4.0 on. Default: no priorities. */
  readonly task_max_priority?: number | undefined
  /** The type of the queues. Default: the default queue type of the virtual host, which is usually classic. */
  readonly task_queue_type?: "classic" | "quorum" | undefined
  /** Raw queue arguments, merged with `task_queue_kwargs`. An argument in both is an error. Default: none. */
  readonly task_queue_arguments_overrides?: Fields | undefined
  readonly task_queue_kwargs?: Fields | undefined
}

export interface SharedParameters extends TaskParameters {
  /** The routing key of every task, and the binding key of the task queue. May be empty. */
  readonly tasks_routing_key: string
  /** Computes the routing keys. Default: `tasks_routing_key` for tasks, and the `task_id` for statuses. */
  readonly routing_strategy?: RoutingStrategy | undefined
}

/**
 * Custom routing keys for tasks and for statuses. Aggregation events are not affected. The topology binds its task
 * queue only with `tasks_routing_key`, so declare the bindings for your keys yourself.
 */
export interface RoutingStrategy {
  readonly taskRoutingKey: (task: TaskEnvelope) => string
  readonly statusRoutingKey: (event: StatusEvent) => string
}

export interface RoutedParameters extends TaskParameters {
  /** The task types that this worker accepts. They are trimmed. Blank types and duplicates are removed. */
  readonly task_types: ReadonlyArray<string>
}

type TaskRouting =
  | { readonly _tag: "Shared"; readonly routingKey: string; readonly strategy: RoutingStrategy | undefined }
  | { readonly _tag: "Routed"; readonly taskTypes: ReadonlyArray<string> }

interface TaskPlane {
  readonly exchange: string
  readonly queue: string
  readonly routing: TaskRouting
  readonly family: QueueFamily
}

/** The base class of the four topologies that carry tasks. */
export abstract class TaskTopology extends Topology {
  readonly tasks: TaskPlane
  /** `undefined` if the topology has no aggregation queues. */
  readonly aggregation: Aggregation.AggregationPlane | undefined
  readonly exchanges: ReadonlyArray<Exchange>
  readonly queues: ReadonlyArray<Queue>
  readonly bindings: ReadonlyArray<Binding>
  readonly families: ReadonlyArray<QueueFamily>

  constructor(
    parameters: TaskParameters,
    routing: TaskRouting,
    aggregation: Aggregation.AggregationParameters | undefined,
    issues: ValidationIssues
  ) {
    super(parameters, issues)
    const { deadLetterExchange, status } = this
    this.tasks = {
      exchange: issues.checkName("tasks_exchange", parameters.tasks_exchange),
      queue: issues.checkName("tasks_queue", parameters.tasks_queue),
      routing,
      family: taskFamily(parameters, issues)
    }
    this.aggregation = aggregation && Aggregation.make(aggregation, issues)
    this.families = [status.family, this.tasks.family, ...(this.aggregation ? [this.aggregation.family] : [])]
    issues.checkDifferent([
      ["tasks_exchange", this.tasks.exchange],
      ["status_exchange", status.exchange],
      ["dead_letter_exchange", deadLetterExchange]
    ])
    const names = [
      ["tasks_queue", this.tasks.queue],
      ["status_queue", status.queue]
    ] as const
    issues.checkDifferent(names)
    for (const [field, name] of names) {
      if (this.aggregation && Aggregation.hasQueueNamed(this.aggregation, name)) {
        issues.addMistake(field, `must not be ${JSON.stringify(name)}, which is the name of an aggregation queue`)
      }
    }
    this.exchanges = [
      ...(deadLetterExchange === undefined ? [] : [{ name: deadLetterExchange, kind: "fanout" as const }]),
      { name: this.tasks.exchange, kind: "direct" },
      { name: status.exchange, kind: "topic" }
    ]
    this.queues = [
      { name: status.queue, arguments: status.family.arguments },
      { name: this.tasks.queue, arguments: this.tasks.family.arguments }
    ]
    const keys = routing._tag === "Shared" ? [routing.routingKey] : routing.taskTypes
    this.bindings = [
      { exchange: status.exchange, queue: status.queue, routingKey: "#" },
      ...keys.map((routingKey) => ({ exchange: this.tasks.exchange, queue: this.tasks.queue, routingKey }))
    ]
  }
}

/** Returns the aggregation queue for a list of shards: see `Aggregation.aggregationQueueOf`. */
export const aggregationQueue = (
  topology: Topology,
  shards: ReadonlyArray<number>,
  name?: string
): Result.Result<Aggregation.AggregationQueue, InvalidPublish> =>
  topology instanceof TaskTopology
    ? Aggregation.aggregationQueueOf(topology, shards, name)
    : Result.fail(Aggregation.noAggregationError())

/** One shared task queue and one shared status queue or stream. */
export class SharedTasksSharedStatusTopology extends TaskTopology {
  readonly kind = "shared_tasks_shared_status"

  constructor(parameters: SharedParameters) {
    const issues = new ValidationIssues()
    super(parameters, sharedRouting(parameters, issues), undefined, issues)
    issues.throwTopologyError("SharedTasksSharedStatusTopology")
  }
}

/** Like `SharedTasksSharedStatusTopology`, with aggregation queues on the status exchange. Each serves some shards. */
export class SharedTasksSharedStatusShardedAggregationTopology extends TaskTopology {
  readonly kind = "shared_tasks_shared_status_sharded_aggregation"
  declare readonly aggregation: Aggregation.AggregationPlane

  constructor(parameters: SharedParameters & Aggregation.AggregationParameters) {
    const issues = new ValidationIssues()
    super(parameters, sharedRouting(parameters, issues), parameters, issues)
    issues.throwTopologyError("SharedTasksSharedStatusShardedAggregationTopology")
  }
}

/** One task queue per worker, bound with its task types as keys, and one shared status queue or stream. */
export class RoutedTasksSharedStatusTopology extends TaskTopology {
  readonly kind = "routed_tasks_shared_status"

  constructor(parameters: RoutedParameters) {
    const issues = new ValidationIssues()
    super(parameters, routedRouting(parameters, issues), undefined, issues)
    issues.throwTopologyError("RoutedTasksSharedStatusTopology")
  }
}

/** Like `RoutedTasksSharedStatusTopology`, with aggregation queues on the status exchange. Each serves some shards. */
export class RoutedTasksSharedStatusShardedAggregationTopology extends TaskTopology {
  readonly kind = "routed_tasks_shared_status_sharded_aggregation"
  declare readonly aggregation: Aggregation.AggregationPlane

  constructor(parameters: RoutedParameters & Aggregation.AggregationParameters) {
    const issues = new ValidationIssues()
    super(parameters, routedRouting(parameters, issues), parameters, issues)
    issues.throwTopologyError("RoutedTasksSharedStatusShardedAggregationTopology")
  }
}

const sharedRouting = (parameters: SharedParameters, issues: ValidationIssues): TaskRouting => ({
  _tag: "Shared",
  routingKey: issues.checkKey("tasks_routing_key", parameters.tasks_routing_key, "allowed"),
  strategy: parameters.routing_strategy
})

const routedRouting = (parameters: RoutedParameters, issues: ValidationIssues): TaskRouting => {
  const trimmed = parameters.task_types.map((taskType, index) =>
    issues.checkKey(`task_types[${index}]`, taskType, "allowed")
  )
  const taskTypes = [...new Set(trimmed)].filter((taskType) => taskType !== "")
  if (taskTypes.length === 0) issues.addMistake("task_types", "must name at least one task type")
  return { _tag: "Routed", taskTypes }
}

const taskFamily = (parameters: TaskParameters, issues: ValidationIssues): QueueFamily => {
  issues.checkMillis("tasks_message_ttl_ms", parameters.tasks_message_ttl_ms)
  issues.checkMillis("task_consumer_timeout_ms", parameters.task_consumer_timeout_ms)
  return mergeQueueFamily(
    "task",
    "task_max_priority",
    [
      argumentFromField("task_queue_type", "x-queue-type", parameters.task_queue_type),
      argumentFromField("tasks_message_ttl_ms", "x-message-ttl", parameters.tasks_message_ttl_ms),
      argumentFromField("dead_letter_exchange", "x-dead-letter-exchange", parameters.dead_letter_exchange),
      argumentFromField("task_consumer_timeout_ms", "x-consumer-timeout", parameters.task_consumer_timeout_ms),
      argumentFromField(
        "task_single_active_consumer",
        "x-single-active-consumer",
        parameters.task_single_active_consumer
      ),
      argumentFromField("task_max_priority", "x-max-priority", parameters.task_max_priority),
      { field: "task_queue_arguments_overrides", arguments: parameters.task_queue_arguments_overrides },
      { field: "task_queue_kwargs", arguments: parameters.task_queue_kwargs }
    ],
    issues
  )
}
