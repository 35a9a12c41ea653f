import type { Fields } from "../../services/Broker.ts"
import { isJsonObject, type JsonObject } from "../envelope/Envelope.ts"
import * as RetryHeaders from "./RetryHeaders.ts"

/** The replay that published a message. Retries of the message and its next dead letter keep it. */
export interface ReplayOrigin {
  /** The dead letter that was replayed. */
  readonly dlq_id: string
  readonly replayed_at: string
}

/** The member of `meta` by which a status proves that it is about the replayed message. */
const member = "replayed_from"

export const ofHeaders = (headers: Fields): ReplayOrigin | undefined =>
  originOf(headers[RetryHeaders.replayedLetter], headers[RetryHeaders.replayedAt])

/** Adds the replay to the `meta` of a status. `failed`: the status reports that the message has failed. */
export const intoMeta = (meta: JsonObject, origin: ReplayOrigin | undefined, failed = false): JsonObject =>
  origin === undefined ? meta : { ...meta, [member]: { ...origin, ...(failed && { failed }) } }

export const ofMeta = (meta: unknown): (ReplayOrigin & { readonly failed: boolean }) | undefined => {
  const given = isJsonObject(meta) ? meta[member] : undefined
  if (!isJsonObject(given)) return undefined
  const origin = originOf(given["dlq_id"], given["replayed_at"])
  return origin && { ...origin, failed: given["failed"] === true }
}

/** Removes the replay from `meta`. A status about the outcome of something else must not prove the replay's outcome. */
export const outOfMeta = ({ [member]: _, ...meta }: JsonObject): JsonObject => meta

const originOf = (dlq_id: unknown, replayed_at: unknown): ReplayOrigin | undefined =>
  isShort(dlq_id) && isShort(replayed_at) ? { dlq_id, replayed_at } : undefined

const isShort = (value: unknown): value is string => typeof value === "string" && value !== "" && value.length <= 255
