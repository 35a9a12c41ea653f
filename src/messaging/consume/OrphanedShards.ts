import { Effect, Option } from "effect"
import type { BrokerClient } from "../publish/BrokerClient.ts"
import * as Aggregation from "../topology/Aggregation.ts"

export interface OrphanedQueue {
  readonly queue: string
  /** The queue is still bound to a current shard, so it fills up while another queue is consumed. */
  readonly isFilling: boolean
}

/** Applies to each kind. The broker is asked about every name. */
const maxInspected = 32

/** AMQP cannot list queues, so names are guessed: shards beyond the count, and single shards that are now grouped. */
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

/** The queues are not deleted, because they contain events. */
export const warn = (
  { inspectQueue }: Pick<BrokerClient["Service"], "inspectQueue">,
  candidates: ReadonlyArray<OrphanedQueue>
): Effect.Effect<void> =>
  Effect.gen(function* () {
    const found: Array<string> = []
    for (const { isFilling, queue } of candidates) {
      // The consumers report an unreachable broker.
      const inspection = Option.flatten(yield* Effect.option(inspectQueue(queue)))
      if (Option.isNone(inspection) || inspection.value.consumers > 0) continue
      const { messages } = inspection.value
      found.push(
        `${queue} (${messages} ${messages === 1 ? "event" : "events"}${isFilling ? ", and more are coming" : ""})`
      )
    }
    if (found.length === 0) return
    yield* Effect.logWarning(
      `Queues of former shards still exist: ${found.join(", ")}. ` +
        "Let workers of the former shards drain them, then delete them."
    )
  })
