import { BrokerError } from "../../src/services/Broker.ts"

type Operation = BrokerError["operation"]
type Reason = BrokerError["reason"]

/** Finds the broker's reply in amqplib's message: `…; 406 (PRECONDITION-FAILED) with message "…"`. */
const brokerReply = /(\d{3}) \([A-Z-]+\) with message "([\s\S]*)"$/

const text = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  // If all addresses of a host refuse the connection, Node's `AggregateError` has no message.
  return error instanceof AggregateError ? error.errors.map(text).join(", ") : error.message
}

export const messageOf = (error: unknown): string => brokerReply.exec(text(error))?.[2] ?? text(error)

export const replyCodeOf = (error: unknown): number | undefined => {
  const code = brokerReply.exec(text(error))?.[1]
  return code === undefined ? undefined : Number(code)
}

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

/** RabbitMQ reports both a missing queue and a queue whose node is down as 404. Only the text differs. */
const isDown = /^NOT_FOUND - home node .* is down or inaccessible$/

const lostStreamAdvice =
  "if this error persists while the node is up, RabbitMQ lost track of a stream in a crash; src/messaging/README.md describes the recovery"

export const toBrokerError = (operation: Operation, error: unknown): BrokerError => {
  const code = replyCodeOf(error)
  const words = messageOf(error)
  if (isDown.test(words))
    return new BrokerError({ operation, reason: "down", message: `${words}; ${lostStreamAdvice}` })
  const withoutReply = operation === "connect" ? "unreachable" : "lost"
  const reason = code === undefined ? withoutReply : (reasons[code] ?? "refused")
  return new BrokerError({ operation, reason, message: words })
}

export const toEncodingError = (operation: Operation, error: unknown): BrokerError =>
  error instanceof TypeError || error instanceof RangeError
    ? new BrokerError({ operation, reason: "refused", message: text(error) })
    : toBrokerError(operation, error)
