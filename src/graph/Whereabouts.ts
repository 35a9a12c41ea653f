import { isOfAggregation } from "../messaging/envelope/StatusEvent.ts"
import type { DeadLetterSummary } from "../status/dead-letters/DeadLetterStore.ts"
import { type Instant, unknown } from "./Drawing.ts"
import { instantOf, type Seen, type SeenStatus } from "./Evidence.ts"
import type { Inboxes } from "./Inboxes.ts"

/** Where a task is, as far as its evidence tells. */
export type Whereabouts =
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
  | { readonly _tag: "Unknown"; readonly missing: ReadonlyArray<Missing> }

/** What a worker met, as far as it was kept. */
export interface Exception {
  readonly type: string | null
  readonly message: string | null
}

export const noException: Exception = { type: null, message: null }

/** What would tell more, if it were there. */
export type Missing = "status" | "observations" | "queue_of_the_task"

export interface TaskEvidence {
  readonly inboxes: Inboxes
  /** In the order of time. */
  readonly observations: ReadonlyArray<Seen>
  readonly statuses: ReadonlyArray<SeenStatus>
  readonly deadLetters: ReadonlyArray<DeadLetterSummary>
  /** It is somebody's parent or child: without evidence of its own, that is no reason to look for it in a queue. */
  readonly isRelated: boolean
  readonly isTerminal: (status: string) => boolean
}

export const whereabouts = (evidence: TaskEvidence): Whereabouts => {
  const { inboxes, isTerminal, observations, statuses } = evidence
  // what a worker of aggregation says of the task's part is no progress of the task
  const last = statuses.findLast((one) => isTerminal(one.status) || !isOfAggregation(one)) ?? statuses.at(-1)
  const ended = last !== undefined && isTerminal(last.status) ? last : undefined
  const letter = latestLetter(evidence.deadLetters)
  const { acked, aggregated, open, received } = followed(observations, inboxes)
  const seen = open.at(-1)
  if (seen !== undefined && !(ended !== undefined && ended.at >= seen.when.at && seen._tag !== "DeadLettered")) {
    return seen._tag === "DeadLettered" ? recorded(seen, letter) : seen
  }
  if (letter !== undefined && !wentOn(letter, ended, acked)) return recorded(undefined, letter)
  if (ended !== undefined) return { _tag: "Finished", status: ended.status, when: ended }
  if (last?.status.toLowerCase() === "manual_retrying" && !wasTaken(last, received, acked)) {
    return queued(inboxes.ofTask(targetOf(last)), last)
  }
  if (acked !== undefined) {
    const status = last === undefined ? null : { text: last.status, when: last }
    return { _tag: "Acknowledged", status, aggregated, when: acked }
  }
  const missing = [...(last === undefined ? (["status"] as const) : []), "observations" as const]
  const inbox = inboxes.ofTask(undefined)
  // somebody works on it who keeps no observations, or it was never published, as parents often are not
  return last !== undefined || evidence.isRelated || aggregated || inbox === undefined
    ? { _tag: "Unknown", missing }
    : queued(inbox, unknown)
}

/** A dead letter is recorded, and its status published, at about the same time. */
const recordedWithin = 10_000_000
/** Who hands over says so, and acknowledges then. */
const handOverWithin = 10_000_000

type Open = Exclude<Whereabouts, { readonly _tag: "Finished" | "Acknowledged" | "Unknown" }>

const queued = (queue: string | undefined, when: Instant): Whereabouts =>
  queue === undefined ? { _tag: "Unknown", missing: ["queue_of_the_task"] } : { _tag: "Queued", queue, when }

/**
 * Every message of the task that is not done, those that changed last at the end. Messages of workflows are known by their
 * ids, tasks by their queue; retries and dead letters tell the queue alone.
 */
const followed = (observations: ReadonlyArray<Seen>, inboxes: Inboxes) => {
  const open = new Map<string, Open>()
  const met = new Set<string>()
  /** In the order of `open`, with some that went on since. */
  const inQueue = new Map<string | null, Array<readonly [key: string, where: Open]>>()
  const put = (key: string, where: Open) => {
    open.delete(key)
    open.set(key, where)
    met.add(key)
    if (!("queue" in where)) return
    const placed = inQueue.get(where.queue)
    if (placed === undefined) inQueue.set(where.queue, [[key, where]])
    else placed.push([key, where])
  }
  const lastIn = (queue: string | null): string => {
    const placed = inQueue.get(queue) ?? []
    for (let last = placed.at(-1); last !== undefined; last = placed.at(-1)) {
      const [key, where] = last
      if (open.get(key) === where) return key
      placed.pop()
    }
    return queue ?? ""
  }
  let [acked, received]: [Seen | undefined, Seen | undefined] = [undefined, undefined]
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
      put(key, { _tag: "BeingHandled", queue, consumer, attempt: seen.count("retry_attempt"), when: seen })
    } else if (/(MessageAcked|StageAcked)$/.test(seen.type)) {
      open.delete(key)
      // what was aggregated may be the progress of a task that its worker is not done with
      if (seen.type === "AggregationMessageAcked") aggregated = true
      else acked = seen
    } else if (seen.type === "TaskMessageRejected" || /(StageFailed|HandlerFailed)$/.test(seen.type)) {
      if (seen.type !== "TaskMessageRejected") exceptions.set(queue, exceptionOf(seen))
      const exception = exceptions.get(queue) ?? noException
      // with retries, what becomes of it is told next
      if (queue !== null && seen.flag("requeue")) put(key, { _tag: "Queued", queue, when: seen })
      else put(key, { _tag: "Rejected", queue, reason: reason ?? exception.type, exception, when: seen })
    } else if (seen.type === "WorkflowMessagePublished") {
      const stage = seen.text("stage") ?? "unknown"
      const inbox = inboxes.ofStage(stage, queue)
      // its publisher waits for the broker's word, and its receiver does not
      if (met.has(key)) continue
      put(
        key,
        inbox === undefined ? { _tag: "Published", stage, when: seen } : { _tag: "Queued", queue: inbox, when: seen }
      )
    } else if (/RetryScheduled$/.test(seen.type)) {
      put(lastIn(source), {
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
      put(lastIn(source), { _tag: "DeadLettered", queue, dlqId: null, reason, exception, when: seen })
    }
  }
  return { open: [...open.values()], acked, aggregated, received }
}

/** Whether somebody else had the task since it was handed over; by its acknowledgement where no receipt was kept. */
const wasTaken = (handOver: Instant, received: Instant | undefined, acked: Instant | undefined): boolean =>
  received === undefined ? acked !== undefined && acked.at > handOver.at + handOverWithin : received.at > handOver.at

const latestLetter = (deadLetters: ReadonlyArray<DeadLetterSummary>) =>
  deadLetters
    .map((record) => ({ record, when: instantOf(record.replayed_at ?? record.dead_lettered_at) }))
    .reduce<Letter | undefined>(
      (one, other) => (one === undefined || other.when.at > one.when.at ? other : one),
      undefined
    )

/** What is known of the task is later than its dead letter, or than the replay of it. */
const wentOn = ({ record, when }: Letter, ended: Instant | undefined, acked: Instant | undefined): boolean =>
  record.state === "replayed"
    ? Math.max(ended?.at ?? 0, acked?.at ?? 0) >= when.at
    : ended !== undefined && ended.at > when.at + recordedWithin

interface Letter {
  readonly record: DeadLetterSummary
  readonly when: Instant
}

/** A dead letter with its record; one that was replayed is on its way again. */
const recorded = (
  seen: (Open & { readonly _tag: "DeadLettered" }) | undefined,
  letter: Letter | undefined
): Whereabouts => {
  if (letter !== undefined && (seen === undefined || letter.when.at >= seen.when.at - recordedWithin)) {
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

const exceptionOf = (seen: Seen): Exception => ({
  type: seen.text("exception_type"),
  // empty where it is not to be kept
  message: seen.text("exception_message") || null
})

const recordedException = ({ exception_message, exception_type }: DeadLetterSummary): Exception => ({
  type: exception_type,
  message: exception_message ?? null
})

const targetOf = ({ meta }: SeenStatus): string | undefined => {
  const lineage = meta["manual_retry"]
  if (typeof lineage !== "object" || lineage === null || !("target_task_type" in lineage)) return undefined
  return typeof lineage.target_task_type === "string" ? lineage.target_task_type : undefined
}
