import { Schema } from "effect"
import type { ReplaySelection } from "../dead-letters/Selection.ts"
import { planOf, ReplayPlan, ReplayStep, stepsOf } from "./ReplayPlan.ts"

/** A record that was not replayed, or whose outcome is unknown. */
export const Problem = Schema.Struct({
  dlq_id: Schema.String,
  outcome: Schema.Literals(["skipped", "failed", "unknown"]),
  detail: Schema.String
})
export type Problem = typeof Problem.Type

/** The current state of a replay of many records. */
export const ReplayJob = Schema.Struct({
  replay_id: Schema.String,
  /** Only a job with a plan can be `paused`. */
  state: Schema.Literals(["running", "paused", "finished", "cancelled"]),
  force: Schema.Boolean,
  filter: Schema.NullOr(Schema.Record(Schema.String, Schema.NullOr(Schema.String))),
  total: Schema.Int,
  /** True if more records matched than one job may have. Another job with the same filter replays the rest. */
  truncated: Schema.Boolean,
  replayed: Schema.Int,
  /** The number of records that this job did not replay, for example because they were deleted or already replayed. */
  skipped: Schema.Int,
  failed: Schema.Int,
  /** The number of records whose state is now `replay_unknown`. Only `force` replays them again. */
  unknown: Schema.Int,
  remaining: Schema.Int,
  /** The reason why the job makes no progress at the moment, or `null` if it makes progress. */
  waiting: Schema.NullOr(Schema.String),
  started_at: Schema.String,
  updated_at: Schema.String,
  /** Missing if the job replays its records all at once. */
  plan: Schema.optionalKey(ReplayPlan),
  steps: Schema.optionalKey(Schema.Array(ReplayStep)),
  /** The latest pause, while it lasts. `by` is `stop_after` or `failed_step` if the job has paused itself. */
  paused: Schema.optionalKey(
    Schema.Struct({ at: Schema.String, by: Schema.NullOr(Schema.String), reason: Schema.String })
  )
})
export type ReplayJob = typeof ReplayJob.Type

/** The fields of a job without a plan, as it begins. */
export const fieldsOf = (job: {
  readonly selection: ReplaySelection
  readonly force: boolean
  readonly total: number
  readonly truncated: boolean
  readonly at: string
}): Readonly<Record<string, string | number>> => ({
  state: job.total === 0 ? "finished" : "running",
  force: job.force ? 1 : 0,
  filter: "filter" in job.selection ? JSON.stringify(job.selection.filter) : "",
  total: job.total,
  truncated: job.truncated ? 1 : 0,
  replayed: 0,
  skipped: 0,
  failed: 0,
  unknown: 0,
  position: 0,
  started_at: job.at,
  updated_at: job.at
})

/** Decodes the hash of a job in Redis. Returns `undefined` if there is none. */
export const jobOf = (replay_id: string, job: Readonly<Record<string, string>>): ReplayJob | undefined => {
  const { filter, paused_at: pausedAt, state } = job
  if (state === undefined) return undefined
  const plan = planOf(job)
  const isPaused = pausedAt !== undefined && state === "running"
  return Schema.decodeUnknownSync(ReplayJob)({
    replay_id,
    state: isPaused ? "paused" : state,
    force: job["force"] === "1",
    filter: filter === "" || filter === undefined ? null : JSON.parse(filter),
    total: Number(job["total"]),
    truncated: job["truncated"] === "1",
    replayed: Number(job["replayed"]),
    skipped: Number(job["skipped"]),
    failed: Number(job["failed"]),
    unknown: Number(job["unknown"]),
    remaining: Number(job["total"]) - Number(job["position"]),
    waiting: job["waiting"] ?? null,
    started_at: job["started_at"],
    updated_at: job["updated_at"],
    ...(plan !== undefined && { plan, steps: stepsOf(job) }),
    ...(isPaused && { paused: { at: pausedAt, by: job["paused_by"] || null, reason: job["paused_reason"] ?? "" } })
  })
}
