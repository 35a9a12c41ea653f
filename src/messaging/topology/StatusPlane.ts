import type { Redacted } from "effect"
import type { Field, Fields } from "../../services/Broker.ts"
import { argumentFromField, mergeQueueFamily, type QueueFamily, type ValidationIssues } from "./Parameters.ts"

/** The position in a stream at which reading starts. `last` is the last chunk. A number is an offset, `1h` an age. */
export type StreamOffset = "first" | "last" | "next" | number | Date | string

/** Parameters of every topology. Their names come from the specification of the messaging library. */
export interface StatusParameters {
  /** A URL for your own code that creates a `Broker`. The library only validates the URL. */
  readonly rabbitmq_url?: string | Redacted.Redacted | undefined
  readonly status_exchange: string
  readonly status_queue: string
  /** The exchange for messages that workers reject. RabbitMQ drops these messages if no queue is bound to it. */
  readonly dead_letter_exchange?: string | undefined
  /** The number of deliveries that a consumer processes concurrently unless it sets `concurrency`. Default: 1. */
  readonly prefetch_count?: number | undefined
  /** Whether the status queue is a stream. Default: true. */
  readonly status_use_streams?: boolean | undefined
  /** The broker deletes a status queue that was unused for this time in ms. Not allowed for streams. Default: never. */
  readonly status_queue_ttl_ms?: number | undefined
  /** The maximum size of the stream in GiB. Default: no limit. */
  readonly status_stream_max_length_gb?: number | undefined
  /** The size of a stream segment in MiB, at most 2861 (3,000,000,000 bytes). Default: the broker's default. */
  readonly status_stream_max_segment_size_mb?: number | undefined
  /**
   * The stream position at which a status hub without a checkpoint starts. The default for hubs is `first`. Consumers
   * that pass `consumerArguments` also start here. The default for consumers is `last`, the last chunk. History
   * requests use `startOffset` instead. Without effect if the status queue is not a stream.
   */
  readonly status_stream_initial_offset?: StreamOffset | undefined
  /**
   * The maximum size of an encoded status in bytes, 1,024 to 16,777,216. Clients refuse to publish larger statuses, and
   * hubs do not store them. Publishers and hubs must use the same limit. Default: 1,048,576.
   */
  readonly status_max_event_bytes?: number | undefined
  readonly status_queue_arguments_overrides?: Fields | undefined
  readonly status_queue_kwargs?: Fields | undefined
}

export interface StatusPlane {
  readonly exchange: string
  /** The status queue. Its binding key is `#`, so it receives every status. */
  readonly queue: string
  readonly family: QueueFamily
  readonly isStream: boolean
  /** Arguments that make your own consumer start at the configured position. The library itself does not use them. */
  readonly consumerArguments: Fields
  /** `status_stream_initial_offset` as configured. If it is missing, a status hub starts at the first event. */
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
      "cannot be set for a stream, because the broker never deletes streams: remove it, or set status_use_streams to false"
    )
  }
  const { status_max_event_bytes: maxEventBytes = defaultMaxEventBytes } = parameters
  issues.checkInteger("status_max_event_bytes", maxEventBytes, 1_024, 16_777_216)
  const isOffset = isStreamOffset(offset)
  if (!isOffset) {
    // RabbitMQ would close the whole connection with error 541 for an invalid offset.
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
      issues.addWarning(field, "has no effect while status_use_streams is false: remove it")
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
