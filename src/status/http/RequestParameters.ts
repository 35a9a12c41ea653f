import { Effect, Result } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import { fitsShortString } from "../../messaging/envelope/Envelope.ts"
import type { ContractAliasConfig } from "../../messaging/topology/Aliases.ts"
import type { InvalidParameter } from "./ErrorBody.ts"

export const query = Effect.map(HttpServerRequest.HttpServerRequest, ({ url }) => parametersOf(url))

/** Parses only the part after the first `?`, because the request target may be an invalid absolute URL. */
export const parametersOf = (url: string): URLSearchParams => {
  const at = url.indexOf("?")
  return new URLSearchParams(at < 0 ? "" : url.slice(at + 1).replaceAll(nameWithoutValue, "$&="))
}

/** Matches names without `=`. These get a `=`, because Node.js parses many names without it in quadratic time. */
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
  // The router cuts a path at a semicolon. The text before it would be the id of a different task.
  if (/^[^?#]*;/.test(url)) return "must have its semicolons percent-encoded, as %3B"
  if (taskId.trim() === "") return "must not be blank"
  return fitsShortString(taskId) ? undefined : "must have at most 255 bytes"
}
