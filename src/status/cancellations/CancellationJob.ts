import { Schema } from "effect"

/** A task that could not be cancelled. */
export const CancellationProblem = Schema.Struct({ task_id: Schema.String, detail: Schema.String })
export type CancellationProblem = typeof CancellationProblem.Type

/** The parameters of a search, as `GET /tasks` has them. */
export const TaskQuery = Schema.Record(Schema.String, Schema.String)
export type TaskQuery = typeof TaskQuery.Type

/** The current state of a cancellation of many tasks. */
export const CancellationJob = Schema.Struct({
  cancellation_id: Schema.String,
  /**
   * - `running`: workers are asked to cancel one task after the other.
   * - `following`: all were asked, or it was stopped. Answers are still counted.
   * - `finished`, `stopped`: nothing is counted any more.
   */
  state: Schema.Literals(["running", "following", "finished", "stopped"]),
  reason: Schema.String,
  by: Schema.NullOr(Schema.String),
  /** `null` if the tasks were named by their ids. */
  query: Schema.NullOr(TaskQuery),
  total: Schema.Int,
  /** True if more tasks match, or may match, than one job may have. Another job with the same query cancels the rest. */
  truncated: Schema.Boolean,
  /** The number of matching tasks that were left out, because somebody had asked to cancel them before. */
  asked_before: Schema.Int,
  cancelled: Schema.Int,
  /** The number of tasks that were asked for, and whose worker has not answered. */
  requested: Schema.Int,
  /** The number of tasks that had ended when their turn came, or ended in another way after they were asked for. */
  ended: Schema.Int,
  /** The number of tasks whose request was withdrawn before a worker answered. */
  withdrawn: Schema.Int,
  failed: Schema.Int,
  /** The number of tasks that were not asked for yet. A stopped job never asks for them. */
  remaining: Schema.Int,
  /** `reason` is `null` if a person stopped it. */
  stopped: Schema.NullOr(Schema.Struct({ at: Schema.String, reason: Schema.NullOr(Schema.String) })),
  /** The time at which a person withdrew the requests that had no effect yet. */
  withdrawn_at: Schema.NullOr(Schema.String),
  started_at: Schema.String,
  updated_at: Schema.String,
  /** `null` while answers are counted. */
  ended_at: Schema.NullOr(Schema.String)
})
export type CancellationJob = typeof CancellationJob.Type

/** The fields of a job as it begins. */
export const fieldsOf = (job: {
  readonly query: TaskQuery | undefined
  readonly reason: string
  readonly by: string | null
  readonly total: number
  readonly truncated: boolean
  readonly askedBefore: number
  readonly at: string
  readonly millis: number
}): Readonly<Record<string, string | number>> => ({
  state: job.total === 0 ? "finished" : "running",
  reason: job.reason,
  by: job.by ?? "",
  query: job.query === undefined ? "" : JSON.stringify(job.query),
  total: job.total,
  truncated: job.truncated ? 1 : 0,
  asked_before: job.askedBefore,
  cancelled: 0,
  requested: 0,
  ended: 0,
  withdrawn: 0,
  failed: 0,
  position: 0,
  started_at: job.at,
  started_ms: job.millis,
  updated_at: job.at,
  ...(job.total === 0 && { ended_at: job.at })
})

/** Decodes the hash of a job in Redis. Returns `undefined` if there is none. */
export const jobOf = (cancellation_id: string, job: Readonly<Record<string, string>>): CancellationJob | undefined => {
  const { ended_at = null, query = "", state, stop_reason, stopped_at, withdrawn_at = null } = job
  if (state === undefined) return undefined
  // a job of an earlier version counts no withdrawals
  const [total = 0, cancelled = 0, requested = 0, ended = 0, withdrawn = 0, failed = 0] = counts.map((name) =>
    Number(job[name] ?? 0)
  )
  const isStopped = stopped_at !== undefined
  const isAsking = !isStopped && Number(job["position"]) < total
  return Schema.decodeUnknownSync(CancellationJob)({
    cancellation_id,
    state: state === "running" ? (isAsking ? "running" : "following") : isStopped ? "stopped" : "finished",
    reason: job["reason"],
    by: job["by"] || null,
    query: query === "" ? null : JSON.parse(query),
    total,
    truncated: job["truncated"] === "1",
    asked_before: Number(job["asked_before"]),
    cancelled,
    requested,
    ended,
    withdrawn,
    failed,
    remaining: total - cancelled - requested - ended - withdrawn - failed,
    stopped: isStopped ? { at: stopped_at, reason: stop_reason || null } : null,
    withdrawn_at,
    started_at: job["started_at"],
    updated_at: job["updated_at"],
    ended_at
  })
}

const counts = ["total", "cancelled", "requested", "ended", "withdrawn", "failed"]
