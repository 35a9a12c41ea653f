import { Cause, Context, Effect, Layer, Metric, Queue, Schedule } from "effect"
import { Limits, type Reservation, type Settled } from "./Limits.ts"
import * as UsageRecord from "./UsageRecord.ts"

/**
 * The way of a usage record: settled into the queue in Redis before the client has the end of its answer, from there
 * into the database in batches. A process that dies loses no settled record, and a record that is written twice is
 * there once.
 */
export class UsageLog extends Context.Service<
  UsageLog,
  {
    /**
     * Settles the reservation and queues the record. While Redis does not answer, records are kept in memory, up to
     * 10,000 of them, and settled when it does.
     */
    readonly settle: (
      reservation: Reservation | undefined,
      used: Settled,
      record: UsageRecord.UsageRecord
    ) => Effect.Effect<void>
    /** False while the queue is so long that further records might be lost: then no request is admitted. */
    readonly hasRoom: () => boolean
  }
>()("svc/gateway/UsageLog") {
  static readonly layer = Layer.effect(
    UsageLog,
    Effect.gen(function* () {
      const limits = yield* Limits
      let queued = 0

      const settleNow = (reservation: Reservation | undefined, used: Settled, record: string) =>
        Effect.map(limits.settle(reservation, used, record), (length) => {
          queued = length
        })

      const backlog = yield* Queue.dropping<Effect.Effect<void>>(backlogLimit)
      const settleLater = (attempt: Effect.Effect<void, unknown>) =>
        Effect.gen(function* () {
          const kept = yield* Queue.offer(backlog, Effect.ignore(Effect.retry(attempt, untilRedisIsBack)))
          if (kept) return
          yield* Metric.update(lost, 1)
          yield* Effect.logError("a usage record is lost: Redis is gone and the backlog is full")
        })

      yield* Effect.addFinalizer(() =>
        Effect.flatMap(Queue.size(backlog), (left) =>
          left === 0 ? Effect.void : Effect.logError("usage records are lost: Redis did not come back", { left })
        )
      )
      yield* Effect.forkScoped(Effect.forever(Effect.flatten(Queue.take(backlog))))

      return UsageLog.of({
        settle: (reservation, used, record) => {
          const attempt = settleNow(reservation, used, UsageRecord.encode(record))
          return Effect.catchCause(attempt, (cause) =>
            Effect.andThen(
              Effect.logWarning("a usage record waits for Redis", { cause: Cause.squash(cause) }),
              settleLater(attempt)
            )
          )
        },
        hasRoom: () => queued < queueLimit
      })
    })
  )
}

const backlogLimit = 10_000
const queueLimit = 1_000_000

const untilRedisIsBack = Schedule.min([Schedule.exponential("50 millis"), Schedule.spaced("1 second")])

const lost = Metric.counter("gateway_usage_records_lost_total", { incremental: true })
