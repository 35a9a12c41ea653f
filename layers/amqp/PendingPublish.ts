import { Effect } from "effect"
import type { Outcome, Publication } from "../../src/services/Broker.ts"

export type PublishRequest = Omit<Publication, "purpose">
export type OutcomeCallback = (outcome: Effect.Effect<Outcome>) => void

/** A publish, until its caller has its outcome or has left. */
export class PendingPublish {
  readonly publication: PublishRequest
  readonly expiresAt: number
  returnReason: string | undefined
  /** A channel has confirmed it in vain, or was left before it answered. */
  mayBeStored = false
  #answer: OutcomeCallback | undefined

  constructor(publication: PublishRequest, expiresAt: number, answer: OutcomeCallback) {
    this.publication = publication
    this.expiresAt = expiresAt
    this.#answer = answer
  }

  get isAwaited(): boolean {
    return this.#answer !== undefined
  }

  resolve(outcome: Effect.Effect<Outcome>): void {
    this.#answer?.(outcome)
    this.#answer = undefined
  }

  /** As far as the channel of now knows. */
  resolveNotStored(outcome: Effect.Effect<Outcome>, words: string): void {
    this.resolve(this.mayBeStored ? unknown("lost", words) : outcome)
  }

  /** Nobody listens any more. */
  abandon(): void {
    this.#answer = undefined
  }
}

export const confirmed: Effect.Effect<Outcome> = Effect.succeed({ _tag: "Confirmed" })

export const returned = (detail: string): Effect.Effect<Outcome> => Effect.succeed({ _tag: "Returned", detail })

export const refused = (
  reason: Extract<Outcome, { readonly _tag: "Refused" }>["reason"],
  detail: string
): Effect.Effect<Outcome> => Effect.succeed({ _tag: "Refused", reason, detail })

export const nackedMessage = "The broker could not store it: a full queue, or a failing one"

export const nacked = refused("nacked", nackedMessage)

export const unknown = (reason: "lost" | "deadline", detail: string): Effect.Effect<Outcome> =>
  Effect.succeed({ _tag: "Unknown", reason, detail })

export const deadlineExceeded = (within: number) => unknown("deadline", `RabbitMQ did not answer within ${within} ms`)
