import { Result, Schema } from "effect"
import { isJsonObject } from "../../messaging/envelope/Envelope.ts"
import { DeadLetterRecord } from "../../messaging/failure/DeadLetter.ts"
import type { ContractAliasConfig } from "../../messaging/topology/Aliases.ts"
import { DeadLetterFilter, type PageOptions } from "../dead-letters/DeadLetterStore.ts"
import type { ReplaySelection, Selection } from "../dead-letters/Selection.ts"
import type { Edit } from "../replay/LetterEdit.ts"
import * as ReplayPlan from "../replay/ReplayPlan.ts"
import type { InvalidParameter } from "./ErrorBody.ts"
import * as OperationBody from "./OperationBody.ts"

type Decoded<A> = Result.Result<A, ReadonlyArray<InvalidParameter>>

const maxLimit = 200
const defaultLimit = 50

const maxTextLength = 1_024

/** Does not ignore an empty cursor. A client that follows an empty cursor would read the first page for ever. */
export const page = (query: URLSearchParams): Decoded<PageOptions> => {
  const cursor = query.get("cursor")
  const limit = query.get("limit")
  const number = limit === null ? defaultLimit : /^\d{1,9}$/.test(limit) ? Number(limit) : 0
  if (number < 1 || number > maxLimit) {
    return invalid("query", "limit", `must be an integer from 1 to ${maxLimit}`)
  }
  return Result.succeed({ limit: number, ...(cursor !== null && { cursor }) })
}

/**
 * Reads a filter from a query string. Ignores empty values, because HTML forms send every field. An empty
 * `exception_type` can therefore not mean that there is none: `has_exception=false` does.
 */
export const filter = (query: URLSearchParams, aliases: ContractAliasConfig): Decoded<DeadLetterFilter> => {
  const task = aliases.httpName("task_id")
  const given = Object.entries({
    queue_name: query.get("queue_name"),
    task_id: query.get(task),
    reason: query.get("reason"),
    exception_type: query.get("exception_type"),
    source_queue_name: query.get("source_queue_name"),
    state: query.get("state")
  }).filter(([, value]) => value !== null && value !== "")
  const hasException = query.get("has_exception") ?? ""
  const withoutException = hasException === "false"
  const alsoOfType = withoutException && given.some(([field]) => field === "exception_type")
  const problems = [
    ...given.flatMap(([field, value]) =>
      field === "state" ? stateProblem("query", value) : textProblem("query", field === "task_id" ? task : field, value)
    ),
    ...(["", "false"].includes(hasException)
      ? []
      : [problem("query", "has_exception", "must be false: leave it out, or name an exception_type")]),
    ...(alsoOfType ? [problem("query", "has_exception", "must be left out with exception_type")] : [])
  ]
  const fields = { ...Object.fromEntries(given), ...(withoutException && { exception_type: null }) }
  return problems.length > 0 ? Result.fail(problems) : Result.succeed(decodeFilter(fields))
}

export const flag = (query: URLSearchParams, name: string): Decoded<boolean> => {
  const given = query.get(name)?.toLowerCase()
  if (given === undefined || falsy.has(given)) return Result.succeed(false)
  return truthy.has(given) ? Result.succeed(true) : invalid("query", name, "must be true or false")
}

const truthy: ReadonlySet<string> = new Set(["true", "1", "yes", "on"])
const falsy: ReadonlySet<string> = new Set(["false", "0", "no", "off"])

/** Reads the body of a request for a replay job. A filter without `state` selects records that were not replayed. */
export const replayRequest = (
  body: unknown,
  maxIds: number,
  aliases: ContractAliasConfig,
  now: number
): Decoded<{ readonly selection: ReplaySelection; readonly force: boolean; readonly plan?: ReplayPlan.ReplayPlan }> => {
  if (!isObject(body)) return invalid("body", "", "must be a JSON object with ids, filter or task_ids")
  const unknown = Object.keys(body).filter((name) => !["ids", "filter", "task_ids", "force", "plan"].includes(name))
  if (unknown.length > 0) {
    return Result.fail(
      unknown.map((name) => problem("body", name, "is unknown: use ids, filter, task_ids, force or plan"))
    )
  }
  const { filter, force = false, ids, plan, task_ids } = body
  if (typeof force !== "boolean") return invalid("body", "force", "must be true or false")
  const selection =
    task_ids === undefined
      ? selectionOf({ ids, filter }, maxIds, force, aliases)
      : ids === undefined && filter === undefined
        ? Result.map(idsOf(task_ids, maxIds, "task_ids"), (task_ids): ReplaySelection => ({ task_ids }))
        : invalid("body", "task_ids", "must be left out with ids or filter")
  if (plan === undefined) return Result.map(selection, (selection) => ({ selection, force }))
  return Result.flatMap(selection, (selection) => Result.map(planOf(plan, now), (plan) => ({ selection, force, plan })))
}

/** Reads the body of a request that archives many records. A filter without `state` selects records that were not replayed. */
export const archiveRequest = (
  body: unknown,
  maxIds: number,
  aliases: ContractAliasConfig
): Decoded<{ readonly selection: Selection; readonly why: OperationBody.OperationReason }> => {
  if (!isObject(body)) return invalid("body", "", "must be a JSON object with ids or filter, and with a reason")
  const { filter, ids } = body
  return Result.flatMap(OperationBody.of(body, ["ids", "filter"]), (why) =>
    Result.map(selectionOf({ ids, filter }, maxIds, true, aliases), (selection) => ({ selection, why }))
  )
}

/** Reads the body of a request that takes many records out of the archive. */
export const unarchiveRequest = (body: unknown, maxIds: number): Decoded<ReadonlyArray<string>> => {
  if (!isObject(body)) return invalid("body", "", "must be a JSON object with ids")
  const unknown = Object.keys(body).filter((name) => name !== "ids")
  if (unknown.length > 0) return Result.fail(unknown.map((name) => problem("body", name, "is unknown: use ids")))
  return idsOf(body["ids"], maxIds)
}

const selectionOf = (
  { filter, ids }: { readonly filter: unknown; readonly ids: unknown },
  maxIds: number,
  force: boolean,
  aliases: ContractAliasConfig
): Decoded<Selection> => {
  if ((ids === undefined) === (filter === undefined))
    return invalid("body", "ids", "must be given, unless filter is given: a request has exactly one of them")
  return ids !== undefined
    ? Result.map(idsOf(ids, maxIds), (ids) => ({ ids }))
    : Result.map(filterOf(filter, force, aliases), (filter) => ({ filter }))
}

/** Reads a plan. Every member has a default. `steps` may end with `"rest"`, which is the last step in any case. */
const planOf = (given: unknown, now: number): Decoded<ReplayPlan.ReplayPlan> => {
  if (!isObject(given)) return invalid("body", "plan", 'must be an object such as {"steps": [1, 10, 100]}')
  const plan = { ...ReplayPlan.defaults, ...given }
  const steps: unknown =
    Array.isArray(plan.steps) && plan.steps.at(-1) === "rest" ? plan.steps.slice(0, -1) : plan.steps
  const { rate, stop_after, wait_seconds } = plan
  const begin_at = given["begin_at"]
  const isCount = (value: unknown, most: number): value is number =>
    typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= most
  const isRate = (value: unknown): value is number => typeof value === "number" && value >= 0.01 && value <= maxRate
  const areSteps = (value: unknown): value is ReadonlyArray<number> =>
    Array.isArray(value) && value.length <= ReplayPlan.maxSteps && value.every((size) => isCount(size, maxStepSize))
  const problems = [
    ...Object.keys(given)
      .filter((name) => name !== "begin_at" && !Object.hasOwn(ReplayPlan.defaults, name))
      .map((name) =>
        problem("body", `plan.${name}`, "is unknown: use steps, rate, stop_after, wait_seconds or begin_at")
      ),
    ...(areSteps(steps) ? [] : [problem("body", "plan.steps", stepsExpected)]),
    ...(rate === null || isRate(rate)
      ? []
      : [problem("body", "plan.rate", `must be a number from 0.01 to ${maxRate}`)]),
    ...(stop_after === null || isCount(stop_after, maxStepSize)
      ? []
      : [problem("body", "plan.stop_after", `must be an integer from 1 to ${maxStepSize}, or null`)]),
    ...(isCount(wait_seconds, maxWait)
      ? []
      : [problem("body", "plan.wait_seconds", `must be an integer from 1 to ${maxWait}`)]),
    ...(begin_at === undefined || (isTime(begin_at) && Date.parse(begin_at) <= now + maxDelayMs)
      ? []
      : [problem("body", "plan.begin_at", timeExpected)])
  ]
  if (problems.length > 0 || !areSteps(steps)) return Result.fail(problems)
  return Result.succeed({ steps, rate, stop_after, wait_seconds, ...(isTime(begin_at) && { begin_at }) })
}

const maxDelayMs = 30 * 86_400_000
const timeFormat = /^(\d{4}-\d\d-\d\d)T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/

/** `Date.parse` turns the 30th of February into a day of March, so the day is compared with the parsed date. */
const isTime = (value: unknown): value is string => {
  const day = typeof value === "string" ? timeFormat.exec(value)?.[1] : undefined
  return day !== undefined && !Number.isNaN(Date.parse(String(value))) && new Date(day).toISOString().startsWith(day)
}
const timeExpected =
  "must be a date and time with its offset, such as 2026-01-31T04:00:00Z, and at most 30 days from now"

const maxStepSize = 100_000
const maxRate = 10_000
const maxWait = 86_400
const stepsExpected = `must be a list of at most ${ReplayPlan.maxSteps} integers from 1 to ${maxStepSize}, such as [1, 10, 100]`

/** Reads the body of an edit: the new `payload`, or the whole new envelope as `body`. */
export const edit = (given: unknown): Decoded<Edit> => {
  if (!isJsonObject(given)) return invalid("body", "", "must be a JSON object with payload or body")
  const unknown = Object.keys(given).filter((name) => name !== "payload" && name !== "body")
  if (unknown.length > 0) {
    return Result.fail(unknown.map((name) => problem("body", name, "is unknown: use payload or body")))
  }
  const { body, payload } = given
  if ((payload === undefined) === (body === undefined)) {
    return invalid("body", "payload", "must be given, unless body is given: a request has exactly one of them")
  }
  if (payload !== undefined) {
    return isJsonObject(payload) ? Result.succeed({ payload }) : invalid("body", "payload", "must be a JSON object")
  }
  return isJsonObject(body) ? Result.succeed({ body }) : invalid("body", "body", "must be a JSON object")
}

export const queueName = (body: unknown): Decoded<string> => {
  if (!isObject(body)) return invalid("body", "", "must be a JSON object with queue_name")
  const unknown = Object.keys(body).filter((name) => name !== "queue_name")
  if (unknown.length > 0) return Result.fail(unknown.map((name) => problem("body", name, "is unknown: use queue_name")))
  const { queue_name } = body
  return isText(queue_name) ? Result.succeed(queue_name) : Result.fail(textProblem("body", "queue_name", queue_name))
}

const idsOf = (ids: unknown, maxIds: number, name: "ids" | "task_ids" = "ids"): Decoded<ReadonlyArray<string>> =>
  Array.isArray(ids) && ids.length > 0 && ids.length <= maxIds && ids.every(isText)
    ? Result.succeed(ids)
    : invalid(
        "body",
        name,
        `must be a list of 1 to ${maxIds} ${names[name]}: split a longer list into several requests`
      )

const names = { ids: "dlq_ids", task_ids: "ids of tasks" } as const

const filterOf = (given: unknown, force: boolean, aliases: ContractAliasConfig): Decoded<DeadLetterFilter> => {
  if (!isObject(given)) return invalid("body", "filter", "must be an object")
  const task = aliases.fieldName("task_id")
  const entries = Object.entries(given).map(([name, value]) => [name === task ? "task_id" : name, value] as const)
  const problems = entries.flatMap(([field, value]) => {
    const name = `filter.${field === "task_id" ? task : field}`
    if (!Object.hasOwn(DeadLetterFilter.fields, field)) {
      return [problem("body", name, `is unknown: use ${Object.keys(DeadLetterFilter.fields).join(", ")}`)]
    }
    if (field === "state" && (value === "archived" || value === "replaced")) {
      return [
        problem(
          "body",
          name,
          "must be dead_lettered, replay_unknown or replayed: no others can be replayed or archived"
        )
      ]
    }
    if (field === "state") {
      const notOpen = value !== "dead_lettered" && !force
      return notOpen && stateProblem("body", value).length === 0
        ? [
            problem(
              "body",
              name,
              `must be dead_lettered unless force is true: a record in another state may have been published already`
            )
          ]
        : stateProblem("body", value, name)
    }
    return field === "exception_type" && value === null ? [] : textProblem("body", name, value)
  })
  if (problems.length > 0) return Result.fail(problems)
  if (entries.length === 0)
    return invalid("body", "filter", "must have at least one member: an empty filter would select every record")
  return Result.succeed(decodeFilter(Object.fromEntries(entries)))
}

const decodeFilter = Schema.decodeUnknownSync(DeadLetterFilter)

const states = DeadLetterRecord.fields.state.literals

const isState = Schema.is(DeadLetterRecord.fields.state)

const isText = (value: unknown): value is string =>
  typeof value === "string" && value !== "" && value.length <= maxTextLength

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const stateProblem = (where: InvalidParameter["loc"][0], value: unknown, name = "state") =>
  isState(value) ? [] : [problem(where, name, `must be one of ${states.join(", ")}`)]

const textProblem = (where: InvalidParameter["loc"][0], name: string, value: unknown) =>
  isText(value) ? [] : [problem(where, name, `must be a string of 1 to ${maxTextLength} characters`)]

const problem = (where: InvalidParameter["loc"][0], name: string, msg: string): InvalidParameter => ({
  loc: [where, name],
  msg
})

const invalid = (
  where: InvalidParameter["loc"][0],
  name: string,
  msg: string
): Result.Result<never, ReadonlyArray<InvalidParameter>> => Result.fail([problem(where, name, msg)])
