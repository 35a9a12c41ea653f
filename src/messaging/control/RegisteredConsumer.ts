import { Deferred, Latch } from "effect"
import { DenseSet, DenseSetItem } from "../../services/DenseSet.ts"
import type { CancelRequest, ConsumerReport } from "./ControlRecords.ts"
import type { WrittenSchemas } from "./HandlerSchemas.ts"
import type { ConsumerIdentity, TaskIdentity } from "./WorkControl.ts"

const maxRunningShown = 100

/** The weight of the newest duration in the exponential moving average. */
const newestWeight = 0.1
/** The maximum number of task types that have an average. */
const maxTypes = 1_000

export class RunningHandler extends DenseSetItem {
  readonly task: TaskIdentity
  readonly startedAt: number
  readonly cancelled = Deferred.makeUnsafe<CancelRequest>()

  constructor(task: TaskIdentity, startedAt: number) {
    super()
    this.task = task
    this.startedAt = startedAt
  }
}

/** A consumer of this process, while it runs. */
export class RegisteredConsumer {
  readonly identity: ConsumerIdentity
  readonly open: Latch.Latch
  readonly paused: Latch.Latch
  readonly running = new DenseSet<RunningHandler>()
  /** The average duration of each task type. */
  readonly #usualMs = new Map<string | null, number>()
  doneCount = 0
  dueTimes: Array<number> = []
  announcedAt = Number.NEGATIVE_INFINITY
  /** Written once, because the schemas of a handler do not change. */
  schemas: WrittenSchemas | undefined

  constructor(identity: ConsumerIdentity, isPaused: boolean) {
    this.identity = identity
    this.open = Latch.makeUnsafe(!isPaused)
    this.paused = Latch.makeUnsafe(isPaused)
  }

  setPaused(isPaused: boolean): void {
    if (isPaused) {
      Latch.closeUnsafe(this.open)
      Latch.openUnsafe(this.paused)
    } else {
      Latch.closeUnsafe(this.paused)
      Latch.openUnsafe(this.open)
    }
  }

  /** The handler ran to its own end. */
  onEnded({ startedAt, task: { taskType } }: RunningHandler, now: number): void {
    const took = now - startedAt
    const before = this.#usualMs.get(taskType)
    if (before !== undefined) this.#usualMs.set(taskType, before + newestWeight * (took - before))
    else if (this.#usualMs.size < maxTypes) this.#usualMs.set(taskType, took)
  }

  get report(): ConsumerReport {
    const { concurrency, name, queue } = this.identity
    const shown = [...this.running].sort((one, other) => one.startedAt - other.startedAt).slice(0, maxRunningShown)
    return {
      name,
      queue,
      concurrency,
      in_work: this.running.size,
      paused: Latch.isOpen(this.paused),
      running: shown.map(({ startedAt, task: { attempt, taskId, taskType } }) => {
        const usualMs = this.#usualMs.get(taskType)
        return {
          task_id: taskId,
          task_type: taskType,
          attempt,
          started_at: new Date(startedAt).toISOString(),
          ...(usualMs !== undefined && { usual_ms: Math.round(usualMs) })
        }
      })
    }
  }
}
