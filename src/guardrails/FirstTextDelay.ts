import type { Config } from "../policy/Guardrail.ts"

/** Measures how long one guardrail delays the first text of a stream. */
export class FirstTextDelay {
  readonly #now: () => number
  #arrivedAt: number | undefined
  #delayMs: number | undefined

  constructor(now: () => number) {
    this.#now = now
  }

  /** Notes the arrival of a text. Only the first one counts. */
  arrived(): void {
    this.#arrivedAt ??= this.#now()
  }

  /** Notes that a text, or a part of it, was sent. */
  sent(): void {
    if (this.#arrivedAt !== undefined) this.#delayMs ??= this.#now() - this.#arrivedAt
  }

  /** Empty if no text was sent. */
  get metadata(): Config {
    return this.#delayMs === undefined ? {} : { first_text_delay_ms: this.#delayMs }
  }
}
