import type { BrokerError } from "../../../src/services/Broker.ts"

const replyTexts = {
  403: "ACCESS_REFUSED",
  404: "NOT_FOUND",
  405: "RESOURCE_LOCKED",
  406: "PRECONDITION_FAILED",
  540: "NOT_IMPLEMENTED",
  541: "INTERNAL_ERROR"
} as const

type ReplyCode = keyof typeof replyTexts

const reasons: Readonly<Partial<Record<ReplyCode, BrokerError["reason"]>>> = {
  403: "denied",
  404: "not_found",
  405: "locked",
  406: "mismatch"
}

/** The error of a refused request, with RabbitMQ's message. RabbitMQ closes the channel after such an error. */
export class ChannelException extends Error {
  readonly reason: BrokerError["reason"]

  constructor(code: ReplyCode, detail: string) {
    super(`${replyTexts[code]} - ${detail}`)
    this.reason = reasons[code] ?? "refused"
  }
}

export const refuse = (code: ReplyCode, detail: string): never => {
  throw new ChannelException(code, detail)
}

export const describeResource = (kind: "queue" | "exchange", name: string): string => `${kind} '${name}' in vhost '/'`

export const refuseMissing = (kind: "queue" | "exchange", name: string): never =>
  refuse(404, `no ${describeResource(kind, name)}`)
