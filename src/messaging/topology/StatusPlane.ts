import type { Redacted } from "effect"
import type { Field, Fields } from "../../services/Broker.ts"
import { argumentFromField, mergeQueueFamily, type QueueFamily, type ValidationIssues } from "./Parameters.ts"

/**
 * The position at which a consumer starts to read a stream: the last chunk, the first event, the next event, an offset,
 * a time, or an age such as `"1h"`.
 */
export type StreamOffset = "first" | "last" | "next" | number | Date | string

/**
 * Parameters of every topology. They keep the names of the specification, because its documents and errors use them.
 */
export interface StatusParameters {
  /** URL for code that creates a `Broker` from the topology. An in-memory broker needs none. */
  readonly rabbitmq_url?: string | Redacted.Redacted | undefined
  readonly status_exchange: string
  readonly status_queue: string
  /**
   * Fanout exchange for messages that workers reject. The library binds no queue to it: without a queue of yours, these
   * messages are dropped.
   */
  readonly dead_letter_exchange?: string | undefined
  /** The number of deliveries that a consumer without `concurrency` processes concurrently. Default: 1. */
  readonly prefetch_count?: number | undefined
  /** Makes the status queue a stream. Default: true. */
  readonly status_use_streams?: boolean | undefined
  /**
   * The broker deletes the status queue after it was unused for this long, in milliseconds. Not for streams, which are
   * never deleted. Default: never.
   */
  readonly status_queue_ttl_ms?: number | undefined
  /** Maximum size of the stream in GiB. Default: no limit. */
  readonly status_stream_max_length_gb?: number | undefined
  /** Size of a stream segment in MiB, at most 2861 (3,000,000,000 bytes). Default: that of the broker. */
  readonly status_stream_max_segment_size_mb?: number | undefined
  /**
   * Where in the stream a status hub starts that has no checkpoint yet (default: `first`), and where a consumer of your
   * own starts that passes `consumerArguments` (default: `last`, the last chunk). A history request names its own
   * `startOffset`. Streams only.
   */
  readonly status_stream_initial_offset?: StreamOffset | undefined
  /**
   * The maximum size of an encoded status in bytes, 1,024 to 16,777,216. Clients refuse to publish larger ones, and
   * hubs do not store them, so publishers and hubs need the same limit. Default: 1,048,576.
   */
  readonly status_max_event_bytes?: number | undefined
  readonly status_queue_arguments_overrides?: Fields | undefined
  readonly status_queue_kwargs?: Fields | undefined
}

export interface StatusPlane {
  /** A topic exchange. */
  readonly exchange: string
  /** Bound with `#`, so it receives every status. */
  readonly queue: string
  readonly family: QueueFamily
  readonly isStream: boolean
  /** Starts a consumer of your own at the configured position. The library itself does not use these arguments. */
  readonly consumerArguments: Fields
  /** `status_stream_initial_offset` as given. Without it a status hub starts at the first event, so it misses none. */
  readonly initialOffset: StreamOffset | undefined
  readonly maxEventBytes: number
}

const defaultMaxEventBytes = 1_048_576

export const make = (parameters: StatusParameters, issues: ValidationIssues): StatusPlane => {
  const streams = parameters.status_use_streams ?? true
  const { status_queue_ttl_ms: ttl, status_stream_initial_offset: offset = "last" } = parameters
  issues.checkMillis("status_queue_ttl_ms", ttl)
  if (streams && ttl !== undefined) {
    issues.addMistake(
      "status_queue_ttl_ms",
      "cannot be set together with status_use_streams, which is on by default: the broker never deletes streams"
    )
  }
  const { status_max_event_bytes: maxEventBytes = defaultMaxEventBytes } = parameters
  issues.checkInteger("status_max_event_bytes", maxEventBytes, 1_024, 16_777_216)
  const isOffset = isStreamOffset(offset)
  if (!isOffset) {
    // An invalid offset makes the broker close the whole connection (541).
    issues.addMistake(
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
    issues
  )
  return {
    exchange: issues.checkName("status_exchange", parameters.status_exchange),
    queue: issues.checkName("status_queue", parameters.status_queue),
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
      issues.addWarning(field, "has no effect while status_use_streams is false")
      return undefined
    }
    const size = Math.floor(value * unit)
    if (Number.isSafeInteger(size) && size >= 1) return size
    issues.addMistake(field, "must be more than 0")
    return undefined
  }
}

export const isStreamOffset = (offset: Field): offset is string | number | Date =>
  offset instanceof Date
    ? !Number.isNaN(offset.getTime())
    : typeof offset === "number"
      ? Number.isSafeInteger(offset) && offset >= 0
      : typeof offset === "string" && /^(first|last|next|[1-9]\d{0,8}[YMDhms])$/.test(offset)
