import type { ApiError } from "../../api/ApiError.ts"
import type { BrokerState, DeadLetterQueue, HubState, QueueView, WorkerReport } from "../../api/TaskTypes.ts"
import { sentenceOfLateHub } from "../../shared/tasks/lateHub.ts"
import { countedText, durationText } from "../../shared/words/format.ts"
import type { Meaning } from "../../shared/words/StatusWord.tsx"

export interface Alarm {
  readonly id: string
  readonly meaning: Meaning
  readonly word: string
  readonly sentence: string
  /** The queue that it is about. */
  readonly queue?: string
  /** An alarm about dead letters leads to these letters instead of the tasks of the queue. */
  readonly letters?: "open" | "replayed"
}

interface Evidence {
  readonly broker: BrokerState | undefined
  readonly hub: HubState | undefined
  readonly queues: ReadonlyArray<QueueView>
  /** The index of dead letters. `undefined`: it is not known. */
  readonly letters: ReadonlyArray<DeadLetterQueue> | undefined
  readonly workers: ReadonlyArray<WorkerReport>
  /** Why something cannot be read, by what it is. */
  readonly errors: Readonly<Record<string, ApiError | null>>
  readonly now: number
}

/** A worker reports itself once a second. */
const silentMs = 5_000

/** What needs somebody now, the worst first. */
export const alarmsOf = ({ broker, errors, hub, letters, now, queues, workers }: Evidence): ReadonlyArray<Alarm> => [
  ...storeAlarms(errors),
  ...brokerAlarms(broker),
  ...hubAlarms(hub),
  ...queues.flatMap(queueAlarm).sort((one, other) => rank(one) - rank(other)),
  ...queues.flatMap((queue) => deadAlarms(queue, letters)),
  ...workers.flatMap((worker) => workerAlarm(worker, now))
]

const order: ReadonlyArray<Meaning> = ["bad", "warning", "idle"]
const rank = ({ meaning }: Alarm): number => order.indexOf(meaning)

const storeAlarms = (errors: Evidence["errors"]): ReadonlyArray<Alarm> => {
  const found = Object.entries(errors).flatMap(([what, error]) => (error === null ? [] : [{ what, error }]))
  const store = found.find(({ error }) => error.status === 503)
  // each of them fails for the same reason
  if (store !== undefined) return [{ id: "store", meaning: "bad", word: "Redis", sentence: store.error.message }]
  return found.map(({ error, what }) => ({
    id: `store ${what}`,
    meaning: "warning",
    word: "not known",
    sentence: `The ${what} cannot be read, so an alarm may be missing here: ${error.message}`
  }))
}

const brokerAlarms = (broker: BrokerState | undefined): ReadonlyArray<Alarm> =>
  broker === undefined || broker.state === "connected"
    ? []
    : [{ id: "broker", meaning: "bad", word: `broker ${broker.state}`, sentence: broker.detail }]

const hubAlarms = (hub: HubState | undefined): ReadonlyArray<Alarm> => {
  const sentence = hub && sentenceOfLateHub(hub)
  return sentence === undefined ? [] : [{ id: "hub", meaning: "warning", word: "statuses are late", sentence }]
}

const queueAlarm = (view: QueueView): ReadonlyArray<Alarm> => {
  const { consumers, oldest_age, paused, queue, ready, reporting_consumers, state } = view
  const waiting = ready === 1 ? "1 message waits" : `${ready ?? "Some"} messages wait`
  const about = { id: queue, queue, word: state }
  switch (state) {
    case "no consumer":
      return ready === 0
        ? [{ ...about, meaning: "warning", sentence: "Nobody consumes from it. Nothing waits yet." }]
        : [{ ...about, meaning: "bad", sentence: `${waiting}, and nobody consumes from it: start its worker.` }]
    case "stalled": {
      const age = oldest_age === null ? "" : `, the oldest for ${durationText(oldest_age.seconds * 1_000)}`
      return [
        {
          ...about,
          meaning: "bad",
          sentence: `${waiting}${age}. ${countedText(consumers ?? 0, "consumer finishes", "consumers finish")} none of them.`
        }
      ]
    }
    case "growing":
      return [
        {
          ...about,
          meaning: "warning",
          sentence: `${waiting}: more come than ${countedText(consumers ?? 0, "consumer finishes", "consumers finish")}.`
        }
      ]
    case "paused":
      return [
        {
          ...about,
          meaning: "idle",
          sentence: `${paused?.by ?? "Somebody"} has paused it: ${paused?.reason ?? ""}${reporting_consumers > view.stopped_consumers ? " – some consumers still take messages" : ""}`
        }
      ]
    case "unknown":
      return [{ ...about, meaning: "warning", sentence: "The broker does not tell its numbers." }]
    case "resuming":
    // the alarm of the broker is told once, and not for each queue
    case "alarm":
    case "well":
      return []
  }
}

/**
 * Messages of a dead-letter queue that wait for somebody, and those that were replayed or archived since. Without the
 * index nobody knows how many of them wait (`null`).
 */
export const deadCounts = (
  { dead, dead_letter_queue }: Pick<QueueView, "dead" | "dead_letter_queue">,
  letters: ReadonlyArray<DeadLetterQueue> | undefined
): { readonly open: number | null; readonly settled: number } => {
  const messages = dead ?? 0
  if (letters === undefined) return { open: messages === 0 ? 0 : null, settled: 0 }
  const index = letters.find(({ queue_name }) => queue_name === dead_letter_queue)
  if (index === undefined) return { open: messages, settled: 0 }
  const { archived_count, indexed_count, open_count, unknown_count } = index
  const withoutRecord = Math.max(0, messages - indexed_count - archived_count)
  const open = open_count + unknown_count + withoutRecord
  return { open, settled: Math.max(0, messages - open) }
}

const deadAlarms = (view: QueueView, letters: ReadonlyArray<DeadLetterQueue> | undefined): ReadonlyArray<Alarm> => {
  const { queue } = view
  const { open, settled } = deadCounts(view, letters)
  return [
    ...(open === null || open === 0
      ? []
      : [
          {
            id: `${queue} dead`,
            meaning: "warning" as const,
            word: "dead letters",
            sentence: `${countedText(open, "message of it has failed for good and waits", "messages of it have failed for good and wait")} in its dead-letter queue.`,
            queue,
            letters: "open" as const
          }
        ]),
    ...(settled === 0
      ? []
      : [
          {
            id: `${queue} replayed`,
            meaning: "idle" as const,
            word: "replayed",
            sentence: `${countedText(settled, "message that was replayed or archived is", "messages that were replayed or archived are")} still in its dead-letter queue, and can be removed.`,
            queue,
            letters: "replayed" as const
          }
        ])
  ]
}

const workerAlarm = ({ seen_at, worker }: WorkerReport, now: number): ReadonlyArray<Alarm> => {
  const silent = now - Date.parse(seen_at)
  return silent < silentMs
    ? []
    : [
        {
          id: worker,
          meaning: "warning",
          word: "silent worker",
          sentence: `${worker} has not reported for ${durationText(silent)}.`
        }
      ]
}
