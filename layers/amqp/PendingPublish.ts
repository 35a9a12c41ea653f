import { Effect } from "effect"
import type { Outcome, Publication } from "../../src/services/Broker.ts"

export type PublishRequest = Omit<Publication, "purpose">
export type OutcomeCallback = (outcome: Effect.Effect<Outcome>) => void

/** A publish whose outcome is not known yet. The caller may stop waiting for it. */
export class PendingPublish {
  readonly publication: PublishRequest
  readonly expiresAt: number
  returnReason: string | undefined
  /** True if an earlier channel may have stored the message without a reliable confirmation. */
  mayBeStored = false
  #onOutcome: OutcomeCallback | undefined

  constructor(publication: PublishRequest, expiresAt: number, onOutcome: OutcomeCallback) {
    this.publication = publication
    this.expiresAt = expiresAt
    this.#onOutcome = onOutcome
  }

  get isAwaited(): boolean {
    return this.#onOutcome !== undefined
  }

  resolve(outcome: Effect.Effect<Outcome>): void {
    this.#onOutcome?.(outcome)
    this.#onOutcome = undefined
  }

  /** This attempt stored nothing. The outcome is unknown if an earlier attempt may have stored the message. */
  resolveNotStored(outcome: Effect.Effect<Outcome>, words: string): void {
    this.resolve(this.mayBeStored ? unknown("lost", words) : outcome)
  }

  abandon(): void {
    this.#onOutcome = undefined
  }
}

export const confirmed: Effect.Effect<Outcome> = Effect.succeed({ _tag: "Confirmed" })

export const returned = (detail: string): Effect.Effect<Outcome> => Effect.succeed({ _tag: "Returned", detail })

export const refused = (
  reason: Extract<Outcome, { readonly _tag: "Refused" }>["reason"],
  detail: string
): Effect.Effect<Outcome> => Effect.succeed({ _tag: "Refused", reason, detail })

export const nackedMessage = "The broker could not store the message: a queue is full or failing"

export const nacked = refused("nacked", nackedMessage)

export const unknown = (reason: "lost" | "deadline", detail: string): Effect.Effect<Outcome> =>
  Effect.succeed({ _tag: "Unknown", reason, detail })

export const deadlineExceeded = (within: number) => unknown("deadline", `RabbitMQ did not answer within ${within} ms`)
