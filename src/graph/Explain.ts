import { Schema } from "effect"
import type { WaitingQueue } from "../status/history/WaitingMessages.ts"
import * as WaitingMessages from "../status/history/WaitingMessages.ts"
import { join, part, SentencePart, say, textOf, timed, type Words } from "./SentenceParts.ts"
import type { Exception, TaskState } from "./TaskState.ts"

const N = Schema.NullOr(Schema.String)
const I = Schema.NullOr(Schema.Int)

const Verdict = Schema.Literals([
  /** The task has a terminal status, or it was acknowledged and has no statuses and no open children. */
  "finished",
  /** No message of the task is in progress, but its last status is not terminal. */
  "acknowledged",
  /** No message of the task is in progress, but some of its children may not be done. */
  "waiting_for_children",
  "dead_lettered",
  "rejected",
  "waiting_for_retry",
  "being_handled",
  "queued",
  "no_consumer",
  "no_queue",
  "unknown"
])

/**
 * Explains why a task is not done. `sentence` is for people, the other members are for programs. Times are ISO 8601.
 */
export const Explanation = Schema.Struct({
  task_id: Schema.String,
  verdict: Verdict,
  sentence: Schema.String,
  /** The sentence in parts, for readers that show its times and ids in another way. */
  sentence_parts: Schema.Array(SentencePart),
  /** The queue in which the task waits, or from which it was delivered. For a dead letter, its dead-letter queue. */
  queue_name: N,
  /** The time at which this state began. */
  since: N,
  /** The time at which a scheduled retry returns to its queue. */
  until: N,
  /** The number of ready messages in the queue. The task is one of them, so at most `ready` - 1 are before it. */
  ready: I,
  consumers: I,
  consumer_name: N,
  retry_attempt: I,
  max_retries: I,
  dlq_id: N,
  reason: N,
  /** The exception of the last failure, if its text was stored. */
  exception_type: N,
  exception_message: N,
  /** The last status of the task, if the verdict depends on it or is `unknown`. */
  status: N,
  /** The number of examined children. `null` without children, or while a message of the task is in progress. */
  children: I,
  /** The examined children that may not be done. */
  open_children: Schema.Array(Schema.Struct({ task_id: Schema.String, verdict: Verdict })),
  /** The data that would make the verdict more precise. */
  missing_evidence: Schema.Array(Schema.Literals(["status", "observations", "queue_of_the_task", "broker"]))
})
export type Explanation = typeof Explanation.Type

/** The length of a queue. `missing`: the queue does not exist. `unavailable`: no broker is provided or responds. */
export type Inspection = { readonly messages: number; readonly consumers: number } | "missing" | "unavailable"

export interface ExaminedChildren {
  readonly examined: number
  /** True if there are more children than were examined. */
  readonly hasMore: boolean
  readonly open: Explanation["open_children"]
}

export const noChildren: ExaminedChildren = { examined: 0, hasMore: false, open: [] }

/** Returns the children that may not be done. A child is done after its final status or its aggregation. */
export const openChildren = (
  children: ReadonlyArray<readonly [taskId: string, state: TaskState]>,
  now: number
): ExaminedChildren["open"] =>
  children.flatMap(([task_id, state]) => {
    const { verdict } = explain(task_id, state, emptyContext, now)
    const isDone = verdict === "finished" || (state._tag === "Acknowledged" && state.aggregated)
    return isDone ? [] : [{ task_id, verdict }]
  })

export const mayWaitForChildren = ({ _tag }: TaskState): boolean => _tag === "Acknowledged" || _tag === "Unknown"

interface ExplainContext {
  readonly inspection: Inspection
  readonly children: ExaminedChildren
  readonly status?: LastStatus | undefined
}

interface LastStatus {
  readonly status: string
  readonly timestamp: string | null
}

const emptyContext: ExplainContext = { inspection: "unavailable", children: noChildren }

/** Returns the queue whose length the explanation needs. A retry returns to its source queue when its delay ends. */
export const queueToInspect = (state: TaskState, now: number): string | undefined => {
  if (state._tag === "Queued") return state.queue
  return state._tag === "WaitingForRetry" && isDelayOver(state, now) ? (state.queue ?? undefined) : undefined
}

/** Explains the state of a task. `now` is in milliseconds since 1970. */
export const explain = (taskId: string, state: TaskState, context: ExplainContext, now: number): Explanation => {
  const explanation = explainState(taskId, state, context, now)
  const { status: last } = context
  if (explanation.verdict !== "unknown" || last === undefined) return withSentence(explanation)
  const lastWords = say`Its last status is ${part("quoted", last.status)}${timed("at", last.timestamp)}.`
  const words = joinSentences(explanation.words, lastWords)
  return withSentence({ ...explanation, words, status: last.status })
}

/** An explanation whose sentence is still in the words of `SentenceParts`. */
interface Explained extends Omit<Explanation, "sentence" | "sentence_parts"> {
  readonly words: Words
}

const withSentence = ({ words, ...explanation }: Explained): Explanation => ({
  ...explanation,
  sentence: textOf(words),
  sentence_parts: words
})

const explainState = (
  taskId: string,
  state: TaskState,
  { children, inspection }: ExplainContext,
  now: number
): Explained => {
  const base = { ...emptyExplanation, task_id: taskId }
  switch (state._tag) {
    case "Finished":
      return explainFinished(base, state)
    case "Acknowledged":
      return { ...explainAcknowledged(base, state, children), ...childrenFields(children) }
    case "DeadLettered":
      return explainDeadLettered(base, state)
    case "Rejected":
      return explainRejected(base, state)
    case "BeingHandled":
      return explainBeingHandled(base, state)
    case "WaitingForRetry":
      return explainWaiting(base, state, now, inspection)
    case "Queued":
      return explainQueued(base, state.queue, state.when.timestamp, inspection)
    case "Published":
      return explainPublished(base, state)
    case "Unknown":
      return {
        ...base,
        ...childrenFields(children),
        words: joinSentences(
          say`Its state is unknown. To determine it, the service needs ${state.missing.map((name) => `the ${name.replaceAll("_", " ")}`).join(" and ")}.`,
          childrenSentence(children)
        ),
        missing_evidence: state.missing
      }
  }
}

const explainFinished = (base: BaseExplanation, state: StateOf<"Finished">): Explained => {
  const { status, when } = state
  const words = say`It is done: its last status is ${part("quoted", status)}${timed("at", when.timestamp)}.`
  return { ...base, verdict: "finished", words, status, since: when.timestamp }
}

const explainDeadLettered = (base: BaseExplanation, state: StateOf<"DeadLettered">): Explained => {
  const { dlqId, exception, queue, reason, when } = state
  const name =
    dlqId === null
      ? say`It has no record, so it cannot be replayed before its queue is indexed (POST /dlq/queues/index).`
      : say`Replay it by its id ${part("dead_letter", dlqId)}.`
  const to = part("quoted", queue, "a queue")
  const words = say`It was dead-lettered${timed("at", when.timestamp)} to ${to} for ${cause(reason, exception)}. ${name}`
  return {
    ...base,
    verdict: "dead_lettered",
    words,
    queue_name: queue,
    dlq_id: dlqId,
    reason,
    ...exceptionOf(exception),
    since: when.timestamp
  }
}

const explainRejected = (base: BaseExplanation, state: StateOf<"Rejected">): Explained => {
  const { exception, queue, reason, when } = state
  const rejected = say`Its worker rejected it${timed("at", when.timestamp)} for ${cause(reason, exception)}.`
  const words = joinSentences(rejected, say`The worker has no retry policy.`)
  return {
    ...base,
    verdict: "rejected",
    words,
    queue_name: queue,
    reason,
    ...exceptionOf(exception),
    since: when.timestamp
  }
}

const explainBeingHandled = (base: BaseExplanation, state: StateOf<"BeingHandled">): Explained => {
  const { attempt, consumer, queue, when } = state
  const by = part("quoted", consumer, "a worker")
  const from = part("queue", queue, "its queue")
  const retry = attempt ? `, in retry ${attempt}` : ""
  return {
    ...base,
    verdict: "being_handled",
    words: say`${by} has been processing it${timed("since", when.timestamp)}, from ${from}${retry}.`,
    queue_name: queue,
    consumer_name: consumer,
    retry_attempt: attempt,
    since: when.timestamp
  }
}

const explainWaiting = (
  base: BaseExplanation,
  state: WaitingForRetry,
  now: number,
  inspection: Inspection
): Explained => {
  const { attempt, exception, maxRetries, queue, reason, retryQueue, when } = state
  const retry = { retry_attempt: attempt, max_retries: maxRetries, reason, ...exceptionOf(exception) }
  if (queue !== null && isDelayOver(state, now))
    return { ...explainQueued(base, queue, untilOf(state), inspection), ...retry }
  const until = untilOf(state)
  const number = `Retry ${attempt ?? "?"} of ${maxRetries ?? "?"}`
  const inQueue = part("quoted", retryQueue, "a retry queue")
  const end = until === null ? say`, whose delay is not known` : timed("until", until)
  const words = say`${number} waits in ${inQueue}${end}, because of ${cause(reason, exception)}.`
  return {
    ...base,
    ...retry,
    verdict: "waiting_for_retry",
    words,
    queue_name: retryQueue,
    since: when.timestamp,
    until
  }
}

const explainPublished = (base: BaseExplanation, state: StateOf<"Published">): Explained => {
  const { stage, when } = state
  const published = say`It was published to the stage ${part("quoted", stage)}${timed("at", when.timestamp)}.`
  const words = joinSentences(published, say`No worker has reported it, and the queue of the stage is unknown here.`)
  return {
    ...base,
    verdict: "queued",
    words,
    since: when.timestamp,
    missing_evidence: ["queue_of_the_task"]
  }
}

/** Explains a task about which nothing is stored. The task may be one of the messages that wait in a queue. */
export const explainUnknownTask = (taskId: string, waiting: ReadonlyArray<WaitingQueue>): Explanation => {
  const only = waiting.length === 1 ? waiting[0] : undefined
  return withSentence({
    ...emptyExplanation,
    task_id: taskId,
    words: say`There is no status, observation or dead letter of the task. ${WaitingMessages.sentence(waiting)}`,
    queue_name: only?.queue ?? null,
    ready: only?.ready ?? null,
    consumers: only?.consumers ?? null,
    missing_evidence: ["status", "observations"]
  })
}

const explainAcknowledged = (
  base: BaseExplanation,
  { status, when }: StateOf<"Acknowledged">,
  children: ExaminedChildren
): Explained => {
  const it = say`Its worker acknowledged it${timed("at", when.timestamp)}`
  const since = status === null ? when.timestamp : status.when.timestamp
  const partial = { ...base, status: status?.text ?? null, since }
  const soFar =
    status === null
      ? say`${it}, and it has no status.`
      : say`${it}, but its last status, ${part("quoted", status.text)}${timed("at", since)}, is not terminal.`
  if (children.open.length > 0) {
    return { ...partial, verdict: "waiting_for_children", words: joinSentences(soFar, childrenSentence(children)) }
  }
  if (status === null) return { ...partial, verdict: "finished", words: soFar }
  const end = say`Its final status is still to come, or its workers publish no terminal status.`
  return { ...partial, verdict: "acknowledged", words: joinSentences(soFar, childrenSentence(children), end) }
}

const childrenFields = ({ examined, open }: ExaminedChildren) => ({
  children: examined === 0 ? null : examined,
  open_children: open
})

const maxNamedChildren = 5

const childrenSentence = ({ examined, hasMore, open }: ExaminedChildren): Words => {
  if (examined === 0) return []
  const all = hasMore ? `the first ${examined}` : String(examined)
  if (open.length === 0) return say`Its children are done (${all}).`
  const named = open
    .slice(0, maxNamedChildren)
    .map(({ task_id, verdict }) => say`${part("task", task_id)} (${verdict.replaceAll("_", " ")})`)
  const others = open.length > maxNamedChildren ? " and others" : ""
  return say`Children that are not known to be done, ${open.length} of ${all}: ${join(named, ", ")}${others}.`
}

const joinSentences = (...all: ReadonlyArray<Words>): Words => join(all, " ")

/** Returns the delay that the name of a retry queue contains: see `RetryQueues`. */
export const delayMsOf = (retryQueue: string): number | undefined => {
  const found = /\.(\d{1,10})ms(?:\.quorum)?$/.exec(retryQueue)
  return found === null ? undefined : Number(found[1])
}

type StateOf<Tag extends TaskState["_tag"]> = TaskState & { readonly _tag: Tag }
type WaitingForRetry = StateOf<"WaitingForRetry">

const untilOf = ({ retryQueue, when }: WaitingForRetry): string | null => {
  const delayMs = retryQueue === null ? undefined : delayMsOf(retryQueue)
  return delayMs === undefined || when.timestamp === null ? null : new Date(when.at / 1000 + delayMs).toISOString()
}

const isDelayOver = (waiting: WaitingForRetry, now: number): boolean => {
  const until = untilOf(waiting)
  return until !== null && Date.parse(until) <= now
}

const explainQueued = (
  base: BaseExplanation,
  queue: string,
  from: string | null,
  inspection: Inspection
): Explained => {
  const waits = { ...base, queue_name: queue, since: from }
  const name = part("queue", queue)
  if (inspection === "missing") {
    const words = say`It should wait in ${name}, but this queue does not exist: start the worker that declares it.`
    return { ...waits, verdict: "no_queue", words }
  }
  if (inspection === "unavailable") {
    const words = say`It should wait in ${name}, but the broker does not report the length of this queue.`
    return { ...waits, verdict: "queued", words, missing_evidence: ["broker"] }
  }
  const { consumers, messages: ready } = inspection
  const counted = { ...waits, ready, consumers }
  if (consumers === 0) {
    const words = say`${name} has no consumer, and ${messagesAre(ready)} waiting in it: start its worker.`
    return { ...counted, verdict: "no_consumer", words }
  }
  if (ready === 0) {
    const words = say`No message waits in ${name}: one of its ${consumers} consumers has the task, or the task was never published.`
    return { ...counted, words, missing_evidence: ["observations"] }
  }
  const words = say`It waits in ${name}, after at most ${ready - 1} others, for one of ${consumers} consumers.`
  return { ...counted, verdict: "queued", words }
}

const messagesAre = (messages: number): string => (messages === 1 ? "1 message is" : `${messages} messages are`)

/** The maximum length of an exception message in `sentence`. The member `exception_message` is not shortened. */
const longestMessage = 200

const cause = (reason: string | null, { message, type }: Exception): Words => {
  const why = part("quoted", reason, "an unknown reason")
  const text =
    message === null ? [] : say`: ${part("quoted", message.slice(0, longestMessage).trim().replace(/\.$/, ""))}`
  return type === null || type === reason ? say`${why}${text}` : say`${why} (${part("quoted", type)}${text})`
}

const exceptionOf = ({ message, type }: Exception) => ({ exception_type: type, exception_message: message })

type BaseExplanation = typeof emptyExplanation & { readonly task_id: string }

const emptyExplanation: Omit<Explained, "task_id"> = {
  verdict: "unknown",
  words: [],
  queue_name: null,
  since: null,
  until: null,
  ready: null,
  consumers: null,
  consumer_name: null,
  retry_attempt: null,
  max_retries: null,
  dlq_id: null,
  reason: null,
  exception_type: null,
  exception_message: null,
  status: null,
  children: null,
  open_children: [],
  missing_evidence: []
}
