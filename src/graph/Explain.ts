import { Schema } from "effect"
import type { WaitingQueue } from "../status/history/WaitingMessages.ts"
import * as WaitingMessages from "../status/history/WaitingMessages.ts"
import type { Exception, Whereabouts } from "./Whereabouts.ts"

const N = Schema.NullOr(Schema.String)
const I = Schema.NullOr(Schema.Int)

const Verdict = Schema.Literals([
  /** It has a terminal status; or it was acknowledged, and nobody said anything of it or of children. */
  "finished",
  /** Nothing of it is under way that was seen, and its last status is not terminal. */
  "acknowledged",
  /** The same, or it said nothing, and children of it are not known to be done. */
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

/** Why a task is not done, for programs and, in `sentence`, for people. Times are ISO 8601. */
export const Explanation = Schema.Struct({
  task_id: Schema.String,
  verdict: Verdict,
  sentence: Schema.String,
  /** Where it waits or is worked on; of a dead letter, its queue. */
  queue_name: N,
  /** Since when it is so. */
  since: N,
  /** Of a retry: when it leaves its queue. */
  until: N,
  /** How many messages its queue holds that nobody has taken: at most so many are before it. */
  ready: I,
  consumers: I,
  consumer_name: N,
  retry_attempt: I,
  max_retries: I,
  dlq_id: N,
  reason: N,
  /** Of what its worker met last, where it was kept. */
  exception_type: N,
  exception_message: N,
  /** The last status of the task, where the verdict rests on it or nothing better is known. */
  status: N,
  /** How many children were looked at: those of a task of which nothing is under way that was seen. */
  children: I,
  /** Those of them that are not known to be done. */
  open_children: Schema.Array(Schema.Struct({ task_id: Schema.String, verdict: Verdict })),
  /** What would tell more: `status`, `observations`, `queue_of_the_task`, `broker`. */
  missing_evidence: Schema.Array(Schema.Literals(["status", "observations", "queue_of_the_task", "broker"]))
})
export type Explanation = typeof Explanation.Type

/** What the broker says of a queue. `unavailable`: nothing, for now. */
export type Inspection = { readonly messages: number; readonly consumers: number } | "missing" | "unavailable"

/** The children of a task, as far as they were looked at. */
export interface Children {
  readonly looked: number
  /** There are others, which were too many. */
  readonly more: boolean
  readonly open: Explanation["open_children"]
}

export const noChildren: Children = { looked: 0, more: false, open: [] }

/** The tasks of those that are not known to be done. One that gave its part to its parent has done its own. */
export const openChildren = (
  children: ReadonlyArray<readonly [taskId: string, where: Whereabouts]>,
  now: number
): Children["open"] =>
  children.flatMap(([task_id, where]) => {
    const { verdict } = explain(task_id, where, unseen, now)
    const isDone = verdict === "finished" || (where._tag === "Acknowledged" && where.aggregated)
    return isDone ? [] : [{ task_id, verdict }]
  })

/** Whether they may be what it waits for. */
export const childrenSayMore = ({ _tag }: Whereabouts): boolean => _tag === "Acknowledged" || _tag === "Unknown"

/** What was looked at beside the whereabouts of the task. */
export interface Looked {
  readonly inspection: Inspection
  readonly children: Children
  /** The last status of the task. */
  readonly status?: LastStatus | undefined
}

export interface LastStatus {
  readonly status: string
  readonly timestamp: string | null
}

const unseen: Looked = { inspection: "unavailable", children: noChildren }

/** The queue whose state tells more. A retry whose delay is over is in its source queue again. */
export const queueToInspect = (where: Whereabouts, now: number): string | undefined => {
  if (where._tag === "Queued") return where.queue
  return where._tag === "WaitingForRetry" && isOver(where, now) ? (where.queue ?? undefined) : undefined
}

/** `now`: epoch milliseconds. */
export const explain = (taskId: string, where: Whereabouts, looked: Looked, now: number): Explanation => {
  const told = fromWhereabouts(taskId, where, looked, now)
  const { status: last } = looked
  if (told.verdict !== "unknown" || last === undefined) return told
  const sentence = sentences(told.sentence, `Its last status is ${last.status}${at(last.timestamp)}.`)
  return { ...told, sentence, status: last.status }
}

const fromWhereabouts = (
  taskId: string,
  where: Whereabouts,
  { children, inspection }: Looked,
  now: number
): Explanation => {
  const said = { ...nothing, task_id: taskId }
  switch (where._tag) {
    case "Finished": {
      const { status, when } = where
      const sentence = `It is done: its last status is ${status}${at(when.timestamp)}.`
      return { ...said, verdict: "finished", sentence, status, since: when.timestamp }
    }
    case "Acknowledged":
      return { ...acknowledged(said, where, children), ...ofChildren(children) }
    case "DeadLettered": {
      const { dlqId, exception, queue, reason, when } = where
      const name = dlqId === null ? "It has no record to replay it by." : `Replay it by its id, ${dlqId}.`
      const sentence = `It was dead-lettered${at(when.timestamp)} to ${queue ?? "a queue"} for ${why(reason, exception)}. ${name}`
      return {
        ...said,
        verdict: "dead_lettered",
        sentence,
        queue_name: queue,
        dlq_id: dlqId,
        reason,
        ...exceptionOf(exception),
        since: when.timestamp
      }
    }
    case "Rejected": {
      const { exception, queue, reason, when } = where
      const sentence = `Its worker rejected it${at(when.timestamp)} for ${why(reason, exception)}, and has no retries.`
      return {
        ...said,
        verdict: "rejected",
        sentence,
        queue_name: queue,
        reason,
        ...exceptionOf(exception),
        since: when.timestamp
      }
    }
    case "BeingHandled": {
      const { attempt, consumer, queue, when } = where
      const by = consumer ?? "a worker"
      return {
        ...said,
        verdict: "being_handled",
        sentence: `${by} has been at work on it${since(when.timestamp)}, from ${queue ?? "its queue"}${attempt ? `, in retry ${attempt}` : ""}.`,
        queue_name: queue,
        consumer_name: consumer,
        retry_attempt: attempt,
        since: when.timestamp
      }
    }
    case "WaitingForRetry": {
      const { attempt, exception, maxRetries, queue, reason, retryQueue, when } = where
      const retry = { retry_attempt: attempt, max_retries: maxRetries, reason, ...exceptionOf(exception) }
      if (queue !== null && isOver(where, now)) return { ...inQueue(said, queue, untilOf(where), inspection), ...retry }
      const until = untilOf(where)
      const sentence = `Retry ${attempt ?? "?"} of ${maxRetries ?? "?"} waits in ${retryQueue ?? "a retry queue"}${
        until === null ? ", whose delay is not known" : ` until ${until}`
      }, because of ${why(reason, exception)}.`
      return {
        ...said,
        ...retry,
        verdict: "waiting_for_retry",
        sentence,
        queue_name: retryQueue,
        since: when.timestamp,
        until
      }
    }
    case "Queued":
      return inQueue(said, where.queue, where.when.timestamp, inspection)
    case "Published": {
      const { stage, when } = where
      const sentence = `It was published to the stage ${stage}${at(when.timestamp)}, whose queue is not known here, and nobody was seen to receive it.`
      return {
        ...said,
        verdict: "queued",
        sentence,
        since: when.timestamp,
        missing_evidence: ["queue_of_the_task"]
      }
    }
    case "Unknown":
      return {
        ...said,
        ...ofChildren(children),
        sentence: sentences(
          `It cannot be told: ${where.missing.map((name) => `the ${name.replaceAll("_", " ")}`).join(" and ")} would be needed.`,
          named(children)
        ),
        missing_evidence: where.missing
      }
  }
}

/** Of a task of which nothing is stored, while messages wait in the queues of workers. */
export const explainUnheardOf = (taskId: string, waiting: ReadonlyArray<WaitingQueue>): Explanation => {
  const only = waiting.length === 1 ? waiting[0] : undefined
  return {
    ...nothing,
    task_id: taskId,
    sentence: `Nothing was heard of it: no status, no observation, no dead letter. ${WaitingMessages.sentence(waiting)}`,
    queue_name: only?.queue ?? null,
    ready: only?.ready ?? null,
    consumers: only?.consumers ?? null,
    missing_evidence: ["status", "observations"]
  }
}

const acknowledged = (
  said: Blank,
  { status, when }: Whereabouts & { readonly _tag: "Acknowledged" },
  children: Children
): Explanation => {
  const it = `Its worker acknowledged it${at(when.timestamp)}`
  const since = status === null ? when.timestamp : status.when.timestamp
  const sofar = { ...said, status: status?.text ?? null, since }
  const told =
    status === null
      ? `${it}, and no status tells how it ended.`
      : `${it}, but its last status, ${status.text}${at(since)}, is not terminal.`
  if (children.open.length > 0) {
    return { ...sofar, verdict: "waiting_for_children", sentence: sentences(told, named(children)) }
  }
  if (status === null) return { ...sofar, verdict: "finished", sentence: told }
  const end = "What ends it is still to come, or its workers publish no terminal status."
  return { ...sofar, verdict: "acknowledged", sentence: sentences(told, named(children), end) }
}

const ofChildren = ({ looked, open }: Children) => ({ children: looked === 0 ? null : looked, open_children: open })

/** A sentence has room for so many. */
const mostNamed = 5

const named = ({ looked, more, open }: Children): string => {
  if (looked === 0) return ""
  const all = more ? `the first ${looked}` : String(looked)
  if (open.length === 0) return `Its children are done (${all}).`
  const names = open.slice(0, mostNamed).map(({ task_id, verdict }) => `${task_id} (${verdict.replaceAll("_", " ")})`)
  const others = open.length > mostNamed ? " and others" : ""
  return `Children that are not known to be done, ${open.length} of ${all}: ${names.join(", ")}${others}.`
}

const sentences = (...all: ReadonlyArray<string>): string => all.filter((one) => one !== "").join(" ")

/** Retry queues bear their delay in their names, as `RetryQueues` gives them. */
export const delayMsOf = (retryQueue: string): number | undefined => {
  const found = /\.(\d{1,10})ms(?:\.quorum)?$/.exec(retryQueue)
  return found === null ? undefined : Number(found[1])
}

type Waiting = Whereabouts & { readonly _tag: "WaitingForRetry" }

const untilOf = ({ retryQueue, when }: Waiting): string | null => {
  const delayMs = retryQueue === null ? undefined : delayMsOf(retryQueue)
  return delayMs === undefined || when.timestamp === null ? null : new Date(when.at / 1000 + delayMs).toISOString()
}

const isOver = (waiting: Waiting, now: number): boolean => {
  const until = untilOf(waiting)
  return until !== null && Date.parse(until) <= now
}

const inQueue = (said: Blank, queue: string, from: string | null, inspection: Inspection): Explanation => {
  const waits = { ...said, queue_name: queue, since: from }
  if (inspection === "missing") {
    return { ...waits, verdict: "no_queue", sentence: `It should wait in ${queue}, and there is no such queue.` }
  }
  if (inspection === "unavailable") {
    const sentence = `It should wait in ${queue}; the broker does not say now how long that queue is.`
    return { ...waits, verdict: "queued", sentence, missing_evidence: ["broker"] }
  }
  const { consumers, messages: ready } = inspection
  const counted = { ...waits, ready, consumers }
  if (consumers === 0) {
    return {
      ...counted,
      verdict: "no_consumer",
      sentence: `Nobody consumes ${queue}, in which ${many(ready)} waiting.`
    }
  }
  if (ready === 0) {
    const sentence = `Nothing waits in ${queue}, so that one of its ${consumers} consumers has it, or nobody ever published it.`
    return { ...counted, sentence, missing_evidence: ["observations"] }
  }
  const sentence = `It waits in ${queue}, behind at most ${ready - 1} others, for one of ${consumers} consumers.`
  return { ...counted, verdict: "queued", sentence }
}

const many = (messages: number): string => (messages === 1 ? "1 message is" : `${messages} messages are`)

/** A sentence has room for so much of a message; its member has all of it. */
const longestMessage = 200

const why = (reason: string | null, { message, type }: Exception): string => {
  const text = message === null ? "" : `: ${message.slice(0, longestMessage).trim().replace(/\.$/, "")}`
  if (type === null || type === reason) return `${reason ?? "an unknown reason"}${text}`
  return `${reason ?? "an unknown reason"} (${type}${text})`
}

const exceptionOf = ({ message, type }: Exception) => ({ exception_type: type, exception_message: message })

const at = (timestamp: string | null): string => (timestamp === null ? "" : ` at ${timestamp}`)
const since = (timestamp: string | null): string => (timestamp === null ? "" : ` since ${timestamp}`)

type Blank = typeof nothing & { readonly task_id: string }

const nothing: Omit<Explanation, "task_id"> = {
  verdict: "unknown",
  sentence: "",
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
