import { Effect, Option } from "effect"
import type { BrokerClient } from "../publish/BrokerClient.ts"
import * as Aggregation from "../topology/Aggregation.ts"

interface OrphanedQueue {
  readonly queue: string
  /** True if the queue is bound to a current shard. It then receives events that no worker consumes. */
  readonly isFilling: boolean
}

/** The maximum number of inspected queues of each kind. Each inspection is a request to the broker. */
const maxInspected = 32

/** Returns queues that may be left from an earlier configuration. AMQP cannot list the queues of a broker. */
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
      // Failed requests are ignored here, because the consumers report an unreachable broker.
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
