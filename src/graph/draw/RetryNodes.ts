import { type Attempt, type Attempts, failedAttempt } from "./Attempts.ts"
import type { TaskNodes } from "./DeliveryNodes.ts"
import type { RecordedObservation } from "./Evidence.ts"
import type { GraphBuilder } from "./GraphBuilder.ts"

export const addNodes = (
  builder: GraphBuilder,
  { attempts, node, taskId }: TaskNodes,
  observations: ReadonlyArray<RecordedObservation>
): void => {
  const matcher = new RetryMatcher(attempts)
  let number = 0
  for (const observation of observations) {
    if (!retryEvents.has(observation.type)) continue
    number++
    const annotations = {
      queue_name: observation.text("queue_name"),
      source_queue_name: observation.text("source_queue_name"),
      retry_attempt: observation.count("retry_attempt"),
      max_retries: observation.count("max_retries"),
      reason: observation.text("reason"),
      task_id: taskId
    }
    const { retry_attempt: attempt, source_queue_name: queue } = annotations
    const label = attempt === null ? "retry" : `retry ${attempt}`
    const retry = builder.addNode(`retry:${taskId}:${number}`, "retry", taskId, observation, { label, annotations })
    const from = failedAttempt(attempts, queue, attempt === null ? null : attempt - 1, observation.at)
    builder.addEdge(from?.id ?? node, "retried_as", retry, observation, { task_id: taskId })
    const to = matcher.find(queue, attempt, from?.at ?? observation.at, observation.at)
    if (to !== undefined) builder.addEdge(retry, "received_by", to.id, to)
  }
}

const retryEvents: ReadonlySet<string> = new Set(["ConsumerRetryScheduled", "AggregationRetryScheduled"])

/**
 * Finds the attempt that a retry led to. It is the first one after the failed attempt with the queue and number of the
 * retry. No attempt belongs to two retries. The time of the retry is ignored, because the clock of the receiving worker
 * may be slow. If attempts have no number, the first attempt after the time of the retry is taken.
 */
class RetryMatcher {
  readonly #attempts: Attempts
  readonly #taken = new Map<string, number>()

  constructor(attempts: Attempts) {
    this.#attempts = attempts
  }

  find(queue: string | null, number: number | null, failedAt: number, retriedAt: number): Attempt | undefined {
    if (queue !== null && number !== null) {
      const numbered = this.#next(`${number} ${queue}`, this.#attempts.onQueue(queue, number), (at) => at >= failedAt)
      if (numbered !== undefined) return numbered
    }
    const unnumbered = queue === null ? this.#attempts : this.#attempts.onQueue(queue, null)
    return this.#next(`? ${queue}`, unnumbered, (at) => at > retriedAt)
  }

  /** Retries are examined in chronological order, so a skipped attempt cannot belong to a later retry. */
  #next(key: string, { all }: Attempts, fits: (at: number) => boolean): Attempt | undefined {
    let index = this.#taken.get(key) ?? 0
    while (index < all.length && !fits(all[index]?.at ?? 0)) index++
    this.#taken.set(key, index + 1)
    return all[index]
  }
}
