import { Clock, Effect, Result } from "effect"
import { HttpServerRequest } from "effect/http"
import type * as BodyMemory from "../../http/BodyMemory.ts"
import type { ContractAliasConfig } from "../../messaging/topology/Aliases.ts"
import { idsOf } from "../dead-letters/Selection.ts"
import type { ReplayJob, ReplayJobs } from "../replay/ReplayJobs.ts"
import * as ReplayPlan from "../replay/ReplayPlan.ts"
import * as Parameters from "./DeadLetterParameters.ts"
import {
  bodyText,
  failWith,
  maxBody,
  ok,
  operationReason,
  orInvalid,
  parameter,
  parseOrUndefined,
  withTaskAlias
} from "./DeadLetterResponses.ts"
import * as RequestParameters from "./RequestParameters.ts"

type Jobs = ReplayJobs["Service"]

export const start = (
  jobs: Jobs,
  aliases: ContractAliasConfig,
  { withReservation }: BodyMemory.BodyMemory["Service"]
) => withReservation(Number(maxBody))(create(jobs, aliases))

/** Says how many records a request would replay. Nothing is replayed or stored. */
export const check = (
  jobs: Jobs,
  aliases: ContractAliasConfig,
  { withReservation }: BodyMemory.BodyMemory["Service"]
) =>
  withReservation(Number(maxBody))(
    Effect.gen(function* () {
      const { selection } = yield* requested(jobs, aliases)
      const { ids, truncated } = yield* idsOf(selection, jobs.maxIds)
      return ok({ total: ids.length, truncated })
    })
  )

const requested = Effect.fnUntraced(function* (jobs: Jobs, aliases: ContractAliasConfig) {
  const body = parseOrUndefined(yield* bodyText(maxBody))
  return yield* orInvalid(Parameters.replayRequest(body, jobs.maxIds, aliases, yield* Clock.currentTimeMillis))
})

const create = Effect.fnUntraced(function* (jobs: Jobs, aliases: ContractAliasConfig) {
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const idempotencyKey = headers["idempotency-key"]
  if (idempotencyKey !== undefined && (idempotencyKey === "" || idempotencyKey.length > 255)) {
    return yield* orInvalid(Result.fail([{ loc: ["header", "Idempotency-Key"], msg: "must have 1 to 255 characters" }]))
  }
  const request = yield* requested(jobs, aliases)
  const created = yield* jobs.create({ ...request, ...(idempotencyKey !== undefined && { idempotencyKey }) })
  return ok(jobBody(aliases, created.job), created.existing ? 200 : 202)
})

export const list = Effect.fnUntraced(function* (jobs: Jobs, aliases: ContractAliasConfig) {
  const { items, next_cursor } = yield* jobs.list(yield* orInvalid(Parameters.page(yield* RequestParameters.query)))
  return ok({
    replays: items.map((job) => jobBody(aliases, job)),
    next_cursor,
    plan_defaults: ReplayPlan.defaults
  })
})

export const detail = Effect.fnUntraced(function* (jobs: Jobs, aliases: ContractAliasConfig) {
  const id = yield* parameter("replay_id")
  const found = yield* jobs.get(id)
  if (found === undefined) return yield* failWith(404, `There is no replay job ${id}.`)
  return ok({ ...jobBody(aliases, found), problems: yield* jobs.problems(id) })
})

export const cancel = Effect.fnUntraced(function* (jobs: Jobs, aliases: ContractAliasConfig) {
  const id = yield* parameter("replay_id")
  const found = yield* jobs.cancel(id)
  if (found === undefined) return yield* failWith(404, `There is no replay job ${id}.`)
  if (found.state === "finished")
    return yield* failWith(409, `The replay job ${id} has finished already, so it cannot be cancelled.`)
  return ok(jobBody(aliases, found))
})

/** Pauses a job with a plan, for the reason in the body. */
export const pause = Effect.fnUntraced(function* (jobs: Jobs, aliases: ContractAliasConfig) {
  const id = yield* parameter("replay_id")
  const why = yield* operationReason
  const isPaused = yield* jobs.pause(id, why)
  const found = yield* jobs.get(id)
  if (found === undefined) return yield* failWith(404, `There is no replay job ${id}.`)
  if (isPaused) return ok(jobBody(aliases, found))
  return yield* failWith(409, whyNotPaused(found))
})

const whyNotPaused = ({ plan, replay_id: id, state }: ReplayJob): string => {
  if (state === "paused") return `The replay job ${id} is paused already.`
  if (state !== "running") return `The replay job ${id} is ${state}, so it cannot be paused.`
  return plan === undefined
    ? `The replay job ${id} has no plan, so it cannot be paused. Cancel it, and start another one for the rest.`
    : `The replay job ${id} was resumed meanwhile.`
}

export const resume = Effect.fnUntraced(function* (jobs: Jobs, aliases: ContractAliasConfig) {
  const id = yield* parameter("replay_id")
  const isResumed = yield* jobs.resume(id)
  const found = yield* jobs.get(id)
  if (found === undefined) return yield* failWith(404, `There is no replay job ${id}.`)
  if (!isResumed) return yield* failWith(409, `The replay job ${id} is ${found.state}, so it cannot be resumed.`)
  return ok(jobBody(aliases, found))
})

const jobBody = (aliases: ContractAliasConfig, job: ReplayJob) => ({
  ...job,
  filter: job.filter === null ? null : withTaskAlias(aliases, job.filter)
})
