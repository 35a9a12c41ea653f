import { Cause, Context, Effect, Exit, Layer, Metric, Queue, Schedule } from "effect"
import * as CallbackMetrics from "../../process/CallbackMetrics.ts"
import * as LogThrottle from "../../services/LogThrottle.ts"
import { Redis, type RedisError } from "../../services/Redis.ts"
import { usageQueue } from "../../state/UsageQueue.ts"
import type { UsageRecord } from "../../state/UsageRecord.ts"
import * as UsageRow from "../../state/UsageRow.ts"
import type { SettledUsage } from "../limits/SettlementCounters.ts"
import { type Reservation, UsageLimits } from "../limits/UsageLimits.ts"

/**
 * The way of a usage record: settled into the queue in Redis before the client has the end of its answer, from there
 * into the database in batches. A process that dies loses no settled record, and a record that is written twice is
 * there once.
 */
export class UsageLog extends Context.Service<
  UsageLog,
  {
    /**
     * Settles the reservation and queues the record, then tells `done`. While Redis does not answer, records are kept
     * in memory, up to 10,000 of them, and settled when it does.
     */
    readonly settleUnsafe: (
      reservation: Reservation | undefined,
      used: SettledUsage,
      record: UsageRecord,
      done: () => void
    ) => void
    /** False while a further record might be lost, in Redis or in memory: then no request is admitted, nor recorded. */
    readonly hasRoom: () => boolean
  }
>()("svc/gateway/UsageLog") {
  static readonly layer = Layer.effect(
    UsageLog,
    Effect.gen(function* () {
      const limits = yield* UsageLimits
      const redis = yield* Redis
      const seldom = yield* LogThrottle.make
      const series = yield* CallbackMetrics.make
      let queued = 0
      let waiting = 0
      series.gauge(recordsQueued, () => queued)
      series.gauge(recordsUnsettled, () => waiting)

      const fork = Effect.runForkWith(yield* Effect.context<never>())

      const retrySettle = (reservation: Reservation | undefined, used: SettledUsage, record: string) =>
        Effect.map(
          Effect.callback<number, RedisError>((resume) => limits.settleUnsafe(reservation, used, record, resume)),
          (length) => {
            queued = length
          }
        )

      // bounded by `hasRoom`: beyond it come only the records of requests that were already admitted
      const backlog = yield* Queue.unbounded<Effect.Effect<void, RedisError>>()
      const settleLater = (attempt: Effect.Effect<void, RedisError>) =>
        Effect.suspend(() => {
          waiting++
          return Effect.asVoid(Queue.offer(backlog, attempt))
        })
      /** One of them. Interrupted, it waits again. */
      const settleNext = Effect.uninterruptibleMask((restore) =>
        Effect.gen(function* () {
          const attempt = yield* restore(Queue.take(backlog))
          yield* restore(
            Effect.retry(attempt, { schedule: redisRetrySchedule, while: ({ retryable }) => retryable })
          ).pipe(
            Effect.onInterrupt(() => Queue.offer(backlog, attempt)),
            // what Redis will never take must not hold up what it will
            Effect.catchTag("RedisError", (cause) =>
              Effect.logError("a usage record is lost: Redis refuses it", { cause })
            )
          )
          waiting--
        })
      )

      // nobody settles while nobody is admitted: the length must be asked for, or a full queue would stay full for ever
      const refreshQueueLength = Effect.map(redis.command("LLEN", redis.key(usageQueue)), (length) => {
        queued = Number(length)
      })

      yield* Effect.addFinalizer(() =>
        Effect.suspend(() => (waiting === 0 ? Effect.void : Effect.ignore(settleNext))).pipe(
          Effect.repeat({ while: () => waiting > 0 }),
          Effect.interruptible,
          Effect.timeoutOption(shutdownTimeout),
          Effect.andThen(
            Effect.suspend(() =>
              waiting === 0
                ? Effect.void
                : Effect.logError("usage records are lost: Redis did not come back", { waiting })
            )
          )
        )
      )
      yield* Effect.forkScoped(Effect.forever(Effect.ignore(settleNext)))
      yield* Effect.forkScoped(Effect.repeat(Effect.ignore(refreshQueueLength), Schedule.spaced("1 second")))

      return UsageLog.of({
        settleUnsafe: (reservation, used, record, done) => {
          const text = UsageRow.encode(record)
          limits.settleUnsafe(reservation, used, text, (exit) => {
            if (Exit.isSuccess(exit)) queued = exit.value
            else {
              fork(settleLater(retrySettle(reservation, used, text)))
              const cause = Cause.squash(exit.cause)
              fork(
                seldom("Redis", (leftOut) =>
                  Effect.logWarning("usage records wait for Redis", { cause, waiting, ...leftOut })
                )
              )
            }
            done()
          })
        },
        hasRoom: () => queued < queueLimit && waiting < backlogLimit
      })
    })
  )
}

const backlogLimit = 10_000
const queueLimit = 1_000_000

const recordsQueued = Metric.gauge("gateway_usage_records_queued", {
  description: `Usage records in Redis that wait for the database, of all gateways; from ${queueLimit} on requests are refused`
})
const recordsUnsettled = Metric.gauge("gateway_usage_records_unsettled", {
  description: `Usage records in this process's memory that wait for Redis; from ${backlogLimit} on requests are refused`
})

/** How long the end of the process is held for records that wait for Redis. */
const shutdownTimeout = "5 seconds"

const redisRetrySchedule = Schedule.min([Schedule.exponential("50 millis"), Schedule.spaced("1 second")])
