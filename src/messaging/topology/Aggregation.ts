import { Result } from "effect"
import type { Declarations, Fields } from "../../services/Broker.ts"
import { fitsShortString } from "../envelope/Envelope.ts"
import { InvalidPublish } from "../envelope/Errors.ts"
import { argumentFromField, mergeQueueFamily, type QueueFamily, type ValidationIssues } from "./Parameters.ts"
import * as Shards from "./Shards.ts"

export interface AggregationParameters {
  /**
   * The number of shards. Publishers and workers must use the same number. Events of a shard without a worker are not
   * aggregated. Drain the aggregation queues before a change, because a new number moves parent tasks to other shards.
   * Default: 1.
   */
  readonly shard_count?: number | undefined
  /** The routing key of aggregation events on the status exchange is `<prefix>.<shard>`. Default: `"agg"`. */
  readonly aggregation_routing_prefix?: string | undefined
  /** The name of a queue that serves one shard. Default: `"aggregation.queue.{shard}"`. */
  readonly aggregation_queue_template?: string | undefined
  /**
   * The prefix of the name of a queue that serves several shards. Deployments that share a virtual host need different
   * prefixes. Default: `"aggregation.queue.shards"`.
   */
  readonly aggregation_queue_name_prefix?: string | undefined
  /** The consumer timeout in ms. Ignored before RabbitMQ 3.12 and on classic queues from 4.3. Default: the broker's. */
  readonly aggregation_consumer_timeout_ms?: number | undefined
  /** The queue argument `x-single-active-consumer`. `false` is also sent. Default: the argument is not sent. */
  readonly aggregation_single_active_consumer?: boolean | undefined
  /** The highest message priority, 1 to 255. Default: the queues have no priorities. */
  readonly aggregation_max_priority?: number | undefined
  /** The type of the queues. Default: the default queue type of the virtual host, which is usually classic. */
  readonly aggregation_queue_type?: "classic" | "quorum" | undefined
  /** Raw queue arguments, merged with `aggregation_queue_kwargs`. An argument in both is an error. Default: none. */
  readonly aggregation_queue_arguments_overrides?: Fields | undefined
  readonly aggregation_queue_kwargs?: Fields | undefined
}

export interface AggregationPlane {
  readonly shardCount: number
  readonly routingPrefix: string
  readonly queueTemplate: string
  readonly queueNamePrefix: string
  readonly family: QueueFamily
}

export const make = (parameters: AggregationParameters, issues: ValidationIssues): AggregationPlane => {
  const template = parameters.aggregation_queue_template ?? "aggregation.queue.{shard}"
  if (!template.includes("{shard}")) issues.addMistake("aggregation_queue_template", "must contain {shard}")
  const prefix = issues.checkKey("aggregation_routing_prefix", parameters.aggregation_routing_prefix ?? "agg")
  if (/(^|\.)[*#](\.|$)/.test(prefix)) {
    issues.addMistake("aggregation_routing_prefix", "must not contain the words * and #, which match other keys too")
  }
  issues.checkMillis("aggregation_consumer_timeout_ms", parameters.aggregation_consumer_timeout_ms)
  return {
    shardCount: issues.checkInteger("shard_count", parameters.shard_count, 1, Shards.maxShards) ?? 1,
    routingPrefix: prefix,
    queueTemplate: issues.checkName("aggregation_queue_template", template),
    queueNamePrefix: issues.checkName(
      "aggregation_queue_name_prefix",
      parameters.aggregation_queue_name_prefix ?? "aggregation.queue.shards"
    ),
    family: mergeQueueFamily(
      "aggregation",
      "aggregation_max_priority",
      [
        argumentFromField("aggregation_queue_type", "x-queue-type", parameters.aggregation_queue_type),
        argumentFromField(
          "aggregation_consumer_timeout_ms",
          "x-consumer-timeout",
          parameters.aggregation_consumer_timeout_ms
        ),
        argumentFromField(
          "aggregation_single_active_consumer",
          "x-single-active-consumer",
          parameters.aggregation_single_active_consumer
        ),
        argumentFromField("aggregation_max_priority", "x-max-priority", parameters.aggregation_max_priority),
        { field: "aggregation_queue_arguments_overrides", arguments: parameters.aggregation_queue_arguments_overrides },
        { field: "aggregation_queue_kwargs", arguments: parameters.aggregation_queue_kwargs }
      ],
      issues
    )
  }
}

export const routingKey = (aggregation: AggregationPlane, shard: number): string =>
  `${aggregation.routingPrefix}.${shard}`

/** Returns whether a text is a shard's routing key. No task id may be one, because statuses are routed by task id. */
export const isRoutingKey = ({ routingPrefix }: AggregationPlane, text: string): boolean =>
  text.startsWith(`${routingPrefix}.`) && /^\d+$/.test(text.slice(routingPrefix.length + 1))

export const queueName = (aggregation: AggregationPlane, shards: ReadonlyArray<number>): string => {
  const [first, ...others] = Shards.sortedUnique(shards)
  return others.length === 0
    ? aggregation.queueTemplate.replaceAll("{shard}", String(first))
    : `${aggregation.queueNamePrefix}.${[first, ...others].join("-")}`
}

/** Returns the shards of the queue with this name, or `undefined` if no aggregation queue has this name by default. */
export const shardsOfQueue = (aggregation: AggregationPlane, name: string): ReadonlyArray<number> | undefined => {
  const { queueNamePrefix, queueTemplate, shardCount } = aggregation
  const several = `${queueNamePrefix}.`
  if (name.startsWith(several) && /^\d+(-\d+)+$/.test(name.slice(several.length)))
    return name.slice(several.length).split("-").map(Number)
  const first = queueTemplate.indexOf("{shard}")
  const shard = [1, 2, 3, 4, 5]
    .map((digits) => Number(name.slice(first, first + digits)))
    .find((one) => Number.isInteger(one) && one < shardCount && queueName(aggregation, [one]) === name)
  return shard === undefined ? undefined : [shard]
}

export const hasQueueNamed = (aggregation: AggregationPlane, name: string): boolean =>
  shardsOfQueue(aggregation, name) !== undefined

export interface AggregationQueue {
  readonly name: string
  /** The shards, sorted and without duplicates. */
  readonly shards: ReadonlyArray<number>
  readonly family: QueueFamily
  readonly declarations: Declarations
}

/**
 * Returns the aggregation queue for a list of shards. `name` replaces the default queue name but not the bindings.
 * `Shards.groupsProblem` checks that no other queue has the same shards.
 */
export const aggregationQueueOf = (
  topology: { readonly status: { readonly exchange: string }; readonly aggregation: AggregationPlane | undefined },
  shards: ReadonlyArray<number>,
  name?: string
): Result.Result<AggregationQueue, InvalidPublish> => {
  const { aggregation, status } = topology
  if (aggregation === undefined) return Result.fail(noAggregationError())
  const problem = Shards.shardsProblem(shards, aggregation.shardCount)
  const queue = name ?? (problem === undefined ? queueName(aggregation, shards) : "")
  if (problem !== undefined || !fitsShortString(queue) || queue.trim() === "") {
    const message = problem
      ? `The list of shards ${problem}.`
      : `The name of the queue for ${shards.length} shards must have 1 to 255 bytes: pass a shorter name.`
    return Result.fail(new InvalidPublish({ reason: "shard", field: "shards", message }))
  }
  const bound = Shards.sortedUnique(shards)
  return Result.succeed({
    name: queue,
    shards: bound,
    family: aggregation.family,
    declarations: {
      exchanges: [{ name: status.exchange, kind: "topic" }],
      queues: [{ name: queue, arguments: aggregation.family.arguments }],
      bindings: bound.map((shard) => ({
        exchange: status.exchange,
        queue,
        routingKey: routingKey(aggregation, shard)
      }))
    }
  })
}

export const noAggregationError = (): InvalidPublish =>
  new InvalidPublish({
    reason: "no_aggregation",
    field: "topology",
    message: "This topology has no aggregation queues: use a topology with ShardedAggregation in its name."
  })
