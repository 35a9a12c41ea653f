import { Result } from "effect"
import { encode, isIdentity, isJsonObject, type JsonObject } from "../../messaging/envelope/Envelope.ts"
import type { EnvelopeError } from "../../messaging/envelope/Errors.ts"
import * as StatusEvent from "../../messaging/envelope/StatusEvent.ts"
import type { Timestamp } from "../../messaging/envelope/Timestamp.ts"
import type { ContractAliasConfig } from "../../messaging/topology/Aliases.ts"

/** Why a message is no status event. `detail`: for the log, without values of the message. */
export interface Malformed {
  readonly reason: "oversized" | "malformed_json" | "payload_not_mapping" | "invalid_envelope"
  readonly detail: string
  /** As far as it can be told. */
  readonly taskId?: string
}

export interface ReadingOptions {
  readonly aliases: ContractAliasConfig
  /** Members of an event's `meta` that are secret. Default: `["auth_token"]`. */
  readonly sanitizeMetaKeys: ReadonlyArray<string> | undefined
}

/** From the bytes of a message to what may be shown of it: by canonical names, every number as it came. */
export const sanitizingReader = ({ aliases, sanitizeMetaKeys: secret = ["auth_token"] }: ReadingOptions) => {
  const sanitize = (event: JsonObject): JsonObject => {
    const { meta } = event
    if (!isJsonObject(meta) || !secret.some((key) => Object.hasOwn(meta, key))) return event
    const kept = Object.entries(meta).filter(([key]) => !secret.includes(key))
    return { ...event, meta: Object.fromEntries(kept) }
  }
  return (content: Uint8Array): Result.Result<JsonObject, EnvelopeError> =>
    Result.map(aliases.read("status", content), ({ exact }) => sanitize(exact))
}

export interface Options extends ReadingOptions {
  readonly maxEventBytes: number
}

/** From the bytes of a message to the event that is stored: what may be shown, and an id, as `StatusEvent.receive` says. */
export const eventReader = ({ maxEventBytes, ...options }: Options) => {
  const read = sanitizingReader(options)
  return (content: Uint8Array, now: Timestamp): Result.Result<ReceivedStatus, Malformed> => {
    if (content.byteLength > maxEventBytes) {
      const detail = `It has ${content.byteLength} bytes, and may have ${maxEventBytes} (status_max_event_bytes of the topology).`
      return Result.fail({ reason: "oversized", detail })
    }
    const event = read(content)
    if (Result.isFailure(event)) {
      const { message, reason } = event.failure
      return Result.fail({ reason: reason === "malformed_json" ? reason : "payload_not_mapping", detail: message })
    }
    return Result.mapError(validate(event.success, now, content.byteLength), ({ message }) =>
      invalid(message, event.success["task_id"])
    )
  }
}

export type ReceivedStatus = StatusEvent.LenientStatus & { readonly event: StatusEvent.PublishedStatus }

const invalid = (detail: string, taskId: unknown): Malformed => ({
  reason: "invalid_envelope",
  detail,
  ...(isIdentity(taskId) && { taskId })
})

const validate = (json: JsonObject, now: Timestamp, bytes: number): Result.Result<ReceivedStatus, EnvelopeError> => {
  // JSON is read at any depth, and written at a few thousand levels, which take more bytes than most events have
  const encoded = bytes > alwaysEncodableBytes ? encode("status", json) : undefined
  return encoded !== undefined && Result.isFailure(encoded)
    ? Result.fail(encoded.failure)
    : StatusEvent.readForStorage(json, now)
}

const alwaysEncodableBytes = 4_096
