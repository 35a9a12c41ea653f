import { Context, Option } from "effect"
import * as Headers from "../../http/Headers.ts"
import { toDollars } from "../../policy/Price.ts"
import type { RoutedRequest } from "../../policy/Routing.ts"
import type { Request } from "../request/Request.ts"
import type { KeyRecord } from "../snapshot/KeyRecord.ts"
import type { RequestOutcome } from "./RequestOutcome.ts"

/** Writes the line of a request: its time, and its fields as members of JSON, each after a comma. */
export type WriteLine = (at: number, members: string) => void

/** Without a writer, requests have no lines. */
export const AccessLog = Context.Reference<Option.Option<WriteLine>>("svc/gateway/AccessLog", {
  defaultValue: () => Option.none()
})

/** The request as its line tells it, before the end is known. */
export interface LoggedRequest {
  readonly request: Request
  readonly target: RoutedRequest | undefined
  readonly key: KeyRecord | undefined
  readonly ended: RequestOutcome
  readonly endedAt: number
  /** The trace of the request's span; without one, the client's is told. */
  readonly traceId: string | undefined
}

/**
 * The fields of a request's line. Put together as text, because this runs for every request: an object and
 * `JSON.stringify` take three times as long.
 */
export const formatFields = ({ ended, endedAt, key, request, target, traceId }: LoggedRequest): string => {
  const { bill, error, model, provider, status, streamed, upstreamMs } = ended
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
 * The path of a request for people: without its query, and without the rest of a secret that a client wrote into it.
 * Empty where the client sent more than a path, as it would to a proxy: that may hold a password.
 */
export const pathOf = (target: string): string => {
  if (!target.startsWith("/")) return ""
  const query = target.indexOf("?")
  const path = (query === -1 ? target : target.slice(0, query)).slice(0, maxPathLength)
  return path.includes("_live_") ? path.replace(secrets, "$1…") : path
}
