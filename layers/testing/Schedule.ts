/**
 * The kinds of operation that the kit sees. Each operation of a run has a number, from 1, over all workers.
 *
 * - `delivery`: the broker hands a message to the worker, before the handler runs.
 * - `publish`: a publish of the handler or of the consumer, such as a status, a retry or a dead letter.
 * - `settlement`: the acknowledgement, the rejection or the return of a delivery.
 * - `redis`: a Redis command or script.
 * - `step`: an effect that is wrapped with `step`.
 */
export type OperationKind = "delivery" | "publish" | "settlement" | "redis" | "step"

/** An operation of a run, as the history of the run shows it. */
export interface Operation {
  /** From 1. Counts the operations of all workers, also of those that have crashed. */
  readonly number: number
  readonly kind: OperationKind
  /** For example `the step “charge o1”`. */
  readonly label: string
  /** For example `the worker`, or `worker 2` in a check with several workers. */
  readonly worker: string
  /** Virtual milliseconds since the start of the run. */
  readonly startedAt: number
}

/**
 * The fault at an operation.
 *
 * - `crash before`, `crash after`: the worker is gone there, without finalizers, and another one starts a second later.
 * - `disconnect before`, `disconnect after`: the worker loses its connection to the broker and reconnects at once. The
 *   broker delivers all unsettled messages again. After a publish, the broker has the message and the confirm is lost.
 * - `fail before`, `fail after`: the operation fails without having been carried out, or after it has been. The broker
 *   refuses the publish, or stores it without a confirm. Redis is unreachable, or its reply is lost. A step fails.
 * - `delay before`, `delay after`: the operation begins late, or its result arrives late, by the `delay` of the check.
 * - `hang`: the step never returns. After 30 minutes, the connection is lost, as RabbitMQ's consumer timeout does it. A
 *   search tries `hang` alone, not in combinations.
 * - `duplicate`: the queue holds a second copy of the message.
 * - `reorder`: the message moves to the end of its queue. A redelivered message returns to its queue as RabbitMQ returns
 *   it: to the end of a quorum queue, and to its former position in a classic queue.
 */
export type FaultKind =
  | "crash before"
  | "crash after"
  | "disconnect before"
  | "disconnect after"
  | "fail before"
  | "fail after"
  | "delay before"
  | "delay after"
  | "hang"
  | "duplicate"
  | "reorder"

/** A fault at the operation with the number `at`. It is a no-op if the run has no such operation. */
export interface Fault {
  readonly at: number
  readonly what: FaultKind
}

/** Everything that decides the course of a run. The seed decides the random numbers of the worker. */
export interface Schedule {
  readonly seed: number
  readonly faults: ReadonlyArray<Fault>
}

const atSettlements: ReadonlyArray<FaultKind> = ["crash before", "crash after", "disconnect before", "disconnect after"]

const atCalls: ReadonlyArray<FaultKind> = [...atSettlements, "fail before", "fail after", "delay before", "delay after"]

/** The faults that are possible at each kind of operation, in the order in which a search tries them. */
export const faultsAt: Readonly<Record<OperationKind, ReadonlyArray<FaultKind>>> = {
  delivery: ["crash before", "disconnect before", "duplicate", "reorder"],
  publish: atCalls,
  settlement: atSettlements,
  redis: atCalls,
  step: [...atCalls, "hang"]
}

/** Returns the fault as a sentence. */
export const sentenceOf = (what: FaultKind, { kind, label, number, worker }: Operation, delay: string): string => {
  const text = (): string => {
    switch (what) {
      case "crash before":
      case "crash after":
        return `${worker} crashes ${what.slice(6)} ${label}`
      case "disconnect before":
        return `${worker} loses its connection to the broker before ${label}`
      case "disconnect after":
        return kind === "publish"
          ? `${worker} loses its connection to the broker after ${label}, before the confirm`
          : `${worker} loses its connection to the broker after ${label}`
      case "fail before":
        return kind === "publish" ? `the broker refuses ${label}` : `${label} fails before it is carried out`
      case "fail after":
        return kind === "step"
          ? `${label} is carried out and then fails`
          : `${label} is carried out, but its answer is lost`
      case "delay before":
        return `${label} begins ${delay} late`
      case "delay after":
        return `the result of ${label} arrives ${delay} late`
      case "hang":
        return `${label} never returns`
      case "duplicate":
        return `the queue holds ${messageOf(label)} twice`
      case "reorder":
        return `${messageOf(label)} moves to the end of its queue`
    }
  }
  return `${capitalized(text())} (operation ${number}).`
}

/** The message of a delivery, by the label of the delivery. */
const messageOf = (label: string): string => label.replace("the delivery of ", "")

export const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
