import { type Attempt, type Attempts, failed } from "./Attempts.ts"
import type { Drawing } from "./Drawing.ts"
import type { Seen } from "./Evidence.ts"
import type { Drawn } from "./Receipts.ts"

/** Draws the retries of a task: each from the attempt that failed to the attempt that it became, once that was seen. */
export const draw = (drawing: Drawing, { attempts, node, taskId }: Drawn, observations: ReadonlyArray<Seen>): void => {
  const becoming = new Becoming(attempts)
  let number = 0
  for (const seen of observations) {
    if (!scheduled.has(seen.type)) continue
    number++
    const annotations = {
      queue_name: seen.text("queue_name"),
      source_queue_name: seen.text("source_queue_name"),
      retry_attempt: seen.count("retry_attempt"),
      max_retries: seen.count("max_retries"),
      reason: seen.text("reason"),
      task_id: taskId
    }
    const { retry_attempt: attempt, source_queue_name: queue } = annotations
    const label = attempt === null ? "retry" : `retry ${attempt}`
    const retry = drawing.node(`retry:${taskId}:${number}`, "retry", taskId, seen, { label, annotations })
    const from = failed(attempts, queue, attempt === null ? null : attempt - 1, seen.at)
    drawing.edge(from?.id ?? node, "retried_as", retry, seen, { task_id: taskId })
    const to = becoming.of(queue, attempt, from?.at ?? seen.at, seen.at)
    if (to !== undefined) drawing.edge(retry, "received_by", to.id, to)
  }
}

const scheduled: ReadonlySet<string> = new Set(["ConsumerRetryScheduled", "AggregationRetryScheduled"])

/**
 * Which attempt a retry became: the first of its number on its queue behind the attempt that failed, and of no other
 * retry. Not "behind the retry": another worker received it, whose clock may be late. Only where workers do not number
 * their attempts, the time of the retry has to do.
 */
class Becoming {
  readonly #attempts: Attempts
  readonly #taken = new Map<string, number>()

  constructor(attempts: Attempts) {
    this.#attempts = attempts
  }

  of(queue: string | null, number: number | null, failedAt: number, retriedAt: number): Attempt | undefined {
    if (queue !== null && number !== null) {
      const numbered = this.#next(`${number} ${queue}`, this.#attempts.onQueue(queue, number), (at) => at >= failedAt)
      if (numbered !== undefined) return numbered
    }
    const unnumbered = queue === null ? this.#attempts : this.#attempts.onQueue(queue, null)
    return this.#next(`? ${queue}`, unnumbered, (at) => at > retriedAt)
  }

  /** Retries come in the order of time, so what was passed over once is never looked at again. */
  #next(key: string, { all }: Attempts, fits: (at: number) => boolean): Attempt | undefined {
    let index = this.#taken.get(key) ?? 0
    while (index < all.length && !fits(all[index]?.at ?? 0)) index++
    this.#taken.set(key, index + 1)
    return all[index]
  }
}
