import { Clock, Deferred, Effect, Option, Result, Schema } from "effect"
import type { JsonObject } from "../../messaging/envelope/Envelope.ts"
import type { EnvelopeError } from "../../messaging/envelope/Errors.ts"
import type { StatusPlane } from "../../messaging/topology/StatusPlane.ts"
import type { Broker, BrokerError, Delivery } from "../../services/Broker.ts"
import * as StatusMessage from "../hub/StatusMessage.ts"
import { offsetOf } from "../hub/StreamCheckpoint.ts"

export interface ScanBounds {
  readonly seconds: number
  /** Events that match. */
  readonly matches: number
  /** Messages that are looked at. */
  readonly messages: number
  /** Of the events that match. */
  readonly bytes: number
}

export interface Scan {
  /** Default: every task. */
  readonly taskId?: string | undefined
  readonly startOffset: "first" | "last" | number
  readonly bounds: ScanBounds
}

export interface ScanResult {
  /** Canonical JSON objects, oldest first. */
  readonly events: ReadonlyArray<string>
  /** A bound ended it, or the broker stood still: there may be more. */
  readonly truncated: boolean
  /** Where it goes on: behind all that was looked at. None where that is not known, as of a queue that is no stream. */
  readonly nextOffset?: number | undefined
  /** Of the store alone, the oldest event that it keeps: what was before is gone. */
  readonly oldestOffset?: number | undefined
}

/** Somebody consumes the queue, and would get what a scan returns behind what came later. */
export class QueueInUse extends Schema.TaggedError<QueueInUse>()("QueueInUse", { queue: Schema.String }) {}

/**
 * Reads a status queue from an offset to its present end, on a channel of its own. It does not stop at a terminal status:
 * a task that was taken up again has others behind it. A stream stays as it is. What is read of any other queue goes back
 * to it, which is why no more than a prefetch of it can be seen, and only while it has no consumer. One that begins during
 * the scan is not noticed.
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
  // a broker that stands still is as quiet as one that has nothing more, but does not answer
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
  // first the consumer, then the channel: some clients return what is under way, and a stream dies of that
  yield* subscription.cancel
  const scanned: ScanResult = { events, truncated: Option.getOrElse(ended, () => true), nextOffset }
  return scanned
}, Effect.scoped) satisfies (...args: never) => Effect.Effect<ScanResult, BrokerError | QueueInUse>

/** None of one that is unreadable or another task's. */
const eventOf = (read: Result.Result<JsonObject, EnvelopeError>, taskId: string | undefined): string | undefined =>
  Result.isSuccess(read) && (taskId === undefined || read.success["task_id"] === taskId)
    ? JSON.stringify(read.success)
    : undefined

const prefetch = 1_000

/** So long without a message is the end of the queue. */
const quietMs = 250

/** A consumer may take longer to begin. */
const firstMessageWaitMs = 1_000
