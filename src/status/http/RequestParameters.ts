import { Effect, Result } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import { fitsShortString } from "../../messaging/envelope/Envelope.ts"
import type { ContractAliasConfig } from "../../messaging/topology/Aliases.ts"
import type { InvalidParameter } from "./ErrorBody.ts"

export const query = Effect.map(HttpServerRequest.HttpServerRequest, ({ url }) => parametersOf(url))

/** Only the part after the first `?` is parsed, because the target may be an absolute URL, even an invalid one. */
export const parametersOf = (url: string): URLSearchParams => {
  const at = url.indexOf("?")
  return new URLSearchParams(at < 0 ? "" : url.slice(at + 1).replaceAll(nameWithoutValue, "$&="))
}

/** A name without `=` is given one. Node.js needs quadratic time to parse many names without it. */
const nameWithoutValue = /(?<![^&])[^&=]+(?![^&])/g

export const taskId = (aliases: ContractAliasConfig | undefined) =>
  Effect.gen(function* () {
    const { task_id: taskId = "" } = yield* HttpRouter.params
    const { url } = yield* HttpServerRequest.HttpServerRequest
    const problem = problemOf(taskId, url)
    const mistake: InvalidParameter = { loc: ["path", aliases?.httpName("task_id") ?? "task_id"], msg: problem ?? "" }
    return problem === undefined ? Result.succeed(taskId) : Result.fail([mistake])
  })

const problemOf = (taskId: string, url: string): string | undefined => {
  // The router ends a path at a semicolon, so a task id with one would select another task.
  if (/^[^?#]*;/.test(url)) return "must have its semicolons percent-encoded, as %3B"
  if (taskId.trim() === "") return "must not be blank"
  return fitsShortString(taskId) ? undefined : "must have at most 255 bytes"
}
