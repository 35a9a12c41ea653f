import type { Outcome, Publication } from "../../src/services/Broker.ts"
import { problemOf } from "../amqp/Messages.ts"
import type { Timers } from "./queues/Timers.ts"

export interface Limits {
  /** How many publishes may be unanswered. */
  readonly window: number
  /** Milliseconds, for the turn and the answer together. */
  readonly within: number
}

type Publishable = Omit<Publication, "purpose">

/** Sends to the broker; the answer comes later, or never. */
type Send = (publication: Publishable, answered: (outcome: Outcome) => void) => void

interface Publishing {
  readonly publication: Publishable
  readonly expiresAt: number
  /** `undefined`: answered, or nobody listens any more. */
  answer: ((outcome: Outcome) => void) | undefined
}

/** The publishes of one purpose: a window of unanswered ones, and a line of those who wait for their turn. */
export class Publisher {
  readonly #limits: Limits
  readonly #now: () => number
  readonly #timers: Timers
  readonly #waiting = new Set<Publishing>()
  readonly #sent = new Set<Publishing>()
  #send: Send | undefined
  #blocked: string | undefined
  #closed: string | undefined
  #isWatched = false

  constructor(limits: Limits, now: () => number, timers: Timers) {
    this.#limits = limits
    this.#now = now
    this.#timers = timers
  }

  /** The answer comes once, unless the caller leaves by calling what is returned. */
  publish(publication: Publishable, answer: (outcome: Outcome) => void): () => void {
    const problem = problemOf(publication)
    if (problem !== undefined || this.#closed !== undefined) {
      answer(refused(problem === undefined ? "closed" : "invalid", problem ?? this.#closed ?? ""))
      return () => {}
    }
    const publishing: Publishing = { publication, expiresAt: this.#now() + this.#limits.within, answer }
    this.#waiting.add(publishing)
    this.#pump()
    if (!this.#isWatched) this.#watch()
    return () => {
      publishing.answer = undefined
      this.#waiting.delete(publishing)
    }
  }

  attach(send: Send): void {
    this.#send = send
    this.#pump()
  }

  /** What was sent may have been stored; what was not waits for the next connection. */
  detach(why: string): void {
    this.#send = undefined
    this.#blocked = undefined
    for (const publishing of this.#sent) reply(publishing, { _tag: "Unknown", reason: "lost", detail: why })
    this.#sent.clear()
  }

  block(reason: string | undefined): void {
    this.#blocked = reason
    this.#pump()
  }

  close(why: string): void {
    this.#closed = why
    this.detach(why)
    for (const publishing of this.#waiting) reply(publishing, refused("closed", why))
    this.#waiting.clear()
    this.#timers.clear(this)
  }

  #pump(): void {
    for (const publishing of this.#waiting) {
      if (this.#send === undefined || this.#blocked !== undefined || this.#sent.size >= this.#limits.window) return
      this.#waiting.delete(publishing)
      this.#sent.add(publishing)
      this.#send(publishing.publication, (outcome) => {
        if (!this.#sent.delete(publishing)) return
        reply(publishing, outcome)
        this.#pump()
      })
    }
  }

  /** One alarm, for the oldest of all: none expires before those who came before it. */
  #watch(): void {
    const [waiting] = this.#waiting
    let sent: Publishing | undefined
    for (const publishing of this.#sent) {
      if (publishing.answer === undefined) continue
      sent = publishing
      break
    }
    const next = Math.min(sent?.expiresAt ?? Infinity, waiting?.expiresAt ?? Infinity)
    this.#isWatched = next !== Infinity
    if (this.#isWatched) this.#timers.set(this, next, () => this.#expire())
  }

  #expire(): void {
    const now = this.#now()
    const { within } = this.#limits
    for (const publishing of this.#sent) {
      if (publishing.expiresAt > now) break
      reply(publishing, { _tag: "Unknown", reason: "deadline", detail: `RabbitMQ did not answer within ${within} ms` })
    }
    for (const publishing of this.#waiting) {
      if (publishing.expiresAt > now) break
      this.#waiting.delete(publishing)
      reply(publishing, this.#turnless())
    }
    this.#watch()
  }

  #turnless(): Outcome {
    if (this.#blocked !== undefined) return refused("blocked", this.#blocked)
    const why = this.#send === undefined ? "not connected" : "the window was full"
    return refused("unreachable", `It was not sent within ${this.#limits.within} ms: ${why}`)
  }
}

const reply = (publishing: Publishing, outcome: Outcome): void => {
  const { answer } = publishing
  publishing.answer = undefined
  answer?.(outcome)
}

const refused = (reason: Extract<Outcome, { readonly _tag: "Refused" }>["reason"], detail: string): Outcome => ({
  _tag: "Refused",
  reason,
  detail
})
