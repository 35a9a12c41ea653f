import { Effect } from "effect"
import type { Outcome, Publication } from "../../src/services/Broker.ts"

export type Publishable = Omit<Publication, "purpose">
export type Answer = (outcome: Effect.Effect<Outcome>) => void

/** A publish, until its caller has its outcome or has left. */
export class Publishing {
  readonly publication: Publishable
  readonly expiresAt: number
  returned: string | undefined
  /** A channel has confirmed it in vain, or was left before it answered. */
  mayBeStored = false
  #answer: Answer | undefined

  constructor(publication: Publishable, expiresAt: number, answer: Answer) {
    this.publication = publication
    this.expiresAt = expiresAt
    this.#answer = answer
  }

  get wanted(): boolean {
    return this.#answer !== undefined
  }

  answer(outcome: Effect.Effect<Outcome>): void {
    this.#answer?.(outcome)
    this.#answer = undefined
  }

  /** As far as the channel of now knows. */
  notStored(outcome: Effect.Effect<Outcome>, words: string): void {
    this.answer(this.mayBeStored ? unknown("lost", words) : outcome)
  }

  /** Nobody listens any more. */
  leave(): void {
    this.#answer = undefined
  }
}

export const confirmed: Effect.Effect<Outcome> = Effect.succeed({ _tag: "Confirmed" })

export const returned = (detail: string): Effect.Effect<Outcome> => Effect.succeed({ _tag: "Returned", detail })

export const refused = (
  reason: Extract<Outcome, { readonly _tag: "Refused" }>["reason"],
  detail: string
): Effect.Effect<Outcome> => Effect.succeed({ _tag: "Refused", reason, detail })

export const nackedWords = "The broker could not store it: a full queue, or a failing one"

export const nacked = refused("nacked", nackedWords)

export const unknown = (reason: "lost" | "deadline", detail: string): Effect.Effect<Outcome> =>
  Effect.succeed({ _tag: "Unknown", reason, detail })

export const late = (within: number) => unknown("deadline", `RabbitMQ did not answer within ${within} ms`)
