import { BrokerError } from "../../src/services/Broker.ts"

type Operation = BrokerError["operation"]
type Reason = BrokerError["reason"]

/** amqplib wraps what the broker said: `Operation failed: QueueDeclare; 406 (PRECONDITION-FAILED) with message "…"`. */
const brokerReply = /(\d{3}) \([A-Z-]+\) with message "([\s\S]*)"$/

const text = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  // Both addresses of a host refused: Node leaves the text to the parts.
  return error instanceof AggregateError ? error.errors.map(text).join(", ") : error.message
}

/** The broker's own words, where it said any. */
export const messageOf = (error: unknown): string => brokerReply.exec(text(error))?.[2] ?? text(error)

/** The reply code of AMQP, where the broker gave one. */
export const replyCodeOf = (error: unknown): number | undefined => {
  const code = brokerReply.exec(text(error))?.[1]
  return code === undefined ? undefined : Number(code)
}

/** Whether a publish was what made the broker close the channel. */
export const isPublishError = (error: unknown): boolean =>
  error instanceof Error &&
  "classId" in error &&
  "methodId" in error &&
  error.classId === basicClass &&
  error.methodId === publishMethod

const basicClass = 60
const publishMethod = 40

const reasons: Readonly<Record<number, Reason>> = {
  320: "lost",
  403: "denied",
  404: "not_found",
  405: "locked",
  406: "mismatch"
}

/** With the code of a queue that is not there, which is another matter. */
const isDown = /^NOT_FOUND - home node .* is down or inaccessible$/

const lostStreamAdvice =
  "where this lasts and the node is up, the queue is a stream that RabbitMQ lost track of in a crash: the README says how it comes back"

export const toBrokerError = (operation: Operation, error: unknown): BrokerError => {
  const code = replyCodeOf(error)
  const words = messageOf(error)
  if (isDown.test(words))
    return new BrokerError({ operation, reason: "down", message: `${words}; ${lostStreamAdvice}` })
  const withoutReply = operation === "connect" ? "unreachable" : "lost"
  const reason = code === undefined ? withoutReply : (reasons[code] ?? "refused")
  return new BrokerError({ operation, reason, message: words })
}

/** It cannot be sent: amqplib threw while it encoded. */
export const toEncodingError = (operation: Operation, error: unknown): BrokerError =>
  error instanceof TypeError || error instanceof RangeError
    ? new BrokerError({ operation, reason: "refused", message: text(error) })
    : toBrokerError(operation, error)
