import { Result } from "effect"
import { encode, isIdentity, isJsonObject, type JsonObject } from "../../messaging/envelope/Envelope.ts"
import type { EnvelopeError } from "../../messaging/envelope/Errors.ts"
import * as StatusEvent from "../../messaging/envelope/StatusEvent.ts"
import type { Timestamp } from "../../messaging/envelope/Timestamp.ts"
import type { ContractAliasConfig } from "../../messaging/topology/Aliases.ts"

/** Describes why a message is not a status event. `detail` is for the log and contains no values of the message. */
export interface Malformed {
  readonly reason: "oversized" | "malformed_json" | "payload_not_mapping" | "invalid_envelope"
  readonly detail: string
  readonly taskId?: string
}

export interface ReadingOptions {
  readonly aliases: ContractAliasConfig
  /** The members of `meta` to remove. Default: `["auth_token"]`. */
  readonly sanitizeMetaKeys: ReadonlyArray<string> | undefined
}

/** Returns a parser of messages that renames aliases, removes secret members and keeps every digit of numbers. */
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

interface Options extends ReadingOptions {
  readonly maxEventBytes: number
}

/** Returns a function that reads the event to store from a message, and adds missing members. */
export const eventReader = ({ maxEventBytes, ...options }: Options) => {
  const read = sanitizingReader(options)
  return (content: Uint8Array, now: Timestamp): Result.Result<ReceivedStatus, Malformed> => {
    if (content.byteLength > maxEventBytes) {
      const detail = `The message has ${content.byteLength} bytes, but status_max_event_bytes of the topology allows ${maxEventBytes}.`
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
  // `JSON.stringify` fails if a value has some thousand nested levels. A short message cannot have so many levels.
  const encoded = bytes > alwaysEncodableBytes ? encode("status", json) : undefined
  return encoded !== undefined && Result.isFailure(encoded)
    ? Result.fail(encoded.failure)
    : StatusEvent.readForStorage(json, now)
}

const alwaysEncodableBytes = 4_096
