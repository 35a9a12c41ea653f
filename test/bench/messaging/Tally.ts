import { createHistogram } from "node:perf_hooks"
import { ms, nanos } from "../Latency.ts"
import { consumesWithinMs, type Done } from "./Work.ts"

/** What is counted while messages are sent. */
export class Tally {
  readonly #latency = createHistogram()
  readonly #begun = performance.now()
  readonly #until: number
  #messages = 0
  #failed = 0
  #problem: string | undefined

  constructor(forMs: number) {
    this.#until = this.#begun + forMs
  }

  /** Whether another message may begin. */
  get open(): boolean {
    return performance.now() < this.#until
  }

  succeeded(since: number): void {
    this.#messages++
    this.#latency.record(nanos(performance.now() - since))
  }

  /** A sender that fails stops: another failure would come at once. */
  failed(problem: string): void {
    this.#failed++
    this.#problem ??= problem
  }

  get done(): Done {
    return {
      messages: this.#messages,
      elapsedMs: performance.now() - this.#begun,
      ...(this.#messages > 0 && { p50: ms(this.#latency, 50), p99: ms(this.#latency, 99) }),
      failed: this.#failed,
      ...(this.#problem !== undefined && { problem: this.#problem })
    }
  }
}

type Send = (answered: (problem?: string) => void) => void

/** As many senders as the window has places: each sends again when it has its answer. */
export const inFlight = (window: number, forMs: number, send: Send): Promise<Done> =>
  new Promise((resolve) => {
    const tally = new Tally(forMs)
    let senders = window
    const next = () => {
      if (!tally.open) {
        stop()
        return
      }
      const since = performance.now()
      send((problem) => {
        if (problem === undefined) {
          tally.succeeded(since)
          next()
        } else {
          tally.failed(problem)
          stop()
        }
      })
    }
    const stop = () => {
      senders--
      if (senders === 0) resolve(tally.done)
    }
    for (let sender = 0; sender < window; sender++) next()
  })

/** From the first of the messages that waited to the last: how long it takes to begin is no matter of rates. */
export class Countdown {
  readonly done: Promise<Done>
  readonly #messages: number
  readonly #resolve: (done: Done) => void
  readonly #late: NodeJS.Timeout
  #handled = 0
  #begun = 0

  constructor(messages: number) {
    const { promise, resolve } = Promise.withResolvers<Done>()
    this.done = promise
    this.#resolve = resolve
    this.#messages = messages
    this.#late = setTimeout(() => this.#end("were handled in time"), consumesWithinMs)
  }

  handled(): void {
    this.#handled++
    if (this.#handled === 1) this.#begun = performance.now()
    if (this.#handled === this.#messages) this.#end()
  }

  #end(problem?: string): void {
    clearTimeout(this.#late)
    this.#resolve({
      messages: this.#handled,
      elapsedMs: performance.now() - this.#begun,
      failed: this.#messages - this.#handled,
      ...(problem !== undefined && { problem: `${this.#handled} of ${this.#messages} ${problem}` })
    })
  }
}
