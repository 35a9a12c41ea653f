import { Effect, Option } from "effect"
import type { BrokerClient } from "../publish/BrokerClient.ts"
import * as Aggregation from "../topology/Aggregation.ts"

interface OrphanedQueue {
  readonly queue: string
  /** The queue is still bound to a current shard, so it receives events that no worker consumes. */
  readonly isFilling: boolean
}

/** The broker is asked about each name, so former shards and single-shard queues are limited to this many each. */
const maxInspected = 32

/** Returns the names of queues that may be left from an earlier configuration. AMQP cannot list queues. */
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

/** Logs a warning about left-over queues. They are not deleted, because they may contain events. */
export const warn = (
  { inspectQueue }: Pick<BrokerClient["Service"], "inspectQueue">,
  candidates: ReadonlyArray<OrphanedQueue>
): Effect.Effect<void> =>
  Effect.gen(function* () {
    const found: Array<string> = []
    for (const { isFilling, queue } of candidates) {
      // An unreachable broker is ignored here, because the consumers report it.
      const inspection = Option.flatten(yield* Effect.option(inspectQueue(queue)))
      if (Option.isNone(inspection) || inspection.value.consumers > 0) continue
      const { messages } = inspection.value
      found.push(
        `${queue} (${messages} ${messages === 1 ? "event" : "events"}${isFilling ? ", and more are coming" : ""})`
      )
    }
    if (found.length === 0) return
    yield* Effect.logWarning(
      `Aggregation queues of an earlier shard configuration have no consumer: ${found.join(", ")}. ` +
        "Start workers with the earlier configuration until the queues are empty, then delete the queues."
    )
  })
