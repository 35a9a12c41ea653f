import { Effect, Result } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import { fitsShortString } from "../../messaging/envelope/Envelope.ts"
import type { ContractAliasConfig } from "../../messaging/topology/Aliases.ts"
import type { InvalidParameter } from "./ErrorBody.ts"

export const query = Effect.map(HttpServerRequest.HttpServerRequest, ({ url }) => parametersOf(url))

/** Everything behind the first `?`, as a query may hold others. A target may be a whole URL, and no valid one. */
export const parametersOf = (url: string): URLSearchParams => {
  const at = url.indexOf("?")
  return new URLSearchParams(at < 0 ? "" : url.slice(at + 1).replaceAll(nameWithoutValue, "$&="))
}

/** A name without `=`, which says the same with one: Node.js takes quadratic time over many names without. */
const nameWithoutValue = /(?<![^&])[^&=]+(?![^&])/g

/** The task of a path that has `:task_id`, or why there can be no such task. */
export const taskId = (aliases: ContractAliasConfig | undefined) =>
  Effect.gen(function* () {
    const { task_id: taskId = "" } = yield* HttpRouter.params
    const { url } = yield* HttpServerRequest.HttpServerRequest
    const problem = problemOf(taskId, url)
    const mistake: InvalidParameter = { loc: ["path", aliases?.httpName("task_id") ?? "task_id"], msg: problem ?? "" }
    return problem === undefined ? Result.succeed(taskId) : Result.fail([mistake])
  })

const problemOf = (taskId: string, url: string): string | undefined => {
  // the router takes one for the end of the path, and the task for another
  if (/^[^?#]*;/.test(url)) return "must have its semicolons percent-encoded, as %3B"
  if (taskId.trim() === "") return "must not be blank"
  return fitsShortString(taskId) ? undefined : "must have at most 255 bytes"
}
