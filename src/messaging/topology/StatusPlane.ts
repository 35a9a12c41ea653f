import type { Redacted } from "effect"
import type { Field, Fields } from "../../services/Broker.ts"
import { argumentFromField, mergeQueueFamily, type QueueFamily, type ValidationIssues } from "./Parameters.ts"

/**
 * Where a consumer of a stream begins: with the last chunk, the first event, what comes next, an offset, an instant, or
 * an age such as `"1h"`.
 */
export type StreamOffset = "first" | "last" | "next" | number | Date | string

/** What every topology has. Its parameters keep the specification's names, since documents and errors use those. */
export interface StatusParameters {
  /** Read by who composes a broker from the topology; an in-process broker needs none. */
  readonly rabbitmq_url?: string | Redacted.Redacted | undefined
  readonly status_exchange: string
  readonly status_queue: string
  /** A fanout exchange for what workers reject. Nothing is bound to it here: bind a queue, or it is dropped. */
  readonly dead_letter_exchange?: string | undefined
  /** Deliveries that a consumer works on at once, where it says nothing itself. Default: 1. */
  readonly prefetch_count?: number | undefined
  /** Default: true. */
  readonly status_use_streams?: boolean | undefined
  /** The status queue is deleted when nobody used it for so long. Not for streams, which the broker never deletes. */
  readonly status_queue_ttl_ms?: number | undefined
  /** GiB. Streams only. */
  readonly status_stream_max_length_gb?: number | undefined
  /** MiB, at most 2861 (3,000,000,000 bytes). Streams only. */
  readonly status_stream_max_segment_size_mb?: number | undefined
  /**
   * Where a hub begins that nobody has run before, and every consumer that is given `consumerArguments`. By default a hub
   * begins with the first event, and such a consumer with the last chunk. Histories are asked for their own. Streams only.
   */
  readonly status_stream_initial_offset?: StreamOffset | undefined
  /**
   * How many bytes a status may have as it travels: clients refuse to publish larger ones, and hubs do not store them.
   * Publishers and hubs must agree on it. 1,024 to 16,777,216. Default: 1,048,576.
   */
  readonly status_max_event_bytes?: number | undefined
  readonly status_queue_arguments_overrides?: Fields | undefined
  readonly status_queue_kwargs?: Fields | undefined
}

export interface StatusPlane {
  /** Topic. */
  readonly exchange: string
  /** Bound to everything. */
  readonly queue: string
  readonly family: QueueFamily
  readonly isStream: boolean
  /** For a consumer of your own on the status queue: where it begins in a stream. Nothing here consumes by them. */
  readonly consumerArguments: Fields
  /** `status_stream_initial_offset` as it was given: a status hub that was told nothing loses nothing. */
  readonly initialOffset: StreamOffset | undefined
  readonly maxEventBytes: number
}

/** Of one status, where its topology says nothing. */
const defaultMaxEventBytes = 1_048_576

export const make = (parameters: StatusParameters, findings: ValidationIssues): StatusPlane => {
  const streams = parameters.status_use_streams ?? true
  const { status_queue_ttl_ms: ttl, status_stream_initial_offset: offset = "last" } = parameters
  findings.checkMillis("status_queue_ttl_ms", ttl)
  if (streams && ttl !== undefined) {
    findings.addMistake(
      "status_queue_ttl_ms",
      "cannot be set together with status_use_streams, which is on by default: the broker never deletes streams"
    )
  }
  const { status_max_event_bytes: maxEventBytes = defaultMaxEventBytes } = parameters
  findings.checkInteger("status_max_event_bytes", maxEventBytes, 1_024, 16_777_216)
  const isOffset = isStreamOffset(offset)
  if (!isOffset) {
    // a wrong one closes the whole connection (541)
    findings.addMistake(
      "status_stream_initial_offset",
      "must be first, last, next, an offset of 0 or more, a Date, or an age such as 1h"
    )
  }
  const family = mergeQueueFamily(
    "status",
    "status_queue_arguments_overrides.x-max-priority",
    [
      argumentFromField("status_use_streams", "x-queue-type", streams ? "stream" : undefined),
      argumentFromField("status_queue_ttl_ms", "x-expires", streams ? undefined : ttl),
      argumentFromField(
        "status_stream_max_length_gb",
        "x-max-length-bytes",
        bytes("status_stream_max_length_gb", 1024 ** 3)
      ),
      argumentFromField(
        "status_stream_max_segment_size_mb",
        "x-stream-max-segment-size-bytes",
        bytes("status_stream_max_segment_size_mb", 1024 ** 2)
      ),
      { field: "status_queue_arguments_overrides", arguments: parameters.status_queue_arguments_overrides },
      { field: "status_queue_kwargs", arguments: parameters.status_queue_kwargs }
    ],
    findings
  )
  return {
    exchange: findings.checkName("status_exchange", parameters.status_exchange),
    queue: findings.checkName("status_queue", parameters.status_queue),
    family,
    isStream: family.queueType === "stream",
    consumerArguments: family.queueType === "stream" && isOffset ? { "x-stream-offset": offset } : {},
    initialOffset: isOffset ? parameters.status_stream_initial_offset : undefined,
    maxEventBytes
  }

  function bytes(field: "status_stream_max_length_gb" | "status_stream_max_segment_size_mb", unit: number) {
    const value = parameters[field]
    if (value === undefined) return undefined
    if (!streams) {
      findings.addWarning(field, "does nothing while status_use_streams is false")
      return undefined
    }
    const size = Math.floor(value * unit)
    if (Number.isSafeInteger(size) && size >= 1) return size
    findings.addMistake(field, "must be more than 0")
    return undefined
  }
}

export const isStreamOffset = (offset: Field): offset is string | number | Date =>
  offset instanceof Date
    ? !Number.isNaN(offset.getTime())
    : typeof offset === "number"
      ? Number.isSafeInteger(offset) && offset >= 0
      : typeof offset === "string" && /^(first|last|next|[1-9]\d{0,8}[YMDhms])$/.test(offset)
