import { Effect, Option } from "effect"
import type { BrokerClient } from "../publish/BrokerClient.ts"
import * as Aggregation from "../topology/Aggregation.ts"

/** A queue that workers of other shards may have left behind. */
export interface OrphanedQueue {
  readonly queue: string
  /** One of the present shards is bound to it: it fills up beside the queue that the events are taken from. */
  readonly isFilling: boolean
}

/** Of each kind. Every name is a question to the broker. */
const maxInspected = 32

/**
 * What another `shard_count` or other groups may have left, as far as names tell, since AMQP lists no queues: those of
 * single shards that there are no more, and of shards that are in a group now.
 */
export const candidates = (
  aggregation: Aggregation.AggregationPlane,
  groups: ReadonlyArray<ReadonlyArray<number>>
): ReadonlyArray<OrphanedQueue> => {
  const of = (isFilling: boolean) => (shard: number) => ({
    queue: Aggregation.queueName(aggregation, [shard]),
    isFilling
  })
  const grouped = groups.filter((shards) => new Set(shards).size > 1).flat()
  const beyond = Array.from({ length: maxInspected }, (_, index) => aggregation.shardCount + index)
  return [...[...new Set(grouped)].slice(0, maxInspected).map(of(true)), ...beyond.map(of(false))]
}

/** Says in one sentence which of them are there with nobody at work on them. They are left alone: events are in them. */
export const warn = (
  { inspectQueue }: Pick<BrokerClient["Service"], "inspectQueue">,
  candidates: ReadonlyArray<OrphanedQueue>
): Effect.Effect<void> =>
  Effect.gen(function* () {
    const found: Array<string> = []
    for (const { isFilling, queue } of candidates) {
      // a broker that does not answer is the consumers' business
      const inspection = Option.flatten(yield* Effect.option(inspectQueue(queue)))
      if (Option.isNone(inspection) || inspection.value.consumers > 0) continue
      const { messages } = inspection.value
      found.push(
        `${queue} (${messages} ${messages === 1 ? "event" : "events"}${isFilling ? ", and more are coming" : ""})`
      )
    }
    if (found.length === 0) return
    yield* Effect.logWarning(
      `Queues of other shards are left over: ${found.join(", ")}. ` +
        "Let workers of the former shards empty them, then delete them."
    )
  })
