import { createHash, randomUUID } from "node:crypto"
import { Clock, type Duration, Effect, Layer, Option } from "effect"
import { checkDuration } from "../../messaging/consume/ConsumerOptions.ts"
import type { CancelRequest } from "../../messaging/control/ControlRecords.ts"
import { SettingsError } from "../../messaging/envelope/Errors.ts"
import { ValidationIssues } from "../../messaging/topology/Parameters.ts"
import type { RedisError } from "../../services/Redis.ts"
import * as JobLease from "../jobs/JobLease.ts"
import { TaskCancellation } from "../queues/TaskCancellation.ts"
import { Cancellations, type NextTasks, type TaskOutcome } from "./Cancellations.ts"

export interface Options {
  /** The size of a batch of tasks that are asked for: 1 to 1,000. Default: 100. */
  readonly window?: number
  /** The maximum number of tasks that are asked for per second. Default: 500. */
  readonly perSecond?: number
  /** The time between two checks for running jobs. Default: 500 milliseconds. */
  readonly lookEvery?: Duration.Input
  /** If a worker does not renew its lease for this many seconds, another worker may continue its job. Default: 15. */
  readonly leaseSeconds?: number
  /** Answers are counted until this many seconds after the last task was asked for. Default: 600. */
  readonly followSeconds?: number
  /** A job that is not done after this many seconds stops itself. Default: 3,600. */
  readonly maxSeconds?: number
}

const concurrency = 16
const openPerLook = 200
const looksApartMs = 500

/**
 * Works on cancellations of many tasks, one at a time, while the layer exists. If a shutdown or a crash interrupts a job,
 * a worker continues the job after the lease has expired. The id of each request to cancel is derived from the job, so
 * that a batch that is repeated finds its own requests again.
 */
export const layer = (options: Options = {}): Layer.Layer<never, SettingsError, Cancellations | TaskCancellation> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const refusal = settingsErrorOf(options)
      if (refusal !== undefined) return yield* refusal
      const jobs = yield* Cancellations
      const worker = randomUUID()
      const scope = yield* Effect.scope
      const inWork = new Set<string>()
      /** A job waits for answers most of the time, so that each has a fiber. */
      const workOnJobs = Effect.gen(function* () {
        for (const id of yield* jobs.running) {
          if (inWork.has(id)) continue
          inWork.add(id)
          const done = Effect.sync(() => void inWork.delete(id))
          yield* Effect.forkIn(Effect.ensuring(JobLease.logged(work(id, worker, options), jobName), done), scope)
        }
      })
      yield* JobLease.lookForJobs(workOnJobs, { lookEvery: options.lookEvery ?? "500 millis", name: jobName })
    })
  )

const jobName = "cancellation of tasks"

const settingsErrorOf = (options: Options): SettingsError | undefined => {
  const issues = new ValidationIssues()
  issues.checkInteger("window", options.window, 1, 1_000)
  issues.checkInteger("perSecond", options.perSecond, 1, 1_000_000)
  issues.checkInteger("leaseSeconds", options.leaseSeconds, 1, 3_600)
  issues.checkInteger("followSeconds", options.followSeconds, 0, 86_400)
  issues.checkInteger("maxSeconds", options.maxSeconds, 1, 86_400)
  checkDuration("lookEvery", options.lookEvery, issues)
  return issues.mistakes.length > 0 ? SettingsError.of("CancellationWorker", issues.mistakes) : undefined
}

/** Works on a job until it ends. Does nothing if another worker has the lease of the job. */
export const work = Effect.fnUntraced(function* (id: string, worker: string, options: Options = {}) {
  const { followSeconds = 600, leaseSeconds = 15, maxSeconds = 3_600, perSecond = 500, window = 100 } = options
  const jobs = yield* Cancellations
  const take = jobs.take(id, worker, leaseSeconds * 1_000)
  if (!(yield* take)) return
  let lastPlace = 0
  let lookedAt = 0

  const askBatch = Effect.fnUntraced(function* (next: NextTasks) {
    const { outcomes, stop } = yield* askFor(id, next)
    return yield* jobs.asked(id, worker, { position: next.position, size: next.taskIds.length, outcomes, stop })
  })

  /** Looks at some of the open tasks. The next look is at those after them, and then at the first ones again. */
  const lookAtOpen = Effect.fnUntraced(function* (isWithdrawn: boolean, isOver: boolean) {
    const open = yield* jobs.open(id, lastPlace, openPerLook)
    lastPlace = open.length < openPerLook ? 0 : (open.at(-1)?.place ?? 0)
    const outcomes = yield* outcomesOf(
      id,
      open.map(({ taskId }) => taskId),
      isWithdrawn
    )
    return yield* jobs.answered(
      id,
      worker,
      outcomes.filter(({ outcome }) => outcome !== "requested"),
      isOver
    )
  })

  const round = Effect.gen(function* () {
    const begunAt = yield* Clock.currentTimeMillis
    const next = yield* jobs.next(id, window)
    const size = next.taskIds.length
    const isLate = begunAt >= next.startedAt + maxSeconds * 1_000
    if (isLate) yield* jobs.stop(id, tooLate)
    else if (size > 0 && (yield* askBatch(next)) === "lost") return "lost"
    const isFollowed = next.askedAt !== undefined && begunAt >= next.askedAt + followSeconds * 1_000
    if (isLate || size === 0 || begunAt >= lookedAt + looksApartMs) {
      lookedAt = begunAt
      const turn = yield* lookAtOpen(next.isWithdrawn, isLate || isFollowed)
      if (turn !== "running") return turn
    }
    const spent = (yield* Clock.currentTimeMillis) - begunAt
    yield* Effect.sleep(size === 0 ? looksApartMs : Math.max(0, (size / perSecond) * 1_000 - spent))
    return "running"
  }).pipe(
    Effect.retry({ schedule: JobLease.retrySchedule, while: ({ retryable }) => retryable }),
    Effect.repeat({ while: (turn) => turn === "running" })
  )
  yield* Effect.raceFirst(Effect.asVoid(round), JobLease.untilLost(take, leaseSeconds))
})

const tooLate = "It was not done in time. Start another one for the rest."

/** The id of a job's request to cancel a task. */
const cancelIdOf = (jobId: string, taskId: string): string =>
  createHash("sha256").update(`${jobId}\n${taskId}`).digest("hex").slice(0, 32)

/** Asks for each task of a batch. Where there are too many requests, the tasks without an outcome were not asked for. */
const askFor = Effect.fnUntraced(function* (jobId: string, { by, reason, taskIds }: NextTasks) {
  const cancellation = yield* TaskCancellation
  const requests = yield* cancellation.requestsOf(taskIds)
  let stop: string | undefined
  const ask = (taskId: string, request: Option.Option<CancelRequest>) => {
    const cancelId = cancelIdOf(jobId, taskId)
    if (Option.exists(request, ({ cancel_id }) => cancel_id === cancelId))
      return cancellation.outcomeOf(taskId, request).pipe(Effect.map((outcome): TaskOutcome => ({ taskId, outcome })))
    return cancellation.request({ taskId, reason, by, cancelId }).pipe(
      Effect.as<TaskOutcome>({ taskId, outcome: "requested" }),
      Effect.catchTags({
        TaskEnded: () => Effect.succeed<TaskOutcome>({ taskId, outcome: "ended" }),
        TooManyCancels: ({ message }) =>
          Effect.sync(() => {
            stop = message
            return undefined
          })
      })
    )
  }
  const outcomes = yield* Effect.forEach(
    taskIds,
    (taskId, at) => orFailed(taskId, ask(taskId, requests[at] ?? Option.none())),
    { concurrency }
  )
  return { outcomes: outcomes.filter((one) => one !== undefined), stop }
})

const outcomesOf = Effect.fnUntraced(function* (jobId: string, taskIds: ReadonlyArray<string>, isWithdrawn: boolean) {
  const cancellation = yield* TaskCancellation
  const requests = yield* cancellation.requestsOf(taskIds)
  const outcomeOf = Effect.fnUntraced(function* (taskId: string, request: Option.Option<CancelRequest>) {
    const outcome = yield* cancellation.outcomeOf(taskId, request)
    // a request of somebody else is theirs to withdraw
    const withdraws = isWithdrawn && outcome === "requested"
    const isGone = withdraws && (yield* cancellation.withdraw(taskId, cancelIdOf(jobId, taskId)))
    return { taskId, outcome: isGone ? "withdrawn" : outcome } satisfies TaskOutcome
  })
  return yield* Effect.forEach(taskIds, (taskId, at) => outcomeOf(taskId, requests[at] ?? Option.none()), {
    concurrency
  })
})

/** A task whose request Redis refuses for good must not hold up the others. */
const orFailed = <A, R>(taskId: string, outcome: Effect.Effect<A, RedisError, R>) =>
  Effect.catchIf(
    outcome,
    ({ retryable }) => !retryable,
    ({ message }) => Effect.succeed<TaskOutcome>({ taskId, outcome: "failed", problem: message })
  )
