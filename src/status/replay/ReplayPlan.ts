import { Schema } from "effect"

/** How a job replays its records in steps. A step begins when it is known what became of the step before. */
export const ReplayPlan = Schema.Struct({
  /** The numbers of records of the steps. The rest is the last step. */
  steps: Schema.Array(Schema.Int),
  /** The maximum number of records per second. `null`: as many as the worker allows. */
  rate: Schema.NullOr(Schema.Finite),
  /** The job is paused after so many failures with the same exception. `null`: never. */
  stop_after: Schema.NullOr(Schema.Int),
  /** The next step begins after this time also if the outcome of some records is not known. */
  wait_seconds: Schema.Int,
  /** The first step begins at this time, or at once. */
  begin_at: Schema.optionalKey(Schema.String)
})
export type ReplayPlan = typeof ReplayPlan.Type

export const defaults: ReplayPlan = { steps: [1, 10, 100], rate: null, stop_after: 3, wait_seconds: 300 }

export const maxSteps = 20

const N = Schema.NullOr(Schema.String)

/**
 * - `not_begun`, `publishing`, `following`: what the job does with the step.
 * - `handled`: every replayed record was handled. `failed_again`: at least one was not.
 * - `open`: the step is over, and the outcome of some records is not known.
 */
export const StepVerdict = Schema.Literals(["not_begun", "publishing", "following", "handled", "failed_again", "open"])
export type StepVerdict = typeof StepVerdict.Type

/** The progress of a step. */
export const ReplayStep = Schema.Struct({
  step: Schema.Int,
  size: Schema.Int,
  verdict: StepVerdict,
  /** The number of published messages. */
  replayed: Schema.Int,
  handled: Schema.Int,
  failed_again: Schema.Int,
  /** The number of published messages whose outcome is not known. */
  open: Schema.Int,
  /** The number of records that were not published, or of which that is not known. */
  not_replayed: Schema.Int,
  began_at: N,
  published_at: N
})
export type ReplayStep = typeof ReplayStep.Type

/** Returns the positions at which the steps end. */
export const endsOf = ({ steps }: ReplayPlan, total: number): ReadonlyArray<number> => {
  const ends: Array<number> = []
  for (const size of steps) {
    const end = (ends.at(-1) ?? 0) + size
    if (end >= total) break
    ends.push(end)
  }
  return [...ends, total]
}

/** Returns the fields of a job with a plan, as it begins. */
export const fieldsOf = (plan: ReplayPlan, total: number, at: string): Readonly<Record<string, string | number>> => {
  const ends = endsOf(plan, total)
  return {
    plan: Schema.encodeSync(PlanText)(plan),
    ends: ends.join(","),
    step: 1,
    step_end: ends[0] ?? 0,
    wait_ms: plan.wait_seconds * 1_000,
    "s1:began_at": plan.begin_at !== undefined && Date.parse(plan.begin_at) > Date.parse(at) ? plan.begin_at : at,
    ...(plan.stop_after !== null && { stop_after: plan.stop_after })
  }
}

const PlanText = Schema.fromJsonString(ReplayPlan)

const decodePlan = Schema.decodeSync(PlanText)

type JobHash = Readonly<Record<string, string>>

export const planOf = ({ plan }: JobHash): ReplayPlan | undefined => (plan === undefined ? undefined : decodePlan(plan))

export const stepsOf = (job: JobHash): ReadonlyArray<ReplayStep> => {
  const ends = (job["ends"] ?? "").split(",").map(Number)
  return ends.map((end, i) => {
    const step = i + 1
    const count = (name: string) => Number(job[`s${step}:${name}`] ?? 0)
    const [replayed, handled, failed_again] = [count("replayed"), count("handled"), count("failed_again")]
    const known = {
      replayed,
      handled,
      failed_again,
      // A worker may know what became of a message before the job has counted it.
      open: Math.max(0, replayed - handled - failed_again)
    }
    return {
      step,
      size: end - (ends[i - 1] ?? 0),
      verdict: verdictOf(job, step, known),
      ...known,
      not_replayed: count("not_replayed"),
      began_at: job[`s${step}:began_at`] ?? null,
      published_at: job[`s${step}:published_at`] ?? null
    }
  })
}

const verdictOf = (
  job: JobHash,
  step: number,
  { failed_again, open }: Pick<ReplayStep, "failed_again" | "open">
): StepVerdict => {
  if (step > Number(job["step"]) || isEarly(job)) return "not_begun"
  if (job[`s${step}:published_at`] === undefined) return "publishing"
  const isCurrent = step === Number(job["step"]) && job["state"] === "running"
  if (open > 0) return isCurrent ? "following" : "open"
  return failed_again > 0 ? "failed_again" : "handled"
}

/** Before its time, nothing changes a job that waits for it. */
const isEarly = (job: JobHash): boolean =>
  job["position"] === "0" && Date.parse(job["updated_at"] ?? "") < Date.parse(job["s1:began_at"] ?? "")
