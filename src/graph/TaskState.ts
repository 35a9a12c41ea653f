import { isAggregationStatus } from "../messaging/envelope/StatusEvent.ts"
import type { DeadLetterSummary } from "../status/dead-letters/DeadLetterStore.ts"
import { instantOf, type RecordedObservation, type RecordedStatus } from "./draw/Evidence.ts"
import { type Instant, unknownInstant } from "./draw/GraphBuilder.ts"
import type { TaskQueues } from "./TaskQueues.ts"

export type TaskState =
  /** The task has a terminal status. An acknowledgement alone means only that one message is done. */
  | { readonly _tag: "Finished"; readonly status: string; readonly when: Instant }
  | {
      readonly _tag: "Acknowledged"
      readonly status: { readonly text: string; readonly when: Instant } | null
      /** True if an aggregation worker has processed an event of this task for its parent. */
      readonly aggregated: boolean
      readonly when: Instant
    }
  | {
      readonly _tag: "DeadLettered"
      readonly queue: string | null
      readonly dlqId: string | null
      readonly reason: string | null
      readonly exception: Exception
      readonly when: Instant
    }
  /** The worker has no retry policy, so the broker moved the message to a dead-letter exchange or dropped it. */
  | {
      readonly _tag: "Rejected"
      readonly queue: string | null
      readonly reason: string | null
      readonly exception: Exception
      readonly when: Instant
    }
  | {
      readonly _tag: "WaitingForRetry"
      readonly retryQueue: string | null
      readonly queue: string | null
      readonly attempt: number | null
      readonly maxRetries: number | null
      readonly reason: string | null
      readonly exception: Exception
      readonly when: Instant
    }
  | {
      readonly _tag: "BeingHandled"
      readonly queue: string | null
      readonly consumer: string | null
      readonly attempt: number | null
      readonly when: Instant
    }
  | { readonly _tag: "Queued"; readonly queue: string; readonly when: Instant }
  | { readonly _tag: "Published"; readonly stage: string; readonly when: Instant }
  | { readonly _tag: "Unknown"; readonly missing: ReadonlyArray<MissingEvidence> }

export interface Exception {
  readonly type: string | null
  readonly message: string | null
}

const noException: Exception = { type: null, message: null }

type MissingEvidence = "status" | "observations" | "queue_of_the_task"

interface TaskStateEvidence {
  readonly taskQueues: TaskQueues
  readonly observations: ReadonlyArray<RecordedObservation>
  readonly statuses: ReadonlyArray<RecordedStatus>
  readonly deadLetters: ReadonlyArray<DeadLetterSummary>
  /** True if the task is a parent or a child. Such a task may never have been in a queue. */
  readonly isRelated: boolean
  readonly isTerminal: (status: string) => boolean
}

export const taskState = (evidence: TaskStateEvidence): TaskState => {
  const { taskQueues, isTerminal, observations, statuses } = evidence
  // A status with an `aggregation_role` is input for the aggregation of the parent. Unless it is terminal, it does not
  // count as progress of this task.
  const last = statuses.findLast((one) => isTerminal(one.status) || !isAggregationStatus(one)) ?? statuses.at(-1)
  const terminalStatus = last !== undefined && isTerminal(last.status) ? last : undefined
  const deadLetter = latestDeadLetter(evidence.deadLetters)
  const { acked, aggregated, open, received } = followMessages(observations, taskQueues)
  const latestOpen = open.at(-1)
  if (
    latestOpen !== undefined &&
    !(terminalStatus !== undefined && terminalStatus.at >= latestOpen.when.at && latestOpen._tag !== "DeadLettered")
  ) {
    return latestOpen._tag === "DeadLettered" ? withRecord(latestOpen, deadLetter) : latestOpen
  }
  if (deadLetter !== undefined && !hasLaterProgress(deadLetter, terminalStatus, acked))
    return withRecord(undefined, deadLetter)
  if (terminalStatus !== undefined) return { _tag: "Finished", status: terminalStatus.status, when: terminalStatus }
  if (last?.status.toLowerCase() === "manual_retrying" && !wasReceivedSince(last, received, acked)) {
    return queuedIn(taskQueues.ofTask(targetTaskType(last)), last)
  }
  if (acked !== undefined) {
    const status = last === undefined ? null : { text: last.status, when: last }
    return { _tag: "Acknowledged", status, aggregated, when: acked }
  }
  const missing = [...(last === undefined ? (["status"] as const) : []), "observations" as const]
  const inbox = taskQueues.ofTask(undefined)
  // A task without any events probably waits in its queue. But if it has a status, its worker may store no
  // observations. If it is a parent or a child, it may never have been published.
  return last !== undefined || evidence.isRelated || aggregated || inbox === undefined
    ? { _tag: "Unknown", missing }
    : queuedIn(inbox, unknownInstant)
}

/** The maximum time between writing the record of a dead letter and writing its status. */
const recordingMicros = 10_000_000
const handOverMicros = 10_000_000

type OpenState = Exclude<TaskState, { readonly _tag: "Finished" | "Acknowledged" | "Unknown" }>

const queuedIn = (queue: string | undefined, when: Instant): TaskState =>
  queue === undefined ? { _tag: "Unknown", missing: ["queue_of_the_task"] } : { _tag: "Queued", queue, when }

/**
 * Returns the messages in progress. The most recently changed message is the last one. Observations of retries and dead
 * letters have no message id, so they are applied to the latest message of their source queue.
 */
const followMessages = (observations: ReadonlyArray<RecordedObservation>, inboxes: TaskQueues) => {
  const open = new Map<string, OpenState>()
  const knownKeys = new Set<string>()
  /** May contain outdated states. `latestKeyIn` skips them. */
  const statesByQueue = new Map<string | null, Array<readonly [key: string, state: OpenState]>>()
  const setState = (key: string, state: OpenState) => {
    open.delete(key)
    open.set(key, state)
    knownKeys.add(key)
    if (!("queue" in state)) return
    const states = statesByQueue.get(state.queue)
    if (states === undefined) statesByQueue.set(state.queue, [[key, state]])
    else states.push([key, state])
  }
  const latestKeyIn = (queue: string | null): string => {
    const states = statesByQueue.get(queue) ?? []
    for (let last = states.at(-1); last !== undefined; last = states.at(-1)) {
      const [key, state] = last
      if (open.get(key) === state) return key
      states.pop()
    }
    return queue ?? ""
  }
  let [acked, received]: [RecordedObservation | undefined, RecordedObservation | undefined] = [undefined, undefined]
  let aggregated = false
  /** The last exception on each queue. The later observation of the retry or dead letter does not contain it. */
  const exceptions = new Map<string | null, Exception>()
  for (const observation of observations) {
    const queue = observation.text("queue_name")
    const key = observation.text("message_id") ?? queue ?? ""
    const source = observation.text("source_queue_name")
    const reason = observation.text("reason")
    if (/MessageReceived$/.test(observation.type)) {
      // An aggregation worker receives an event of the task, not the task itself.
      if (observation.type !== "AggregationMessageReceived") received = observation
      const consumer = observation.text("consumer_name")
      setState(key, {
        _tag: "BeingHandled",
        queue,
        consumer,
        attempt: observation.count("retry_attempt"),
        when: observation
      })
    } else if (/(MessageAcked|StageAcked)$/.test(observation.type)) {
      open.delete(key)
      // An aggregation worker acknowledges an event of the task. The task itself may still be in progress.
      if (observation.type === "AggregationMessageAcked") aggregated = true
      else acked = observation
    } else if (observation.type === "TaskMessageRejected" || /(StageFailed|HandlerFailed)$/.test(observation.type)) {
      if (observation.type !== "TaskMessageRejected") exceptions.set(queue, exceptionOf(observation))
      const exception = exceptions.get(queue) ?? noException
      // If the worker has a retry policy, the next observation replaces this state.
      if (queue !== null && observation.flag("requeue")) setState(key, { _tag: "Queued", queue, when: observation })
      else setState(key, { _tag: "Rejected", queue, reason: reason ?? exception.type, exception, when: observation })
    } else if (observation.type === "WorkflowMessagePublished") {
      const stage = observation.text("stage") ?? "unknown"
      const inbox = inboxes.ofStage(stage, queue)
      // The receipt may be observed before the publish, because the publisher waits for the confirm of the broker.
      if (knownKeys.has(key)) continue
      setState(
        key,
        inbox === undefined
          ? { _tag: "Published", stage, when: observation }
          : { _tag: "Queued", queue: inbox, when: observation }
      )
    } else if (/RetryScheduled$/.test(observation.type)) {
      setState(latestKeyIn(source), {
        _tag: "WaitingForRetry",
        retryQueue: queue,
        queue: source,
        attempt: observation.count("retry_attempt"),
        maxRetries: observation.count("max_retries"),
        reason,
        exception: exceptions.get(source) ?? noException,
        when: observation
      })
    } else if (/DeadLetterPublished$/.test(observation.type)) {
      const exception = exceptions.get(source) ?? noException
      setState(latestKeyIn(source), { _tag: "DeadLettered", queue, dlqId: null, reason, exception, when: observation })
    }
  }
  return { open: [...open.values()], acked, aggregated, received }
}

/** Returns whether a worker received the task after `handOver`. Without any receipt, an acknowledgement counts. */
const wasReceivedSince = (handOver: Instant, received: Instant | undefined, acked: Instant | undefined): boolean =>
  received === undefined ? acked !== undefined && acked.at > handOver.at + handOverMicros : received.at > handOver.at

const latestDeadLetter = (deadLetters: ReadonlyArray<DeadLetterSummary>) =>
  deadLetters
    .map((record) => ({ record, when: instantOf(record.replayed_at ?? record.dead_lettered_at) }))
    .reduce<DatedDeadLetter | undefined>(
      (one, other) => (one === undefined || other.when.at > one.when.at ? other : one),
      undefined
    )

const hasLaterProgress = (
  { record, when }: DatedDeadLetter,
  ended: Instant | undefined,
  acked: Instant | undefined
): boolean =>
  record.state === "replayed"
    ? Math.max(ended?.at ?? 0, acked?.at ?? 0) >= when.at
    : ended !== undefined && ended.at > when.at + recordingMicros

interface DatedDeadLetter {
  readonly record: DeadLetterSummary
  readonly when: Instant
}

/** Adds the record of a dead letter. If the record was replayed, the task is queued again. */
const withRecord = (
  observation: (OpenState & { readonly _tag: "DeadLettered" }) | undefined,
  deadLetter: DatedDeadLetter | undefined
): TaskState => {
  if (
    deadLetter !== undefined &&
    (observation === undefined || deadLetter.when.at >= observation.when.at - recordingMicros)
  ) {
    const { dlq_id: dlqId, queue_name: queue, reason, replay_target_queue_name: target, state } = deadLetter.record
    return state === "replayed" && target !== null
      ? { _tag: "Queued", queue: target, when: deadLetter.when }
      : {
          _tag: "DeadLettered",
          queue,
          dlqId,
          reason,
          exception: recordedException(deadLetter.record),
          when: observation?.when ?? deadLetter.when
        }
  }
  return observation ?? { _tag: "Unknown", missing: ["observations"] }
}

const exceptionOf = (observation: RecordedObservation): Exception => ({
  type: observation.text("exception_type"),
  message: observation.text("exception_message") || null
})

const recordedException = ({ exception_message, exception_type }: DeadLetterSummary): Exception => ({
  type: exception_type,
  message: exception_message ?? null
})

const targetTaskType = ({ meta }: RecordedStatus): string | undefined => {
  const lineage = meta["manual_retry"]
  if (typeof lineage !== "object" || lineage === null || !("target_task_type" in lineage)) return undefined
  return typeof lineage.target_task_type === "string" ? lineage.target_task_type : undefined
}
