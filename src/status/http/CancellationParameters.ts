import { Result } from "effect"
import { fitsShortString } from "../../messaging/envelope/Envelope.ts"
import type { TaskSelection } from "../cancellations/Cancellations.ts"
import type { InvalidParameter } from "./ErrorBody.ts"
import * as OperationBody from "./OperationBody.ts"
import * as TaskParameters from "./TaskParameters.ts"

type Decoded<A> = Result.Result<A, ReadonlyArray<InvalidParameter>>

/** So many ids fit into a request of 1 MiB, whatever characters they have. */
export const maxTaskIds = 500

/** Reads the body of a request that cancels many tasks: `task_ids` or `query`, with a reason. */
export const request = (
  body: unknown,
  attributes: ReadonlyArray<string>,
  nowMs: number
): Decoded<{ readonly selection: TaskSelection; readonly why: OperationBody.OperationReason }> => {
  if (!isObject(body)) return invalid("", "must be a JSON object with task_ids or query, and with a reason")
  const { query, task_ids } = body
  return Result.flatMap(OperationBody.of(body, ["task_ids", "query"]), (why) => {
    if ((task_ids === undefined) === (query === undefined))
      return invalid("task_ids", "must be given, unless query is given: a request has exactly one of them")
    const selection: Decoded<TaskSelection> =
      query === undefined ? taskIdsOf(task_ids) : queryOf(query, attributes, nowMs)
    return Result.map(selection, (selection) => ({ selection, why }))
  })
}

const taskIdsOf = (given: unknown): Decoded<TaskSelection> =>
  Array.isArray(given) && given.length > 0 && given.length <= maxTaskIds && given.every(isTaskId)
    ? Result.succeed({ taskIds: given })
    : invalid("task_ids", `must be an array of 1 to ${maxTaskIds} ids, each of 1 to 255 bytes`)

const isTaskId = (value: unknown): value is string =>
  typeof value === "string" && value.trim() !== "" && fitsShortString(value)

/** Empty values are ignored, as in the address of `GET /tasks`. */
const queryOf = (given: unknown, attributes: ReadonlyArray<string>, nowMs: number): Decoded<TaskSelection> => {
  const expected =
    'must be an object such as {"type": "mail", "status": "pending", "since": "1h"}, with texts as values'
  if (!isObject(given)) return invalid("query", expected)
  const entries = Object.entries(given).filter(([, value]) => value !== "")
  if (!entries.every(isText)) return invalid("query", expected)
  if (entries.length === 0)
    return invalid("query", "must have at least one member: an empty one would select every task")
  const filter = TaskParameters.filter(new URLSearchParams(entries), attributes, nowMs)
  if (Result.isFailure(filter))
    return Result.fail(filter.failure.map(({ loc: [, name], msg }) => ({ loc: ["body", `query.${name}`], msg })))
  if (filter.success.ended === true)
    return invalid("query.ended", "must be false or missing: a task that has ended cannot be cancelled")
  return Result.succeed({ query: Object.fromEntries(entries), filter: filter.success })
}

const isText = (entry: [string, unknown]): entry is [string, string] => typeof entry[1] === "string"

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const invalid = (name: string, msg: string): Result.Result<never, ReadonlyArray<InvalidParameter>> =>
  Result.fail([{ loc: ["body", name], msg }])
