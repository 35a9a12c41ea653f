import { randomUUID } from "node:crypto"
import { Clock, type Duration, Effect, Layer } from "effect"
import { checkDuration } from "../../messaging/consume/ConsumerOptions.ts"
import { SettingsError } from "../../messaging/envelope/Errors.ts"
import { ValidationIssues } from "../../messaging/topology/Parameters.ts"
import type { Broker } from "../../services/Broker.ts"
import type { RedisError } from "../../services/Redis.ts"
import type { Claim, DeadLetterStore } from "../dead-letters/DeadLetterStore.ts"
import * as JobLease from "../jobs/JobLease.ts"
import { type ReplayError, type ReplayOptions, replay } from "./Replay.ts"
import { type Problem, type Progress, ReplayJobs } from "./ReplayJobs.ts"

export interface Options {
  /** The size of a batch, whose records are replayed concurrently: 1 to 1,000. Default: 32. */
  readonly window?: number
  /** The maximum number of records per second, averaged over a batch. Default: 500. */
  readonly perSecond?: number
  /** The time between two checks for running jobs. Default: 500 milliseconds. */
  readonly lookEvery?: Duration.Input
  /** If a worker does not renew its lease for this many seconds, another worker may continue its job. Default: 15. */
  readonly leaseSeconds?: number
}

const jobName = "replay job"

/**
 * Processes replay jobs, one at a time, while the layer exists. If a shutdown or a crash interrupts a job, a worker
 * continues the job after the lease has expired. The states of the records show what was already published.
 */
export const layer = (
  options: Options = {}
): Layer.Layer<never, SettingsError, ReplayJobs | DeadLetterStore | Broker> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const refusal = settingsErrorOf(options)
      if (refusal !== undefined) return yield* refusal
      const jobs = yield* ReplayJobs
      const worker = randomUUID()
      const workOnRunningJobs = Effect.gen(function* () {
        for (const id of yield* jobs.running) yield* work(id, worker, options)
      })
      const scope = yield* Effect.scope
      const staged = new Set<string>()
      /** Jobs with a plan wait most of the time, so that each of them has a fiber. */
      const workOnStagedJobs = Effect.gen(function* () {
        for (const id of yield* jobs.staged) {
          if (staged.has(id)) continue
          staged.add(id)
          const done = Effect.sync(() => void staged.delete(id))
          yield* Effect.forkIn(Effect.ensuring(JobLease.logged(work(id, worker, options), jobName), done), scope)
        }
      })
      const look = { lookEvery: options.lookEvery ?? "500 millis", name: jobName }
      yield* JobLease.lookForJobs(workOnRunningJobs, look)
      yield* JobLease.lookForJobs(workOnStagedJobs, look)
    })
  )

const settingsErrorOf = (options: Options): SettingsError | undefined => {
  const issues = new ValidationIssues()
  issues.checkInteger("window", options.window, 1, 1_000)
  issues.checkInteger("perSecond", options.perSecond, 1, 1_000_000)
  issues.checkInteger("leaseSeconds", options.leaseSeconds, 1, 3_600)
  checkDuration("lookEvery", options.lookEvery, issues)
  return issues.mistakes.length > 0 ? SettingsError.of("ReplayWorker", issues.mistakes) : undefined
}

/** A timer of Node takes 24 days at most. */
const longestSleepMs = 3_600_000

/**
 * Processes a job until it ends, or until its plan has to wait. Does nothing if another worker has the lease of the job.
 */
export const work = Effect.fnUntraced(function* (
  id: string,
  worker: string,
  { leaseSeconds = 15, perSecond = 500, window = 32 }: Options = {}
) {
  const jobs = yield* ReplayJobs
  const take = jobs.take(id, worker, leaseSeconds * 1_000)
  if (!(yield* take)) return
  let batch: Batch | undefined
  const batches = Effect.gen(function* () {
    const startedAt = yield* Clock.currentTimeMillis
    const { beginsAt = startedAt, force, ids, position, rate = perSecond, state, step } = yield* jobs.next(id, window)
    if (beginsAt > startedAt) {
      yield* Effect.sleep(Math.min(beginsAt - startedAt, longestSleepMs))
      return "running"
    }
    if (step !== undefined && ids.length === 0) {
      return (yield* jobs.nextStep(id, worker)) === "begun" ? "running" : "over"
    }
    const results: Array<RecordResult> = []
    batch = { ids, position, results }
    yield* Effect.forEach(
      ids,
      (dlqId) =>
        replayUntilSettled({ id, position, step }, worker, dlqId, { force, state }, (problem) =>
          results.push({ dlqId, problem })
        ),
      {
        concurrency: "unbounded",
        discard: true
      }
    )
    const outcome = yield* jobs.advance(id, worker, position, progressOf(results))
    const spent = (yield* Clock.currentTimeMillis) - startedAt
    if (outcome === "running")
      yield* Effect.sleep(Math.max(0, (ids.length / Math.min(rate, perSecond)) * 1_000 - spent))
    return outcome
  }).pipe(
    Effect.retry({ schedule: JobLease.retrySchedule, while: ({ retryable }) => retryable }),
    Effect.repeat({ while: (outcome) => outcome === "running" })
  )
  const isLost = yield* Effect.raceFirst(
    Effect.as(batches, false),
    Effect.as(JobLease.untilLost(take, leaseSeconds), true)
  )
  // Counts the last batch of a paused or cancelled job. If another worker has the lease, `advance` changes nothing.
  if (isLost && batch !== undefined) {
    const progress = { ...progressOf(batch.results), interrupted: interruptedOf(batch) }
    yield* jobs.advance(id, worker, batch.position, progress)
  }
})

/** The records that are replayed concurrently, with the results so far. */
interface Batch {
  readonly ids: ReadonlyArray<string>
  readonly position: number
  readonly results: ReadonlyArray<RecordResult>
}

interface RecordResult {
  readonly dlqId: string
  /** `undefined` means that the record was replayed. */
  readonly problem: Problem | undefined
}

/** Records settle in any order, so those that are left are put after the others. */
const interruptedOf = ({ ids, results }: Batch): ReadonlyArray<string> | undefined => {
  if (results.length === ids.length) return undefined
  const settled = new Set(results.map(({ dlqId }) => dlqId))
  return [...settled, ...ids.filter((id) => !settled.has(id))]
}

const progressOf = (results: ReadonlyArray<RecordResult>): Progress => {
  const problems = results.map(({ problem }) => problem).filter((problem) => problem !== undefined)
  const count = (outcome: Problem["outcome"]) => problems.filter((problem) => problem.outcome === outcome).length
  return {
    replayed: results.length - problems.length,
    skipped: count("skipped"),
    failed: count("failed"),
    unknown: count("unknown"),
    problems
  }
}

/** Replays a record. Retries while the broker or Redis is unavailable, or another replay of the record is running. */
const replayUntilSettled = (
  job: NonNullable<Claim["job"]>,
  worker: string,
  dlqId: string,
  options: ReplayOptions,
  report: (problem: RecordResult["problem"]) => void
) =>
  replay(dlqId, { ...options, job }).pipe(
    Effect.matchEffect({
      onSuccess: () => Effect.sync(() => void report(undefined)),
      onFailure: (error) => {
        if (isTransient(error)) return Effect.as(noteWaiting(job.id, worker, error), "again")
        return error._tag === "RedisError"
          ? Effect.fail(error)
          : Effect.sync(() => void report(problemOf(dlqId, error)))
      }
    }),
    // Uninterruptible, because the result of every publish must be reported.
    Effect.uninterruptible,
    Effect.repeat({ schedule: JobLease.retrySchedule, while: (outcome) => outcome === "again" })
  )

const isTransient = (error: ReplayError | RedisError): boolean =>
  error._tag === "RedisError" ? error.retryable : error.reason === "unavailable" || error.reason === "in_progress"

const noteWaiting = (job: string, worker: string, error: ReplayError | RedisError) =>
  error._tag === "ReplayError" && error.reason === "unavailable"
    ? Effect.flatMap(ReplayJobs, (jobs) => Effect.ignore(jobs.wait(job, worker, error.message)))
    : Effect.void

const problemOf = (dlq_id: string, { message, reason }: ReplayError): RecordResult["problem"] =>
  reason === "begun" ? undefined : { dlq_id, outcome: outcomeByReason[reason], detail: message }

const outcomeByReason: Readonly<Record<Exclude<ReplayError["reason"], "begun">, Problem["outcome"]>> = {
  absent: "skipped",
  replayed: "skipped",
  in_progress: "skipped",
  replay_unknown: "skipped",
  changed: "skipped",
  replaced: "skipped",
  archived: "skipped",
  no_queue: "failed",
  refused: "failed",
  unavailable: "failed",
  unknown: "unknown"
}
