import { Clock, Context, Effect, Layer, Schema } from "effect"
import * as CanonicalJson from "../../messaging/envelope/CanonicalJson.ts"
import { SettingsError } from "../../messaging/envelope/Errors.ts"
import type { DeadLetterRecord } from "../../messaging/failure/DeadLetter.ts"
import { ValidationIssues } from "../../messaging/topology/Parameters.ts"
import { Redis, type RedisError } from "../../services/Redis.ts"
import { items, texts } from "../dead-letters/DeadLetterIndex.ts"
import { DeadLetterFilter, DeadLetterStore, type UnknownCursor } from "../dead-letters/DeadLetterStore.ts"
import { baseOf } from "../dead-letters/RedisDLQStore.ts"
import { idsOf, type ReplaySelection, Selection, stateOf } from "../dead-letters/Selection.ts"
import * as StoredJobs from "../jobs/StoredJobs.ts"
import { isJobId, now } from "../jobs/StoredJobs.ts"
import { fieldsOf, jobOf, Problem, ReplayJob } from "./ReplayJob.ts"
import * as Scripts from "./ReplayJobScripts.ts"
import * as ReplayPlan from "./ReplayPlan.ts"
import * as PlanScripts from "./ReplayPlanScripts.ts"

export { Problem, ReplayJob, type ReplaySelection, Selection }

/** `other_request`: the idempotency key belongs to a different request. `too_many`: `maxRunning` jobs are running. */
export class ReplayJobRefused extends Schema.TaggedError<ReplayJobRefused>()("ReplayJobRefused", {
  reason: Schema.Literals(["other_request", "too_many"])
}) {}

export interface Options {
  /** The prefix of the Redis keys. It must be the prefix of the dead-letter store. Default: `svc`. */
  readonly prefix?: string | undefined
  /** The maximum number of stored jobs. The oldest jobs that are not running are deleted first. Default: 1,000. */
  readonly maxJobs?: number
  /** The maximum number of running jobs. Default: 100. */
  readonly maxRunning?: number
  /** The maximum number of records of one job. Default: 10,000. So many ids fit into a request of 1 MiB. */
  readonly maxIds?: number
}

/** The outcomes of a batch of records. */
export interface Progress {
  readonly replayed: number
  readonly skipped: number
  readonly failed: number
  readonly unknown: number
  readonly problems: ReadonlyArray<Problem>
  /** The ids of a batch that was interrupted: first those with an outcome, then those that are still to be replayed. */
  readonly interrupted?: ReadonlyArray<string> | undefined
}

/** Jobs that replay many records. If the worker process of a job stops, another worker continues the job. */
export class ReplayJobs extends Context.Service<
  ReplayJobs,
  {
    readonly maxIds: number

    /** Creates a job, or returns the job that was created with the same `idempotencyKey` in the last 24 hours. */
    readonly create: (request: {
      readonly selection: ReplaySelection
      readonly force: boolean
      /** Replays the records in steps. Default: all at once. */
      readonly plan?: ReplayPlan.ReplayPlan | undefined
      readonly idempotencyKey?: string
    }) => Effect.Effect<{ readonly job: ReplayJob; readonly existing: boolean }, RedisError | ReplayJobRefused>

    readonly get: (id: string) => Effect.Effect<ReplayJob | undefined, RedisError>

    /** Returns the records of a job that were not replayed, at most 1,000. */
    readonly problems: (id: string) => Effect.Effect<ReadonlyArray<Problem>, RedisError>

    /** Lists jobs, newest first. */
    readonly list: (page: {
      readonly limit: number
      readonly cursor?: string
    }) => Effect.Effect<
      { readonly items: ReadonlyArray<ReplayJob>; readonly next_cursor: string | null },
      RedisError | UnknownCursor
    >

    /** Cancels a job and returns its state. Publishes that are in progress are not cancelled. */
    readonly cancel: (id: string) => Effect.Effect<ReplayJob | undefined, RedisError>

    /** Pauses a job with a plan. Returns false if the job has no plan, is paused already or has ended. */
    readonly pause: (
      id: string,
      why: { readonly reason: string; readonly by: string | null }
    ) => Effect.Effect<boolean, RedisError>

    /** Continues a paused job. Failures before are forgotten. Returns false if the job is not paused. */
    readonly resume: (id: string) => Effect.Effect<boolean, RedisError>

    /** The ids of the running jobs: without a plan, and with one. */
    readonly running: Effect.Effect<ReadonlyArray<string>, RedisError>
    readonly staged: Effect.Effect<ReadonlyArray<string>, RedisError>

    /** Takes or renews the lease of a job. Returns false if another worker has the lease or the job has ended. */
    readonly take: (id: string, worker: string, leaseMs: number) => Effect.Effect<boolean, RedisError>

    /** Returns the next ids of a job and the position of the first one. A job with a plan has none beyond its step. */
    readonly next: (
      id: string,
      count: number
    ) => Effect.Effect<
      {
        readonly position: number
        readonly force: boolean
        /** The state that the records must have. `undefined` if the job was created with ids. */
        readonly state: DeadLetterRecord["state"] | undefined
        readonly ids: ReadonlyArray<string>
        /** The step of the job, and its records per second. `undefined` without a plan. */
        readonly step: number | undefined
        readonly rate: number | undefined
        /** In milliseconds since 1970. `undefined` if the job may begin at once. */
        readonly beginsAt: number | undefined
      },
      RedisError
    >

    /** Begins the next step, if the outcomes of this one are known or its time is over. The last step ends the job. */
    readonly nextStep: (id: string, worker: string) => Effect.Effect<PlanScripts.StepResult, RedisError>

    /** Counts a batch. The next one begins after the records that have an outcome. */
    readonly advance: (
      id: string,
      worker: string,
      position: number,
      progress: Progress
    ) => Effect.Effect<"running" | "over" | "lost", RedisError>

    readonly wait: (id: string, worker: string, why: string) => Effect.Effect<void, RedisError>
  }
>()("svc/ReplayJobs") {}

const maxProblems = 1_000

const make = Effect.fnUntraced(function* (options: Options) {
  const redis = yield* Redis
  const store = yield* DeadLetterStore
  const { maxIds = 10_000, maxJobs = 1_000, maxRunning = 100 } = options
  const base = baseOf(redis, options.prefix)
  const stored = StoredJobs.make(redis, { base, kind: Scripts.kind, maxJobs, maxRunning })
  const { keyOf: jobKey, keys } = stored
  const readJob = (id: string) => Effect.map(stored.fields(id), (fields) => jobOf(id, fields))

  return ReplayJobs.of({
    maxIds,
    create: Effect.fn("ReplayJobs.create")(function* ({ force, idempotencyKey, plan, selection }) {
      const { ids, truncated } = yield* Effect.provideService(idsOf(selection, maxIds), DeadLetterStore, store)
      const at = yield* now
      const total = ids.length
      const list = plan === undefined ? "running" : plan.begin_at === undefined ? "staged" : "timed"
      const created = yield* stored.create({
        idempotencyKey,
        fingerprint: CanonicalJson.sha256({ selection, force, ...(plan !== undefined && { plan }) }),
        fields: {
          ...fieldsOf({ selection, force, total, truncated, at }),
          ...(plan !== undefined && ReplayPlan.fieldsOf(plan, total, at))
        },
        ids,
        list: total === 0 ? undefined : list
      })
      if (created._tag === "OtherRequest") return yield* new ReplayJobRefused({ reason: "other_request" })
      if (created._tag === "TooMany") return yield* new ReplayJobRefused({ reason: "too_many" })
      const job = yield* readJob(created.id)
      if (job === undefined)
        return yield* Effect.die(new Error(`The job ${created.id} disappeared right after it was created`))
      return { job, existing: created._tag === "Existing" }
    }),
    get: Effect.fn("ReplayJobs.get")(readJob),
    problems: Effect.fn("ReplayJobs.problems")(function* (id) {
      if (!isJobId(id)) return []
      const reply = yield* redis.command("LRANGE", `${jobKey(id)}:problems`, 0, maxProblems - 1)
      return texts(reply).map((text) => Schema.decodeSync(ProblemText)(text))
    }),
    list: Effect.fn("ReplayJobs.list")((page) => stored.list(page, jobOf)),
    cancel: Effect.fn("ReplayJobs.cancel")(function* (id) {
      if (!isJobId(id)) return undefined
      yield* redis.run(Scripts.cancel, keys, [id, yield* now])
      return yield* readJob(id)
    }),
    pause: Effect.fn("ReplayJobs.pause")(function* (id, { by, reason }) {
      return isJobId(id) && (yield* redis.run(PlanScripts.pause, keys, [id, yield* now, by ?? "", reason]))
    }),
    resume: Effect.fn("ReplayJobs.resume")(function* (id) {
      return isJobId(id) && (yield* redis.run(PlanScripts.resume, keys, [id, yield* now]))
    }),
    running: stored.idsIn("running"),
    staged: Effect.zipWith(stored.idsIn("staged"), stored.idsIn("timed"), (staged, timed) => [...staged, ...timed]),
    take: stored.take,
    next: Effect.fnUntraced(function* (id, count) {
      const names = ["position", "force", "filter", "plan", "step", "step_end", "paused_at"]
      const [position, force, filter, plan, step, end, pausedAt] = items(
        yield* redis.command("HMGET", jobKey(id), ...names)
      )
      const from = Number(position)
      const { begin_at, rate: planned = null } =
        (typeof plan === "string" ? ReplayPlan.planOf({ plan }) : undefined) ?? {}
      const rate = planned ?? undefined
      const beginsAt = begin_at === undefined ? undefined : Date.parse(begin_at)
      const most = typeof step === "string" ? Math.min(batchOf(count, rate), Number(end) - from) : count
      const ids =
        most > 0 && pausedAt === null
          ? texts(yield* redis.command("LRANGE", `${jobKey(id)}:ids`, from, from + most - 1))
          : []
      const state = typeof filter === "string" && filter !== "" ? stateOf(decodeFilter(filter)) : undefined
      const current = step === null ? undefined : Number(step)
      return { position: from, force: force === "1", state, ids, rate, step: current, beginsAt }
    }),
    nextStep: Effect.fnUntraced(function* (id, worker) {
      const millis = yield* Clock.currentTimeMillis
      return yield* redis.run(PlanScripts.nextStep, keys, [id, worker, millis, yield* now])
    }),
    advance: Effect.fnUntraced(function* (id, worker, position, progress) {
      const { failed, interrupted = [], problems, replayed, skipped, unknown } = progress
      const done = replayed + skipped + failed + unknown
      const counts = [replayed, skipped, failed, unknown]
      const encodedProblems = problems.map((problem) => Schema.encodeSync(ProblemText)(problem))
      const millis = yield* Clock.currentTimeMillis
      const times = [yield* now, millis]
      const before = [id, worker, position, position + done, ...counts, ...times, maxProblems]
      const args = [...before, interrupted.length, ...interrupted, ...encodedProblems]
      return yield* redis.run(Scripts.advance, keys, args)
    }),
    wait: (id, worker, why) => Effect.asVoid(redis.run(Scripts.wait, keys, [id, worker, why]))
  })
})

const settingsErrorOf = (options: Options): SettingsError | undefined => {
  const issues = new ValidationIssues()
  issues.checkInteger("maxJobs", options.maxJobs, 1, 100_000)
  issues.checkInteger("maxRunning", options.maxRunning, 1, 1_000)
  issues.checkInteger("maxIds", options.maxIds, 1, 100_000)
  return issues.mistakes.length > 0 ? SettingsError.of("ReplayJobs", issues.mistakes) : undefined
}

/** Stores replay jobs in Redis, under the prefix of the dead letters. */
export const layer = (options: Options = {}): Layer.Layer<ReplayJobs, SettingsError, Redis | DeadLetterStore> =>
  Layer.effect(
    ReplayJobs,
    Effect.suspend(() => settingsErrorOf(options) ?? make(options))
  )

/** A batch takes at most half a second, so that a pause and the rule to stop take effect soon. */
const batchOf = (count: number, rate: number | undefined): number =>
  rate === undefined ? count : Math.max(1, Math.min(count, Math.floor(rate / 2)))

const decodeFilter = Schema.decodeSync(Schema.fromJsonString(DeadLetterFilter))

const ProblemText = Schema.fromJsonString(Problem)
