import type { Instant } from "./GraphBuilder.ts"

export interface Attempt extends Instant {
  readonly id: string
  /** The position of this attempt among all attempts of the task, counted from 1. */
  readonly position: number
  readonly queue: string | null
  /** The number of retries before this attempt. `null` if the worker does not report it. */
  readonly retryAttempt: number | null
  readonly stage: string | null
  /** The id of the workflow message. A replay keeps the id. `null` if unknown, or if the task is not in a workflow. */
  readonly messageId: string | null
  readonly consumerName: string | null
  readonly taskType: string | null
}

/** The attempts of one task in chronological order. Lookups use binary search. */
export class Attempts {
  readonly all: ReadonlyArray<Attempt>
  readonly #groups = new Map<string, Attempts>()
  #grouped = false

  constructor(all: ReadonlyArray<Attempt>) {
    this.all = all
  }

  latestAt(at: number): Attempt | undefined {
    return this.all[this.#first((attempt) => attempt.at > at) - 1]
  }

  firstAfter(at: number): Attempt | undefined {
    return this.all[this.#first((attempt) => attempt.at > at)]
  }

  /** Returns the next attempt in this list. The given attempt need not be in the list. */
  nextAfter({ position }: Attempt): Attempt | undefined {
    return this.all[this.#first((attempt) => attempt.position > position)]
  }

  ofStage(stage: string): Attempts {
    return this.#group(stageKey(stage))
  }

  ofType(taskType: string | null): Attempts {
    return this.#group(typeKey(taskType))
  }

  ofWorker(consumer: string | null, taskType: string | null): Attempts {
    return this.#group(workerKey(consumer, taskType))
  }

  onQueue(queue: string, retryAttempt?: number | null): Attempts {
    return this.#group(retryAttempt === undefined ? queueKey(queue) : attemptKey(queue, retryAttempt))
  }

  /** Returns the index of the first match. All attempts after the first match must match as well. */
  #first(isMatch: (attempt: Attempt) => boolean): number {
    let [low, high] = [0, this.all.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      const attempt = this.all[middle]
      if (attempt === undefined || isMatch(attempt)) high = middle
      else low = middle + 1
    }
    return low
  }

  #group(key: string): Attempts {
    if (!this.#grouped) {
      this.#grouped = true
      const lists = new Map<string, Array<Attempt>>()
      const put = (key: string, attempt: Attempt) => {
        const list = lists.get(key)
        if (list === undefined) lists.set(key, [attempt])
        else list.push(attempt)
      }
      for (const attempt of this.all) {
        put(typeKey(attempt.taskType), attempt)
        put(workerKey(attempt.consumerName, attempt.taskType), attempt)
        if (attempt.stage !== null) put(stageKey(attempt.stage), attempt)
        if (attempt.queue === null) continue
        put(queueKey(attempt.queue), attempt)
        put(attemptKey(attempt.queue, attempt.retryAttempt), attempt)
      }
      for (const [key, list] of lists) this.#groups.set(key, new Attempts(list))
    }
    return this.#groups.get(key) ?? none
  }
}

const none = new Attempts([])

const stageKey = (stage: string) => `stage ${stage}`
const typeKey = (taskType: string | null) => `type ${taskType ?? ""}`
const workerKey = (consumer: string | null, taskType: string | null) =>
  `worker ${JSON.stringify([consumer, taskType ?? ""])}`
const queueKey = (queue: string) => `queue ${queue}`
const attemptKey = (queue: string, retryAttempt: number | null) => `attempt ${retryAttempt} ${queue}`

/** Returns the latest attempt until `at` with this queue and number, else with this queue, else with any queue. */
export const failedAttempt = (
  attempts: Attempts,
  queue: string | null,
  retryAttempt: number | null,
  at: number
): Attempt | undefined =>
  (queue === null
    ? undefined
    : (attempts.onQueue(queue, retryAttempt).latestAt(at) ?? attempts.onQueue(queue).latestAt(at))) ??
  attempts.latestAt(at)
