import * as crypto from "node:crypto"
import { Option, Redacted } from "effect"
import * as Headers from "../../http/Headers.ts"
import { familyOfPath } from "../../policy/Routing.ts"
import type { Family } from "../../policy/routes/CanonicalRoute.ts"
import { equal } from "../../state/Secret.ts"
import * as UserAgents from "./UserAgents.ts"
import type { Wire } from "./Wire.ts"

export interface Request {
  readonly wire: Wire
  /** The client's `x-request-id` if it is valid, else `recordId`. Clients may repeat their ids. */
  readonly requestId: string
  /** The gateway's own unique id, which settlement and the usage record use. */
  readonly recordId: string
  readonly family: Family
  readonly startedAt: number
  readonly traceparent: string | undefined
  /** The task and run that a worker named. They are set only if the request carries the workers' shared token. */
  readonly taskId: string | undefined
  readonly runId: string | undefined
  /** The session that Claude Code or Codex names, which nobody verifies, or else the run. */
  readonly sessionId: string | undefined
  readonly client: UserAgents.Client
  /** The lower-case name of the header that carries the gateway key. The gateway never forwards this header. */
  readonly keyHeader: string
}

export const make = (
  wire: Wire,
  startedAt: number,
  workerToken: Option.Option<Redacted.Redacted>,
  keyHeader: string
): Request => {
  const { headers } = wire
  // `toLowerCase` makes V8 flatten the string. This saves 0.5 µs when the record is written.
  const recordId = newRecordId().toLowerCase()
  const traceparent = Headers.get(headers, "traceparent")
  const token = Headers.get(headers, "x-svc-worker-token")
  const trusted = token !== undefined && Option.exists(workerToken, (expected) => equal(Redacted.make(token), expected))
  const runId = trusted ? Headers.validClientId(Headers.get(headers, "x-svc-run-id")) : undefined
  return {
    wire,
    requestId: Headers.validClientId(Headers.get(headers, "x-request-id")) ?? recordId,
    recordId,
    family: familyOf(wire.target, headers),
    startedAt,
    traceparent: Headers.traceId(traceparent) === undefined ? undefined : traceparent,
    taskId: trusted ? Headers.validClientId(Headers.get(headers, "x-svc-task-id")) : undefined,
    runId,
    sessionId: agentSessionOf(headers) ?? runId,
    client: UserAgents.clientOf(Headers.get(headers, "user-agent")),
    keyHeader
  }
}

const agentSessionHeaders = ["x-claude-code-session-id", "session-id"]

const agentSessionOf = (headers: Headers.RawHeaders): string | undefined => {
  for (const name of agentSessionHeaders) {
    const id = Headers.validClientId(Headers.get(headers, name))
    if (id !== undefined) return id
  }
  return undefined
}

/** Anthropic clients (family B) always send `anthropic-version`, which identifies them on shared paths. */
export const familyOf = (target: string, headers: Headers.RawHeaders): Family =>
  familyOfPath(target) === "b" || Headers.get(headers, "anthropic-version") !== undefined ? "b" : "a"

/** Uses time-ordered ids if Node supports them, because random ids cost 4 µs per record in the database index. */
const newRecordId: () => string = crypto.randomUUIDv7 ?? crypto.randomUUID

export const gatewayHeaders = (
  request: Request,
  key: { readonly id: string; readonly projectId: Option.Option<string> } | undefined,
  traceparent: string | undefined,
  service?: string
): ReadonlyArray<readonly [string, string]> => {
  const fields: Array<readonly [string, string]> = [["x-svc-request-id", request.requestId]]
  if (key !== undefined) {
    fields.push(["x-svc-key-id", key.id])
    if (Option.isSome(key.projectId)) fields.push(["x-svc-project-id", key.projectId.value])
  }
  if (service !== undefined) fields.push(["x-svc-service", service])
  if (request.taskId !== undefined) fields.push(["x-svc-task-id", request.taskId])
  if (request.runId !== undefined) fields.push(["x-svc-run-id", request.runId])
  if (traceparent !== undefined) fields.push(["traceparent", traceparent])
  return fields
}

/** A model vendor receives the request id for support enquiries, but no key, project or task id. */
export const vendorHeaders = (
  { requestId }: Request,
  traceparent: string | undefined
): ReadonlyArray<readonly [string, string]> => [
  ["x-svc-request-id", requestId],
  ...(traceparent === undefined ? [] : [["traceparent", traceparent] as const])
]
