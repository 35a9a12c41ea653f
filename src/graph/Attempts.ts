import type { Instant } from "./GraphBuilder.ts"

/** One receipt of a task's message from a queue. */
export interface Attempt extends Instant {
  readonly id: string
  /** Its place among the attempts of the task. */
  readonly position: number
  readonly queue: string | null
  /** 0: the original delivery. None: its worker does not say. */
  readonly retryAttempt: number | null
  /** None outside of workflows. */
  readonly stage: string | null
  /** The id of the workflow message, which replays keep. None outside of workflows, or where its worker does not say. */
  readonly messageId: string | null
  readonly consumerName: string | null
  readonly taskType: string | null
}

/** Attempts of one task, in the order of time: what was at work when is found by halving. */
export class Attempts {
  readonly all: ReadonlyArray<Attempt>
  readonly #groups = new Map<string, Attempts>()
  #grouped = false

  constructor(all: ReadonlyArray<Attempt>) {
    this.all = all
  }

  /** The last that had begun by then. */
  latestAt(at: number): Attempt | undefined {
    return this.all[this.#first((attempt) => attempt.at > at) - 1]
  }

  /** The first that began later than that. */
  firstAfter(at: number): Attempt | undefined {
    return this.all[this.#first((attempt) => attempt.at > at)]
  }

  /** The first behind that one. */
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

  /** `retryAttempt`: default any. */
  onQueue(queue: string, retryAttempt?: number | null): Attempts {
    return this.#group(retryAttempt === undefined ? queueKey(queue) : attemptKey(queue, retryAttempt))
  }

  /** The index of the first that is so, where all behind it are. */
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

/**
 * Where a failure happened: in the attempt of that number on that queue, or where its number is not known in the latest
 * on the queue, or else in the latest of all. One worker wrote both, so their times are of one clock.
 */
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
