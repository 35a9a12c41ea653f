import * as crypto from "node:crypto"
import { Option, Redacted } from "effect"
import * as Headers from "../../http/Headers.ts"
import { familyOfPath } from "../../policy/Routing.ts"
import type { Family } from "../../policy/routes/CanonicalRoute.ts"
import { equal } from "../../state/Secret.ts"
import type { Wire } from "./Wire.ts"

/** A request on its way, and what it is known by. */
export interface Request {
  readonly wire: Wire
  /** The client's, when it gave a usable one; it may repeat. */
  readonly requestId: string
  /** The gateway's own, unique: settlement and usage record go by it. */
  readonly recordId: string
  readonly family: Family
  /** Epoch milliseconds. */
  readonly startedAt: number
  /** A `traceparent` that means something. */
  readonly traceparent: string | undefined
  /** For which task and run a trusted worker sent it. */
  readonly taskId: string | undefined
  readonly runId: string | undefined
  /** The header of the gateway key, lower case, as it was named when the request came: it goes to no upstream. */
  readonly keyHeader: string
}

export const make = (
  wire: Wire,
  startedAt: number,
  workerToken: Option.Option<Redacted.Redacted>,
  keyHeader: string
): Request => {
  const { headers } = wire
  // already in lower case: this makes one flat string of its pieces, and the record with it 0.5 µs cheaper to write
  const recordId = newRecordId().toLowerCase()
  const traceparent = Headers.get(headers, "traceparent")
  const token = Headers.get(headers, "x-svc-worker-token")
  const trusted = token !== undefined && Option.exists(workerToken, (expected) => equal(Redacted.make(token), expected))
  return {
    wire,
    requestId: Headers.validClientId(Headers.get(headers, "x-request-id")) ?? recordId,
    recordId,
    family: familyOf(wire.target, headers),
    startedAt,
    traceparent: Headers.traceId(traceparent) === undefined ? undefined : traceparent,
    taskId: trusted ? Headers.validClientId(Headers.get(headers, "x-svc-task-id")) : undefined,
    runId: trusted ? Headers.validClientId(Headers.get(headers, "x-svc-run-id")) : undefined,
    keyHeader
  }
}

/**
 * Family B's client names its protocol version on every call; on a path that both families share, that tells them
 * apart.
 */
export const familyOf = (target: string, headers: Headers.RawHeaders): Family =>
  familyOfPath(target) === "b" || Headers.get(headers, "anthropic-version") !== undefined ? "b" : "a"

/** Ordered by time, where Node can: random ids cost the database's index of them 4 µs of each record. */
const newRecordId: () => string = crypto.randomUUIDv7 ?? crypto.randomUUID

/** What the gateway tells the upstream of a request. */
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

/** What a vendor is told: enough to speak with it of a request, and nothing of whose it was. */
export const vendorHeaders = (
  { requestId }: Request,
  traceparent: string | undefined
): ReadonlyArray<readonly [string, string]> => [
  ["x-svc-request-id", requestId],
  ...(traceparent === undefined ? [] : [["traceparent", traceparent] as const])
]
