import type { Outcome, Publication } from "../../src/services/Broker.ts"
import { problemOf } from "../amqp/Messages.ts"
import type { Timers } from "./queues/Timers.ts"

export interface PublishLimits {
  readonly window: number
  /** The timeout of a publish in milliseconds, including its wait to be sent. */
  readonly timeoutMs: number
}

type Publishable = Omit<Publication, "purpose">

type Send = (publication: Publishable, onOutcome: (outcome: Outcome) => void) => void

interface PendingPublish {
  readonly publication: Publishable
  readonly expiresAt: number
  /** `undefined` after the outcome was reported or the caller stopped waiting. */
  onOutcome: ((outcome: Outcome) => void) | undefined
}

/** Limits the unconfirmed publishes of one purpose. Further publishes wait until others are confirmed. */
export class Publisher {
  readonly #limits: PublishLimits
  readonly #now: () => number
  readonly #timers: Timers
  readonly #waiting = new Set<PendingPublish>()
  readonly #unconfirmed = new Set<PendingPublish>()
  #send: Send | undefined
  #blocked: string | undefined
  #closed: string | undefined
  #isExpiryScheduled = false

  constructor(limits: PublishLimits, now: () => number, timers: Timers) {
    this.#limits = limits
    this.#now = now
    this.#timers = timers
  }

  /** Calls `onOutcome` once, unless the caller calls the returned function first. */
  publish(publication: Publishable, onOutcome: (outcome: Outcome) => void): () => void {
    const problem = problemOf(publication)
    if (problem !== undefined || this.#closed !== undefined) {
      onOutcome(refused(problem === undefined ? "closed" : "invalid", problem ?? this.#closed ?? ""))
      return () => {}
    }
    const publishing: PendingPublish = { publication, expiresAt: this.#now() + this.#limits.timeoutMs, onOutcome }
    this.#waiting.add(publishing)
    this.#sendWaiting()
    if (!this.#isExpiryScheduled) this.#scheduleExpiry()
    return () => {
      publishing.onOutcome = undefined
      this.#waiting.delete(publishing)
    }
  }

  attach(send: Send): void {
    this.#send = send
    this.#sendWaiting()
  }

  /** Sent messages end as `Unknown`, because they may be stored. Unsent messages wait for the next connection. */
  detach(why: string): void {
    this.#send = undefined
    this.#blocked = undefined
    for (const publishing of this.#unconfirmed) complete(publishing, { _tag: "Unknown", reason: "lost", detail: why })
    this.#unconfirmed.clear()
  }

  block(reason: string | undefined): void {
    this.#blocked = reason
    this.#sendWaiting()
  }

  close(why: string): void {
    this.#closed = why
    this.detach(why)
    for (const publishing of this.#waiting) complete(publishing, refused("closed", why))
    this.#waiting.clear()
    this.#timers.clear(this)
  }

  #sendWaiting(): void {
    for (const publishing of this.#waiting) {
      if (this.#send === undefined || this.#blocked !== undefined || this.#unconfirmed.size >= this.#limits.window)
        return
      this.#waiting.delete(publishing)
      this.#unconfirmed.add(publishing)
      this.#send(publishing.publication, (outcome) => {
        if (!this.#unconfirmed.delete(publishing)) return
        complete(publishing, outcome)
        this.#sendWaiting()
      })
    }
  }

  /** All publishes have the same timeout, so one timer for the oldest publish is enough. */
  #scheduleExpiry(): void {
    const [waiting] = this.#waiting
    let sent: PendingPublish | undefined
    for (const publishing of this.#unconfirmed) {
      if (publishing.onOutcome === undefined) continue
      sent = publishing
      break
    }
    const next = Math.min(sent?.expiresAt ?? Infinity, waiting?.expiresAt ?? Infinity)
    this.#isExpiryScheduled = next !== Infinity
    if (this.#isExpiryScheduled) this.#timers.set(this, next, () => this.#expire())
  }

  #expire(): void {
    const now = this.#now()
    const { timeoutMs } = this.#limits
    for (const publishing of this.#unconfirmed) {
      if (publishing.expiresAt > now) break
      complete(publishing, {
        _tag: "Unknown",
        reason: "deadline",
        detail: `RabbitMQ did not answer within ${timeoutMs} ms`
      })
    }
    for (const publishing of this.#waiting) {
      if (publishing.expiresAt > now) break
      this.#waiting.delete(publishing)
      complete(publishing, this.#unsentOutcome())
    }
    this.#scheduleExpiry()
  }

  #unsentOutcome(): Outcome {
    if (this.#blocked !== undefined) return refused("blocked", this.#blocked)
    const why = this.#send === undefined ? "not connected" : "too many publishes are unconfirmed"
    return refused("unreachable", `The message was not sent within ${this.#limits.timeoutMs} ms: ${why}`)
  }
}

const complete = (publishing: PendingPublish, outcome: Outcome): void => {
  const { onOutcome } = publishing
  publishing.onOutcome = undefined
  onOutcome?.(outcome)
}

const refused = (reason: Extract<Outcome, { readonly _tag: "Refused" }>["reason"], detail: string): Outcome => ({
  _tag: "Refused",
  reason,
  detail
})
