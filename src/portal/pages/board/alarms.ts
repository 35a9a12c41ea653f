import type { ApiError } from "../../api/ApiError.ts"
import type { BrokerState, QueueView, WorkerReport } from "../../api/TaskTypes.ts"
import { durationText } from "../../shared/words/format.ts"
import type { Meaning } from "../../shared/words/StatusWord.tsx"

export interface Alarm {
  readonly id: string
  readonly meaning: Meaning
  readonly word: string
  readonly sentence: string
  /** The queue that it is about. */
  readonly queue?: string
}

interface Evidence {
  readonly broker: BrokerState | undefined
  readonly queues: ReadonlyArray<QueueView>
  readonly workers: ReadonlyArray<WorkerReport>
  readonly error: ApiError | null
  readonly now: number
}

/** A worker reports itself once a second. */
const silentMs = 5_000

/** What needs somebody now, the worst first. */
export const alarmsOf = ({ broker, error, now, queues, workers }: Evidence): ReadonlyArray<Alarm> => [
  ...storeAlarms(error),
  ...brokerAlarms(broker),
  ...queues.flatMap(queueAlarm).sort((one, other) => rank(one) - rank(other)),
  ...queues.flatMap(deadAlarm),
  ...workers.flatMap((worker) => workerAlarm(worker, now))
]

const order: ReadonlyArray<Meaning> = ["bad", "warning", "idle"]
const rank = ({ meaning }: Alarm): number => order.indexOf(meaning)

const storeAlarms = (error: ApiError | null): ReadonlyArray<Alarm> =>
  error === null
    ? []
    : error.status === 503
      ? [{ id: "store", meaning: "bad", word: "Redis", sentence: error.message }]
      : [
          {
            id: "store",
            meaning: "warning",
            word: "not known",
            sentence: `The queues cannot be read, so an alarm may be missing here: ${error.message}`
          }
        ]

const brokerAlarms = (broker: BrokerState | undefined): ReadonlyArray<Alarm> =>
  broker === undefined || broker.state === "connected"
    ? []
    : [{ id: "broker", meaning: "bad", word: `broker ${broker.state}`, sentence: broker.detail }]

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
      return [{ ...about, meaning: "bad", sentence: `${waiting}${age}. ${consumers} consumers finish none of them.` }]
    }
    case "growing":
      return [{ ...about, meaning: "warning", sentence: `${waiting}: more come than ${consumers} consumers finish.` }]
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
    case "well":
      return []
  }
}

const deadAlarm = ({ dead, queue }: QueueView): ReadonlyArray<Alarm> =>
  (dead ?? 0) === 0
    ? []
    : [
        {
          id: `${queue} dead`,
          meaning: "warning",
          word: "dead letters",
          sentence: `${dead === 1 ? "1 message of it has" : `${dead} messages of it have`} failed for good and wait in its dead-letter queue.`,
          queue
        }
      ]

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
