import { Result } from "effect"
import type { Declarations, Fields } from "../../services/Broker.ts"
import { fitsShortString } from "../envelope/Envelope.ts"
import { InvalidPublish } from "../envelope/Errors.ts"
import { argumentFromField, mergeQueueFamily, type QueueFamily, type ValidationIssues } from "./Parameters.ts"
import * as Shards from "./Shards.ts"

export interface AggregationParameters {
  /**
   * Default: 1. Changing it moves parents to other shards: let the queues run empty first. Publishers know it too: events
   * for a shard that no worker has bound are in the status queue alone.
   */
  readonly shard_count?: number | undefined
  /** Events go by `<prefix>.<shard>` on the status exchange. Default: `"agg"`. */
  readonly aggregation_routing_prefix?: string | undefined
  /** The name of a queue of one shard. Default: `"aggregation.queue.{shard}"`. */
  readonly aggregation_queue_template?: string | undefined
  /**
   * The beginning of the name of a queue of several shards. Default: `"aggregation.queue.shards"`. Like the template it
   * names durable queues of the whole virtual host: deployments that share one need names of their own.
   */
  readonly aggregation_queue_name_prefix?: string | undefined
  /**
   * How long a delivery may be unsettled, in milliseconds. From RabbitMQ 3.12 on; from 4.3 on quorum queues alone. Default:
   * the broker's.
   */
  readonly aggregation_consumer_timeout_ms?: number | undefined
  /** Absent: not said; `false` is sent as `false`. */
  readonly aggregation_single_active_consumer?: boolean | undefined
  /** 1 to 255. Default: the queues know no priorities. */
  readonly aggregation_max_priority?: number | undefined
  /** Default: the broker's, which is classic. */
  readonly aggregation_queue_type?: "classic" | "quorum" | undefined
  /** Raw arguments. Both hatches are alike; an argument may come from one place alone. Default: none. */
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

export const make = (parameters: AggregationParameters, findings: ValidationIssues): AggregationPlane => {
  const template = parameters.aggregation_queue_template ?? "aggregation.queue.{shard}"
  if (!template.includes("{shard}")) findings.addMistake("aggregation_queue_template", "must contain {shard}")
  const prefix = findings.checkKey("aggregation_routing_prefix", parameters.aggregation_routing_prefix ?? "agg")
  if (/(^|\.)[*#](\.|$)/.test(prefix)) {
    findings.addMistake("aggregation_routing_prefix", "must not contain the words * and #, which bind other keys too")
  }
  findings.checkMillis("aggregation_consumer_timeout_ms", parameters.aggregation_consumer_timeout_ms)
  return {
    shardCount: findings.checkInteger("shard_count", parameters.shard_count, 1, Shards.maxShards) ?? 1,
    routingPrefix: prefix,
    queueTemplate: findings.checkName("aggregation_queue_template", template),
    queueNamePrefix: findings.checkName(
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
      findings
    )
  }
}

export const routingKey = (aggregation: AggregationPlane, shard: number): string =>
  `${aggregation.routingPrefix}.${shard}`

/** A task of that id would have its statuses aggregated: the routing key of a status is its task id. */
export const isRoutingKey = ({ routingPrefix }: AggregationPlane, text: string): boolean =>
  text.startsWith(`${routingPrefix}.`) && /^\d+$/.test(text.slice(routingPrefix.length + 1))

export const queueName = (aggregation: AggregationPlane, shards: ReadonlyArray<number>): string => {
  const [first, ...others] = Shards.sortedUnique(shards)
  return others.length === 0
    ? aggregation.queueTemplate.replaceAll("{shard}", String(first))
    : `${aggregation.queueNamePrefix}.${[first, ...others].join("-")}`
}

/** Whether some of its shards would be aggregated from a queue of that name. */
export const hasQueueNamed = (aggregation: AggregationPlane, name: string): boolean => {
  const { queueNamePrefix, queueTemplate, shardCount } = aggregation
  const several = `${queueNamePrefix}.`
  if (name.startsWith(several) && /^\d+(-\d+)+$/.test(name.slice(several.length))) return true
  const first = queueTemplate.indexOf("{shard}")
  return [1, 2, 3, 4, 5].some((digits) => {
    const shard = Number(name.slice(first, first + digits))
    return Number.isInteger(shard) && shard < shardCount && queueName(aggregation, [shard]) === name
  })
}

export interface AggregationQueue {
  readonly name: string
  /** In order, without repetitions. */
  readonly shards: ReadonlyArray<number>
  readonly family: QueueFamily
  readonly declarations: Declarations
}

/**
 * The queue of a list of shards, for whoever aggregates them. `name` takes the place of the name; the bindings follow
 * the shards in any case. Groups of one runtime must not overlap: `Shards.refusedGroups`.
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
      : `The name of the queue of ${shards.length} shards must have 1 to 255 bytes: give it one of its own.`
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
    message: "This topology has no shard-aware aggregation queues; use one of the ShardedAggregation kinds."
  })
