import type { BrokerError } from "../../../src/services/Broker.ts"

const names = {
  403: "ACCESS_REFUSED",
  404: "NOT_FOUND",
  405: "RESOURCE_LOCKED",
  406: "PRECONDITION_FAILED",
  540: "NOT_IMPLEMENTED",
  541: "INTERNAL_ERROR"
} as const

export type Code = keyof typeof names

const reasons: Readonly<Partial<Record<Code, BrokerError["reason"]>>> = {
  403: "denied",
  404: "not_found",
  405: "locked",
  406: "mismatch"
}

/** The broker says no, in its own words, and closes the channel. */
export class Refusal extends Error {
  readonly reason: BrokerError["reason"]

  constructor(code: Code, detail: string) {
    super(`${names[code]} - ${detail}`)
    this.reason = reasons[code] ?? "refused"
  }
}

export const refuse = (code: Code, detail: string): never => {
  throw new Refusal(code, detail)
}

export const at = (kind: "queue" | "exchange", name: string): string => `${kind} '${name}' in vhost '/'`

export const missing = (kind: "queue" | "exchange", name: string): never => refuse(404, `no ${at(kind, name)}`)
