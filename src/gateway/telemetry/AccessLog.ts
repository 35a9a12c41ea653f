import { Context, Option } from "effect"
import * as Headers from "../../http/Headers.ts"
import { toDollars } from "../../policy/Price.ts"
import type { RoutedRequest } from "../../policy/Routing.ts"
import type { Request } from "../request/Request.ts"
import type { KeyRecord } from "../snapshot/KeyRecord.ts"
import type { RequestOutcome } from "./RequestOutcome.ts"

/** Writes one JSON log line. `members` are the members after the time, each preceded by a comma. */
export type WriteLine = (at: number, members: string) => void

export const AccessLog = Context.Reference<Option.Option<WriteLine>>("svc/gateway/AccessLog", {
  defaultValue: () => Option.none()
})

interface LoggedRequest {
  readonly request: Request
  readonly target: RoutedRequest | undefined
  readonly key: KeyRecord | undefined
  readonly outcome: RequestOutcome
  readonly endedAt: number
  /** The trace of the gateway's own span. If `undefined`, the log line names the client's trace. */
  readonly traceId: string | undefined
}

/** Formats one log line. Concatenating text takes a third of the time of `JSON.stringify`. */
export const formatFields = ({ outcome, endedAt, key, request, target, traceId }: LoggedRequest): string => {
  const { bill, error, model, provider, status, streamed, upstreamMs } = outcome
  const { usage } = bill
  const latency = endedAt - request.startedAt
  let text = `,"request_id":${JSON.stringify(request.requestId)},"method":${JSON.stringify(request.wire.method)}`
  const path = pathOf(request.wire.target)
  if (path !== "") text += `,"path":${JSON.stringify(path)}`
  text += `,"route":"${target?.route ?? "unrouted"}","provider":"${provider ?? target?.provider ?? "none"}","status":${status}`
  if (error !== undefined) text += `,"code":"${error.code}"`
  if (target?.service !== undefined) text += `,"service":${JSON.stringify(target.service.service.name)}`
  if (model !== undefined) text += `,"model":${JSON.stringify(model)}`
  if (key !== undefined) {
    text += `,"key_prefix":"${key.prefix}"`
    const project = Option.getOrUndefined(key.projectName)
    if (project !== undefined) text += `,"project":${JSON.stringify(project)}`
  }
  text += `,"latency_ms":${latency}`
  if (upstreamMs !== undefined) text += `,"upstream_ms":${upstreamMs}`
  text += `,"own_ms":${Math.max(0, latency - (upstreamMs ?? 0))}`
  if (usage.input !== undefined) text += `,"input_tokens":${usage.input}`
  if (usage.output !== undefined) text += `,"output_tokens":${usage.output}`
  if (bill.costNanos !== null) text += `,"cost_usd":${toDollars(bill.costNanos)}`
  if (streamed) text += `,"streamed":true`
  const trace = traceId ?? Headers.traceId(request.traceparent)
  if (trace !== undefined) text += `,"trace_id":"${trace}"`
  return text
}

const maxPathLength = 512
const secrets = /((?:rk|op)_live_[0-9a-f]{0,8})[0-9A-Za-z_-]*/g

/**
 * Returns the path for logs and traces, without the query and with secrets cut after their visible prefix. Returns an
 * empty text for an absolute URL, which may contain a password.
 */
export const pathOf = (target: string): string => {
  if (!target.startsWith("/")) return ""
  const query = target.indexOf("?")
  const path = (query === -1 ? target : target.slice(0, query)).slice(0, maxPathLength)
  return path.includes("_live_") ? path.replace(secrets, "$1…") : path
}
