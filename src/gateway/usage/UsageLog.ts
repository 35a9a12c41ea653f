import { Cause, Context, Effect, Exit, Layer, Metric, Queue, Schedule } from "effect"
import * as CallbackMetrics from "../../process/CallbackMetrics.ts"
import { shutdownSeconds } from "../../process/ShutdownTimeouts.ts"
import * as LogThrottle from "../../services/LogThrottle.ts"
import { Redis, type RedisError } from "../../services/Redis.ts"
import { usageQueue } from "../../state/UsageQueue.ts"
import type { UsageRecord } from "../../state/UsageRecord.ts"
import * as UsageRow from "../../state/UsageRow.ts"
import type { SettledUsage } from "../limits/SettlementCounters.ts"
import { type Reservation, UsageLimits } from "../limits/UsageLimits.ts"

/** Queues usage records in Redis before clients receive the end of their responses. `UsageWriter` stores them. */
export class UsageLog extends Context.Service<
  UsageLog,
  {
    /** Settles the reservation and queues the record. Up to 10,000 records wait in memory while Redis is down. */
    readonly settleUnsafe: (
      reservation: Reservation | undefined,
      used: SettledUsage,
      record: UsageRecord,
      done: () => void
    ) => void
    /** False if the queue cannot take another record. The gateway then refuses all requests. */
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

      // The backlog stays small. Once `hasRoom` is false, only requests that were already admitted add records.
      const backlog = yield* Queue.unbounded<Effect.Effect<void, RedisError>>()
      const settleLater = (attempt: Effect.Effect<void, RedisError>) =>
        Effect.suspend(() => {
          waiting++
          return Effect.asVoid(Queue.offer(backlog, attempt))
        })
      /** Settles the next waiting record. An interruption returns the record to the queue. */
      const settleNext = Effect.uninterruptibleMask((restore) =>
        Effect.gen(function* () {
          const attempt = yield* restore(Queue.take(backlog))
          yield* restore(
            Effect.retry(attempt, { schedule: redisRetrySchedule, while: ({ retryable }) => retryable })
          ).pipe(
            Effect.onInterrupt(() => Queue.offer(backlog, attempt)),
            // A record that Redis rejects permanently is dropped. Otherwise it would block all later records.
            Effect.catchTag("RedisError", (cause) =>
              Effect.logError("a usage record is lost, because Redis refuses it", { cause })
            )
          )
          waiting--
        })
      )

      // While `hasRoom` is false, no request updates `queued`. Polling notices when the queue drains.
      const refreshQueueLength = Effect.map(redis.command("LLEN", redis.key(usageQueue)), (length) => {
        queued = Number(length)
      })

      yield* Effect.addFinalizer(() =>
        Effect.suspend(() => (waiting === 0 ? Effect.void : Effect.ignore(settleNext))).pipe(
          Effect.repeat({ while: () => waiting > 0 }),
          Effect.interruptible,
          Effect.timeoutOption(`${shutdownSeconds.usageLog} seconds`),
          Effect.andThen(
            Effect.suspend(() =>
              waiting === 0
                ? Effect.void
                : Effect.logError("usage records are lost, because Redis did not recover before the shutdown", {
                    waiting
                  })
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
                  Effect.logWarning("usage records wait in memory, because Redis failed; retrying", {
                    cause,
                    waiting,
                    ...leftOut
                  })
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
  description: `Usage records of all gateways queued in Redis for the database; requests are refused from ${queueLimit} on`
})
const recordsUnsettled = Metric.gauge("gateway_usage_records_unsettled", {
  description: `Usage records in this process's memory that wait for Redis; requests are refused from ${backlogLimit} on`
})

const redisRetrySchedule = Schedule.min([Schedule.exponential("50 millis"), Schedule.spaced("1 second")])
