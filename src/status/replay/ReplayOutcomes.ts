import { Context, type Duration, Effect, Layer, Option, Schedule, Schema } from "effect"
import { isJsonObject } from "../../messaging/envelope/Envelope.ts"
import * as ReplayOrigin from "../../messaging/retry/ReplayOrigin.ts"
import * as LogThrottle from "../../services/LogThrottle.ts"
import type { RedisError } from "../../services/Redis.ts"
import { DeadLetterStore, type ProvenOutcome } from "../dead-letters/DeadLetterStore.ts"
import type { Followed } from "../dead-letters/OutcomeScripts.ts"
import * as Stored from "../dead-letters/StoredDeadLetter.ts"
import { StatusStore } from "../store/StatusStore.ts"
import { TerminalStatusSet } from "../store/TerminalStatusSet.ts"

export interface Options {
  /** The statuses that end a task. Default: `completed`, `failed` and `cancelled`. */
  readonly terminalStatuses?: TerminalStatusSet | undefined
  /** The time between two looks at replays without an outcome. Default: 500 milliseconds. */
  readonly lookEvery?: Duration.Input
}

/** Finds out what became of replays. */
export class ReplayOutcomes extends Context.Service<
  ReplayOutcomes,
  {
    /** Looks at one replayed record now, so that a reader sees what is known. */
    readonly look: (dlqId: string) => Effect.Effect<void, RedisError>
  }
>()("svc/status/ReplayOutcomes") {}

const recordsPerLook = 200
const concurrency = 16
/** The statuses of a task that are looked at, newest first. */
const statusesPerLook = 20

/**
 * Follows replayed messages until a status or another dead letter proves what became of them. The outcomes are stored
 * with the records. Any number of processes may do so at once, because noting an outcome twice changes nothing. Without
 * a `StatusStore`, only failures are found.
 */
export const layer = (options: Options = {}): Layer.Layer<ReplayOutcomes, never, DeadLetterStore> =>
  Layer.effect(
    ReplayOutcomes,
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      const statuses = yield* Effect.serviceOption(StatusStore)
      const { lookEvery = "500 millis", terminalStatuses = new TerminalStatusSet() } = options
      const logFailure = yield* LogThrottle.makePerMinute

      const lookAt = Effect.fnUntraced(function* (followed: Followed) {
        const outcome = (yield* failureOf(store, followed)) ?? (yield* endOf(statuses, followed, terminalStatuses))
        if (outcome !== undefined) yield* store.noteOutcome(followed, outcome)
      })
      const round = Effect.gen(function* () {
        const due = yield* store.follow({ limit: recordsPerLook })
        yield* Effect.forEach(due, lookAt, { concurrency, discard: true })
        return due.length === recordsPerLook
      }).pipe(Effect.repeat({ while: (more) => more }))

      yield* round.pipe(
        Effect.catch((error) =>
          logFailure((suppressed) =>
            Effect.logWarning(
              `Redis is unavailable, so the outcomes of replays are not known. They are looked at again later${suppressed}`,
              error.message
            )
          )
        ),
        Effect.catchDefect((defect) => Effect.logError("The outcomes of replays could not be looked at", defect)),
        Effect.repeat(Schedule.spaced(lookEvery)),
        Effect.forkScoped
      )
      return ReplayOutcomes.of({
        look: (dlqId) =>
          Effect.flatMap(store.follow({ id: dlqId }), (due) => Effect.forEach(due, lookAt, { discard: true }))
      })
    })
  )

/** Workers of earlier releases do not link a dead letter with the replay that it comes from, but its headers name it. */
const failureOf = Effect.fnUntraced(function* (store: DeadLetterStore["Service"], { id, later, replayedAt }: Followed) {
  for (const dlqId of later) {
    const record = yield* store.get(dlqId)
    const origin = record && Stored.originOf(record.headers)
    if (record === undefined || origin?.dlq_id !== id || origin.replayed_at !== replayedAt) continue
    return { _tag: "failed_again", kind: record.exception_type ?? record.reason, as: dlqId } satisfies ProvenOutcome
  }
  return undefined
})

/** Only a terminal status that names the replay proves that the replayed message, and no other one, was handled. */
const endOf = Effect.fnUntraced(function* (
  statuses: Option.Option<StatusStore["Service"]>,
  { id, replayedAt, taskId }: Followed,
  terminal: TerminalStatusSet
) {
  if (Option.isNone(statuses) || taskId === null) return undefined
  const { events } = yield* statuses.value.history(taskId, { limit: statusesPerLook })
  for (const { json, status } of events.toReversed()) {
    if (!terminal.has(status)) continue
    const origin = ReplayOrigin.ofMeta(metaOf(json))
    if (origin?.dlq_id !== id || origin.replayed_at !== replayedAt) continue
    if (origin.failed || isFailure(status)) {
      return { _tag: "failed_again", kind: status, as: null } satisfies ProvenOutcome
    }
    if (!isCancelled(status)) return { _tag: "handled" } satisfies ProvenOutcome
  }
  return undefined
})

const metaOf = (json: string): unknown => {
  const event = decodeJson(json)
  return Option.isSome(event) && isJsonObject(event.value) ? event.value["meta"] : undefined
}

const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))

/** A handler may publish the end of its task itself. */
const isFailure = (status: string): boolean =>
  ["failed", "error", "dead_lettered"].includes(status.trim().toLowerCase())

/** A task that was cancelled was neither handled nor did it fail. */
const isCancelled = (status: string): boolean => status.trim().toLowerCase() === "cancelled"
