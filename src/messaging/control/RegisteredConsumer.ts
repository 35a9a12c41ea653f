import { Deferred, Latch } from "effect"
import { DenseSet, DenseSetItem } from "../../services/DenseSet.ts"
import type { CancelRequest, ConsumerReport } from "./ControlRecords.ts"
import type { WrittenSchemas } from "./HandlerSchemas.ts"
import type { ConsumerIdentity, TaskIdentity } from "./WorkControl.ts"

const maxRunningShown = 100

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

  get report(): ConsumerReport {
    const { concurrency, name, queue } = this.identity
    const shown = [...this.running].sort((one, other) => one.startedAt - other.startedAt).slice(0, maxRunningShown)
    return {
      name,
      queue,
      concurrency,
      in_work: this.running.size,
      paused: Latch.isOpen(this.paused),
      running: shown.map(({ startedAt, task: { attempt, taskId, taskType } }) => ({
        task_id: taskId,
        task_type: taskType,
        attempt,
        started_at: new Date(startedAt).toISOString()
      }))
    }
  }
}
