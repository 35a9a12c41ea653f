import { Clock, Deferred, Effect, Option, Result, Schema } from "effect"
import type { JsonObject } from "../../messaging/envelope/Envelope.ts"
import type { EnvelopeError } from "../../messaging/envelope/Errors.ts"
import type { StatusPlane } from "../../messaging/topology/StatusPlane.ts"
import type { Broker, BrokerError, Delivery } from "../../services/Broker.ts"
import * as StatusMessage from "../hub/StatusMessage.ts"
import { offsetOf } from "../hub/StreamCheckpoint.ts"

interface ScanBounds {
  readonly seconds: number
  readonly matches: number
  readonly messages: number
  readonly bytes: number
}

interface Scan {
  readonly taskId?: string | undefined
  readonly startOffset: "first" | "last" | number
  readonly bounds: ScanBounds
}

export interface ScanResult {
  /** The events as JSON with canonical member names, oldest first. */
  readonly events: ReadonlyArray<string>
  /** True if a limit ended the scan or the broker did not respond. The source may then have more events. */
  readonly truncated: boolean
  /** The offset at which the next scan continues. Missing if the queue is not a stream. */
  readonly nextOffset?: number | undefined
  readonly oldestOffset?: number | undefined
}

/** The queue has a consumer. A scan would change the order in which the consumer receives the messages. */
export class QueueInUse extends Schema.TaggedError<QueueInUse>()("QueueInUse", { queue: Schema.String }) {}

/**
 * Reads a status queue from an offset to its current end. Reading does not change a stream. From any other queue, a
 * scan takes at most `prefetch` messages and requeues them when it ends. It fails if such a queue has a consumer. It
 * does not detect a consumer that starts during the scan.
 */
export const scan = Effect.fnUntraced(function* (
  broker: Broker["Service"],
  status: StatusPlane,
  options: StatusMessage.ReadingOptions,
  { bounds, startOffset, taskId }: Scan
) {
  const clock = yield* Clock.Clock
  if (!status.isStream) {
    const queueState = yield* broker.inspect(status.queue)
    if (Option.exists(queueState, ({ consumers }) => consumers > 0))
      return yield* new QueueInUse({ queue: status.queue })
  }
  const channel = yield* broker.channel({ prefetch })
  const limit = status.isStream ? bounds.messages : Math.min(bounds.messages, prefetch)
  const events: Array<string> = []
  const readMessage = StatusMessage.sanitizingReader(options)
  const boundReached = Deferred.makeUnsafe<void>()
  let [messages, bytes] = [0, 0]
  let nextOffset = status.isStream && typeof startOffset === "number" ? startOffset : undefined
  let quietAt = clock.currentTimeMillisUnsafe() + firstMessageWaitMs

  const collect = ({ content, properties }: Delivery) => {
    messages++
    const offset = offsetOf(properties)
    if (offset !== undefined) nextOffset = offset + 1
    const text = eventOf(readMessage(content), taskId)
    if (text !== undefined) {
      events.push(text)
      bytes += content.length
    }
    return messages >= limit || events.length >= bounds.matches || bytes >= bounds.bytes
  }
  const subscription = yield* channel.consume({
    queue: status.queue,
    arguments: status.isStream ? { "x-stream-offset": startOffset } : {},
    onDelivery: (delivery) => {
      if (status.isStream) delivery.settle("ack")
      if (Deferred.isDoneUnsafe(boundReached)) return
      quietAt = clock.currentTimeMillisUnsafe() + quietMs
      if (collect(delivery)) Deferred.doneUnsafe(boundReached, Effect.void)
    }
  })
  const isQuiet = () => quietAt <= clock.currentTimeMillisUnsafe()
  // If no message arrives, either the queue has no more messages or the broker hangs. A ping fails if the broker hangs.
  const atEnd: Effect.Effect<void, BrokerError> = Effect.suspend(() =>
    isQuiet()
      ? Effect.andThen(
          broker.ping,
          Effect.suspend(() => (isQuiet() ? Effect.void : atEnd))
        )
      : Effect.andThen(Effect.sleep(quietAt - clock.currentTimeMillisUnsafe()), atEnd)
  )
  const isUnanswered = Effect.match(atEnd, { onSuccess: () => false, onFailure: () => true })
  const ended = yield* Effect.raceFirst(Effect.as(Deferred.await(boundReached), true), isUnanswered).pipe(
    Effect.raceFirst(channel.ended),
    Effect.timeoutOption(bounds.seconds * 1_000)
  )
  // Cancels the consumer before the channel closes. Otherwise some AMQP clients requeue deliveries that are still
  // arriving. RabbitMQ treats a requeue on a stream as an error.
  yield* subscription.cancel
  const scanned: ScanResult = { events, truncated: Option.getOrElse(ended, () => true), nextOffset }
  return scanned
}, Effect.scoped) satisfies (...args: never) => Effect.Effect<ScanResult, BrokerError | QueueInUse>

const eventOf = (read: Result.Result<JsonObject, EnvelopeError>, taskId: string | undefined): string | undefined =>
  Result.isSuccess(read) && (taskId === undefined || read.success["task_id"] === taskId)
    ? JSON.stringify(read.success)
    : undefined

const prefetch = 1_000

const quietMs = 250

const firstMessageWaitMs = 1_000
