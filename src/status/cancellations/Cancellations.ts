import { Clock, Context, Effect, Layer, Schema } from "effect"
import * as CanonicalJson from "../../messaging/envelope/CanonicalJson.ts"
import { SettingsError } from "../../messaging/envelope/Errors.ts"
import { ValidationIssues } from "../../messaging/topology/Parameters.ts"
import { Redis, type RedisError } from "../../services/Redis.ts"
import { items, texts } from "../dead-letters/DeadLetterIndex.ts"
import type { UnknownCursor } from "../dead-letters/DeadLetterStore.ts"
import * as StoredJobs from "../jobs/StoredJobs.ts"
import type { RequestOutcome, TaskCancellation } from "../queues/TaskCancellation.ts"
import { defaultPrefix } from "../store/DefaultPrefix.ts"
import type { TaskFilter, TaskIndex, TaskIndexError } from "../tasks/TaskIndex.ts"
import { CancellationJob, CancellationProblem, fieldsOf, jobOf, TaskQuery } from "./CancellationJob.ts"
import * as Scripts from "./CancellationScripts.ts"
import * as MatchingTasks from "./MatchingTasks.ts"

export { CancellationJob, CancellationProblem, TaskQuery }

/** `other_request`: the idempotency key belongs to a different request. `too_many`: `maxRunning` jobs are running. */
export class CancellationRefused extends Schema.TaggedError<CancellationRefused>()("CancellationRefused", {
  reason: Schema.Literals(["other_request", "too_many"])
}) {}

export interface Options {
  /** The prefix of the Redis keys. Default: `svc`. */
  readonly prefix?: string | undefined
  /** The maximum number of stored jobs. The oldest jobs that are not running are deleted first. Default: 500. */
  readonly maxJobs?: number
  /** The maximum number of running jobs. Default: 10. */
  readonly maxRunning?: number
  /** The maximum number of tasks that one job takes from a search. Default: 10,000. */
  readonly maxTasks?: number
}

/** The tasks to cancel: a list of ids, or those that match a search when the request arrives. */
export type TaskSelection =
  | { readonly taskIds: ReadonlyArray<string> }
  | { readonly query: TaskQuery; readonly filter: TaskFilter }

/** A task of a batch, and what became of it. `problem`: why it failed. */
export interface TaskOutcome {
  readonly taskId: string
  readonly outcome: RequestOutcome | "failed"
  readonly problem?: string | undefined
}

/** The next tasks of a job, which its worker asks to cancel. */
export interface NextTasks {
  readonly position: number
  /** The next tasks to ask for. Empty once all were, and if the job was stopped. */
  readonly taskIds: ReadonlyArray<string>
  readonly reason: string
  readonly by: string | null
  /** In milliseconds since 1970. `askedAt` is the time of the last request. */
  readonly startedAt: number
  readonly askedAt: number | undefined
  /** Its requests that have had no effect yet are withdrawn. */
  readonly isWithdrawn: boolean
}

/** A batch of tasks that were asked for, but for those that have no outcome. */
export interface AskedBatch {
  readonly position: number
  readonly size: number
  readonly outcomes: ReadonlyArray<TaskOutcome>
  /** Why the job asks for no further task. `undefined`: it goes on. */
  readonly stop: string | undefined
}

export interface OpenTask {
  readonly taskId: string
  /** Increases with each task of the job. */
  readonly place: number
}

/** Jobs that cancel many tasks. If the worker process of a job stops, another worker continues the job. */
export class Cancellations extends Context.Service<
  Cancellations,
  {
    readonly maxTasks: number

    /** Creates a job, or returns the job that was created with the same `idempotencyKey` in the last 24 hours. */
    readonly create: (request: {
      readonly selection: TaskSelection
      readonly reason: string
      readonly by: string | null
      readonly idempotencyKey?: string | undefined
    }) => Effect.Effect<
      { readonly job: CancellationJob; readonly existing: boolean },
      RedisError | TaskIndexError | CancellationRefused
    >

    readonly get: (id: string) => Effect.Effect<CancellationJob | undefined, RedisError>

    /** Returns the tasks of a job that could not be cancelled, at most 200. */
    readonly problems: (id: string) => Effect.Effect<ReadonlyArray<CancellationProblem>, RedisError>

    /** Lists jobs, newest first. */
    readonly list: (page: {
      readonly limit: number
      readonly cursor?: string
    }) => Effect.Effect<
      { readonly items: ReadonlyArray<CancellationJob>; readonly next_cursor: string | null },
      RedisError | UnknownCursor
    >

    /** Begins with no further task. `reason` is why a job stops itself. */
    readonly stop: (id: string, reason?: string) => Effect.Effect<Scripts.StopResult, RedisError>

    /** Stops the job, and withdraws its requests that have had no effect yet, also if the job has ended. */
    readonly withdraw: (id: string) => Effect.Effect<Scripts.WithdrawResult, RedisError>

    readonly running: Effect.Effect<ReadonlyArray<string>, RedisError>

    /** Takes or renews the lease of a job. Returns false if another worker has the lease or the job has ended. */
    readonly take: (id: string, worker: string, leaseMs: number) => Effect.Effect<boolean, RedisError>

    readonly next: (id: string, count: number) => Effect.Effect<NextTasks, RedisError>

    /** Counts a batch. The next one begins after it. */
    readonly asked: (id: string, worker: string, batch: AskedBatch) => Effect.Effect<Scripts.Turn, RedisError>

    /** The tasks without an answer that were asked for after a place, in the order of asking. */
    readonly open: (id: string, after: number, count: number) => Effect.Effect<ReadonlyArray<OpenTask>, RedisError>

    /** Counts answers. Ends the job if all tasks have an answer, or in any case if `isOver` is true. */
    readonly answered: (
      id: string,
      worker: string,
      outcomes: ReadonlyArray<TaskOutcome>,
      isOver: boolean
    ) => Effect.Effect<Scripts.Turn, RedisError>
  }
>()("svc/status/Cancellations") {}

const maxProblems = 200

const make = Effect.fnUntraced(function* (options: Options) {
  const redis = yield* Redis
  const services = yield* Effect.context<TaskIndex | TaskCancellation>()
  const { maxJobs = 500, maxRunning = 10, maxTasks = 10_000, prefix = defaultPrefix } = options
  const base = redis.key(`${prefix}:{cancellations}:`)
  const stored = StoredJobs.make(redis, { base, kind: Scripts.kind, maxJobs, maxRunning })
  const { keyOf, keys } = stored
  const readJob = (id: string) => Effect.map(stored.fields(id), (fields) => jobOf(id, fields))

  const tasksOf = (selection: TaskSelection) =>
    "taskIds" in selection
      ? Effect.succeed({ ids: [...new Set(selection.taskIds)], truncated: false, askedBefore: 0 })
      : Effect.provideContext(MatchingTasks.read(selection.filter, maxTasks), services)

  return Cancellations.of({
    maxTasks,
    create: Effect.fn("Cancellations.create")(function* ({ by, idempotencyKey, reason, selection }) {
      const { askedBefore, ids, truncated } = yield* tasksOf(selection)
      const total = ids.length
      const [at, millis] = [yield* StoredJobs.now, yield* Clock.currentTimeMillis]
      const query = "query" in selection ? selection.query : undefined
      const created = yield* stored.create({
        idempotencyKey,
        fingerprint: CanonicalJson.sha256("query" in selection ? { query, reason, by } : { ...selection, reason, by }),
        fields: fieldsOf({ query, reason, by, total, truncated, askedBefore, at, millis }),
        ids,
        list: total === 0 ? undefined : "running"
      })
      if (created._tag === "OtherRequest") return yield* new CancellationRefused({ reason: "other_request" })
      if (created._tag === "TooMany") return yield* new CancellationRefused({ reason: "too_many" })
      const job = yield* readJob(created.id)
      if (job === undefined)
        return yield* Effect.die(new Error(`The job ${created.id} disappeared right after it was created`))
      return { job, existing: created._tag === "Existing" }
    }),
    get: Effect.fn("Cancellations.get")(readJob),
    problems: Effect.fn("Cancellations.problems")(function* (id) {
      if (!StoredJobs.isJobId(id)) return []
      const reply = yield* redis.command("LRANGE", `${keyOf(id)}:problems`, 0, maxProblems - 1)
      return texts(reply).map((text) => Schema.decodeSync(ProblemText)(text))
    }),
    list: Effect.fn("Cancellations.list")((page) => stored.list(page, jobOf)),
    stop: Effect.fn("Cancellations.stop")(function* (id, reason = "") {
      if (!StoredJobs.isJobId(id)) return "ended"
      const [at, millis] = [yield* StoredJobs.now, yield* Clock.currentTimeMillis]
      return yield* redis.run(Scripts.stop, keys, [id, at, millis, reason])
    }),
    withdraw: Effect.fn("Cancellations.withdraw")(function* (id) {
      if (!StoredJobs.isJobId(id)) return "nothing_left"
      return yield* redis.run(Scripts.withdraw, keys, [id, yield* StoredJobs.now, yield* Clock.currentTimeMillis])
    }),
    running: stored.idsIn("running"),
    take: stored.take,
    next: Effect.fnUntraced(function* (id, count) {
      const names = ["position", "reason", "by", "started_ms", "asked_ms", "stopped_at", "withdrawn_at"]
      const [position, reason, by, startedMs, askedMs, stoppedAt, withdrawnAt] = items(
        yield* redis.command("HMGET", keyOf(id), ...names)
      )
      const from = Number(position)
      const taskIds =
        stoppedAt === null ? texts(yield* redis.command("LRANGE", `${keyOf(id)}:ids`, from, from + count - 1)) : []
      return {
        position: from,
        taskIds,
        reason: String(reason ?? ""),
        by: typeof by === "string" && by !== "" ? by : null,
        startedAt: Number(startedMs),
        askedAt: askedMs === null ? undefined : Number(askedMs),
        isWithdrawn: withdrawnAt !== null
      }
    }),
    asked: Effect.fnUntraced(function* (id, worker, { outcomes, position, size, stop = "" }) {
      const count = (wanted: TaskOutcome["outcome"]) => outcomes.filter(({ outcome }) => outcome === wanted).length
      const open = outcomes.flatMap(({ outcome, taskId }) => (outcome === "requested" ? [taskId] : []))
      const [at, millis] = [yield* StoredJobs.now, yield* Clock.currentTimeMillis]
      return yield* redis.run(Scripts.asked, keys, [
        ...[id, worker, position, position + size, at, millis, stop],
        ...[count("cancelled"), count("ended"), count("failed"), maxProblems, open.length],
        ...open,
        ...outcomes.map(problemOf).filter((problem) => problem !== "")
      ])
    }),
    open: Effect.fnUntraced(function* (id, after, count) {
      const found = texts(
        yield* redis.command("ZRANGEBYSCORE", `${keyOf(id)}:open`, `(${after}`, "+inf", "WITHSCORES", "LIMIT", 0, count)
      )
      return found.flatMap((taskId, at) => (at % 2 === 0 ? [{ taskId, place: Number(found[at + 1]) }] : []))
    }),
    answered: Effect.fnUntraced(function* (id, worker, outcomes, isOver) {
      const answers = outcomes.flatMap((one) => [one.taskId, one.outcome, problemOf(one)])
      const before = [id, worker, yield* StoredJobs.now, maxProblems, isOver ? 1 : 0]
      return yield* redis.run(Scripts.answered, keys, [...before, ...answers])
    })
  })
})

const ProblemText = Schema.fromJsonString(CancellationProblem)

const problemOf = ({ problem, taskId }: TaskOutcome): string =>
  problem === undefined ? "" : Schema.encodeSync(ProblemText)({ task_id: taskId, detail: problem })

const settingsErrorOf = (options: Options): SettingsError | undefined => {
  const issues = new ValidationIssues()
  issues.checkInteger("maxJobs", options.maxJobs, 1, 100_000)
  issues.checkInteger("maxRunning", options.maxRunning, 1, 1_000)
  issues.checkInteger("maxTasks", options.maxTasks, 1, 100_000)
  return issues.mistakes.length > 0 ? SettingsError.of("Cancellations", issues.mistakes) : undefined
}

/** Stores the jobs in Redis. */
export const layer = (
  options: Options = {}
): Layer.Layer<Cancellations, SettingsError, Redis | TaskIndex | TaskCancellation> =>
  Layer.effect(
    Cancellations,
    Effect.suspend(() => settingsErrorOf(options) ?? make(options))
  )
