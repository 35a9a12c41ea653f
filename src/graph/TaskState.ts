import { isAggregationStatus } from "../messaging/envelope/StatusEvent.ts"
import type { DeadLetterSummary } from "../status/dead-letters/DeadLetterStore.ts"
import { instantOf, type RecordedObservation, type RecordedStatus } from "./Evidence.ts"
import { type Instant, unknownInstant } from "./GraphBuilder.ts"
import type { TaskQueues } from "./TaskQueues.ts"

/** Where a task is, as far as its evidence tells. */
export type TaskState =
  /** By a terminal status: an acknowledgement alone says only that a message of it is done. */
  | { readonly _tag: "Finished"; readonly status: string; readonly when: Instant }
  | {
      readonly _tag: "Acknowledged"
      /** Its last, which is not terminal. None: nobody said anything of it. */
      readonly status: { readonly text: string; readonly when: Instant } | null
      /** A worker of aggregation took what it gave to its parent. */
      readonly aggregated: boolean
      readonly when: Instant
    }
  | {
      readonly _tag: "DeadLettered"
      readonly queue: string | null
      /** None: it was observed, and is not recorded. */
      readonly dlqId: string | null
      readonly reason: string | null
      readonly exception: Exception
      readonly when: Instant
    }
  /** Its worker has no retries: it went to the queue's dead-letter exchange, or nowhere. */
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
  /** To a stage whose queue is not known. */
  | { readonly _tag: "Published"; readonly stage: string; readonly when: Instant }
  | { readonly _tag: "Unknown"; readonly missing: ReadonlyArray<MissingEvidence> }

/** What a worker met, as far as it was kept. */
export interface Exception {
  readonly type: string | null
  readonly message: string | null
}

export const noException: Exception = { type: null, message: null }

/** What would tell more, if it were there. */
export type MissingEvidence = "status" | "observations" | "queue_of_the_task"

export interface TaskStateEvidence {
  readonly taskQueues: TaskQueues
  /** In the order of time. */
  readonly observations: ReadonlyArray<RecordedObservation>
  readonly statuses: ReadonlyArray<RecordedStatus>
  readonly deadLetters: ReadonlyArray<DeadLetterSummary>
  /** It is somebody's parent or child: without evidence of its own, that is no reason to look for it in a queue. */
  readonly isRelated: boolean
  readonly isTerminal: (status: string) => boolean
}

export const taskState = (evidence: TaskStateEvidence): TaskState => {
  const { taskQueues, isTerminal, observations, statuses } = evidence
  // what a worker of aggregation says of the task's part is no progress of the task
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
  // somebody works on it who keeps no observations, or it was never published, as parents often are not
  return last !== undefined || evidence.isRelated || aggregated || inbox === undefined
    ? { _tag: "Unknown", missing }
    : queuedIn(inbox, unknownInstant)
}

/** A dead letter is recorded, and its status published, at about the same time. */
const recordingMicros = 10_000_000
/** Who hands over says so, and acknowledges then. */
const handOverMicros = 10_000_000

type OpenState = Exclude<TaskState, { readonly _tag: "Finished" | "Acknowledged" | "Unknown" }>

const queuedIn = (queue: string | undefined, when: Instant): TaskState =>
  queue === undefined ? { _tag: "Unknown", missing: ["queue_of_the_task"] } : { _tag: "Queued", queue, when }

/**
 * Every message of the task that is not done, those that changed last at the end. Messages of workflows are known by their
 * ids, tasks by their queue; retries and dead letters tell the queue alone.
 */
const followMessages = (observations: ReadonlyArray<RecordedObservation>, inboxes: TaskQueues) => {
  const open = new Map<string, OpenState>()
  const knownKeys = new Set<string>()
  /** In the order of `open`, with some that went on since. */
  const statesByQueue = new Map<string | null, Array<readonly [key: string, where: OpenState]>>()
  const setState = (key: string, where: OpenState) => {
    open.delete(key)
    open.set(key, where)
    knownKeys.add(key)
    if (!("queue" in where)) return
    const placed = statesByQueue.get(where.queue)
    if (placed === undefined) statesByQueue.set(where.queue, [[key, where]])
    else placed.push([key, where])
  }
  const latestKeyIn = (queue: string | null): string => {
    const placed = statesByQueue.get(queue) ?? []
    for (let last = placed.at(-1); last !== undefined; last = placed.at(-1)) {
      const [key, where] = last
      if (open.get(key) === where) return key
      placed.pop()
    }
    return queue ?? ""
  }
  let [acked, received]: [RecordedObservation | undefined, RecordedObservation | undefined] = [undefined, undefined]
  let aggregated = false
  /** Of each queue, what was met last on it: retries and dead letters are observed after what caused them. */
  const exceptions = new Map<string | null, Exception>()
  for (const seen of observations) {
    const queue = seen.text("queue_name")
    const key = seen.text("message_id") ?? queue ?? ""
    const source = seen.text("source_queue_name")
    const reason = seen.text("reason")
    if (/MessageReceived$/.test(seen.type)) {
      // the aggregator's bears the id of the task whose result it is, and is no worker's that the task was given to
      if (seen.type !== "AggregationMessageReceived") received = seen
      const consumer = seen.text("consumer_name")
      setState(key, { _tag: "BeingHandled", queue, consumer, attempt: seen.count("retry_attempt"), when: seen })
    } else if (/(MessageAcked|StageAcked)$/.test(seen.type)) {
      open.delete(key)
      // what was aggregated may be the progress of a task that its worker is not done with
      if (seen.type === "AggregationMessageAcked") aggregated = true
      else acked = seen
    } else if (seen.type === "TaskMessageRejected" || /(StageFailed|HandlerFailed)$/.test(seen.type)) {
      if (seen.type !== "TaskMessageRejected") exceptions.set(queue, exceptionOf(seen))
      const exception = exceptions.get(queue) ?? noException
      // with retries, what becomes of it is told next
      if (queue !== null && seen.flag("requeue")) setState(key, { _tag: "Queued", queue, when: seen })
      else setState(key, { _tag: "Rejected", queue, reason: reason ?? exception.type, exception, when: seen })
    } else if (seen.type === "WorkflowMessagePublished") {
      const stage = seen.text("stage") ?? "unknown"
      const inbox = inboxes.ofStage(stage, queue)
      // its publisher waits for the broker's word, and its receiver does not
      if (knownKeys.has(key)) continue
      setState(
        key,
        inbox === undefined ? { _tag: "Published", stage, when: seen } : { _tag: "Queued", queue: inbox, when: seen }
      )
    } else if (/RetryScheduled$/.test(seen.type)) {
      setState(latestKeyIn(source), {
        _tag: "WaitingForRetry",
        retryQueue: queue,
        queue: source,
        attempt: seen.count("retry_attempt"),
        maxRetries: seen.count("max_retries"),
        reason,
        exception: exceptions.get(source) ?? noException,
        when: seen
      })
    } else if (/DeadLetterPublished$/.test(seen.type)) {
      const exception = exceptions.get(source) ?? noException
      setState(latestKeyIn(source), { _tag: "DeadLettered", queue, dlqId: null, reason, exception, when: seen })
    }
  }
  return { open: [...open.values()], acked, aggregated, received }
}

/** Whether somebody else had the task since it was handed over; by its acknowledgement where no receipt was kept. */
const wasReceivedSince = (handOver: Instant, received: Instant | undefined, acked: Instant | undefined): boolean =>
  received === undefined ? acked !== undefined && acked.at > handOver.at + handOverMicros : received.at > handOver.at

const latestDeadLetter = (deadLetters: ReadonlyArray<DeadLetterSummary>) =>
  deadLetters
    .map((record) => ({ record, when: instantOf(record.replayed_at ?? record.dead_lettered_at) }))
    .reduce<DatedDeadLetter | undefined>(
      (one, other) => (one === undefined || other.when.at > one.when.at ? other : one),
      undefined
    )

/** What is known of the task is later than its dead letter, or than the replay of it. */
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

/** A dead letter with its record; one that was replayed is on its way again. */
const withRecord = (
  seen: (OpenState & { readonly _tag: "DeadLettered" }) | undefined,
  letter: DatedDeadLetter | undefined
): TaskState => {
  if (letter !== undefined && (seen === undefined || letter.when.at >= seen.when.at - recordingMicros)) {
    const { dlq_id: dlqId, queue_name: queue, reason, replay_target_queue_name: target, state } = letter.record
    return state === "replayed" && target !== null
      ? { _tag: "Queued", queue: target, when: letter.when }
      : {
          _tag: "DeadLettered",
          queue,
          dlqId,
          reason,
          exception: recordedException(letter.record),
          when: seen?.when ?? letter.when
        }
  }
  return seen ?? { _tag: "Unknown", missing: ["observations"] }
}

const exceptionOf = (seen: RecordedObservation): Exception => ({
  type: seen.text("exception_type"),
  // empty where it is not to be kept
  message: seen.text("exception_message") || null
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
