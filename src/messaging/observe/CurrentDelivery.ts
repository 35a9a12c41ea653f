import { Context } from "effect"
import type { Fields } from "../../services/Broker.ts"

/** A worker's attempt to handle a task. Statuses of the task carry it in their headers. */
export interface CurrentDelivery {
  readonly taskId: string
  readonly queue: string
  readonly worker: string
  readonly attempt: number
  /** The exception of the attempt, once it has failed. */
  readonly errorClass?: string
}

/** The delivery that the current fiber handles. Set only for workers that report to a `ControlStore`. */
export const CurrentDelivery = Context.Reference<CurrentDelivery | undefined>("svc/messaging/CurrentDelivery", {
  defaultValue: () => undefined
})

const [queueHeader, workerHeader, attemptHeader, errorHeader] = [
  "x-svc-queue",
  "x-svc-worker",
  "x-svc-attempt",
  "x-svc-error-class"
]

/** The headers for a status of `taskId`. A status of another task says nothing about this delivery. */
export const headersOf = (current: CurrentDelivery | undefined, taskId: string): Fields | undefined =>
  current === undefined || current.taskId !== taskId
    ? undefined
    : {
        [queueHeader]: current.queue,
        [workerHeader]: current.worker,
        [attemptHeader]: current.attempt,
        ...(current.errorClass !== undefined && { [errorHeader]: current.errorClass.slice(0, 255) })
      }

/** The delivery that a status names in its headers. A field is `null` if its header is missing or invalid. */
export interface DeliveryFacts {
  readonly queue: string | null
  readonly worker: string | null
  readonly attempt: number | null
  readonly errorClass: string | null
}

export const factsOf = (headers: Fields = {}): DeliveryFacts => {
  const text = (name: string) => {
    const value = headers[name]
    return typeof value === "string" && value !== "" ? value.slice(0, 255) : null
  }
  const attempt = headers[attemptHeader]
  return {
    queue: text(queueHeader),
    worker: text(workerHeader),
    attempt:
      typeof attempt === "number" && Number.isInteger(attempt) && attempt >= 0 && attempt < 2 ** 31 ? attempt : null,
    errorClass: text(errorHeader)
  }
}
