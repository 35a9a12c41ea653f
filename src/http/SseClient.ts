import { Effect, type Fiber } from "effect"

export interface SseTimes {
  /** The silence after which a comment is sent. `undefined`: never. */
  readonly keepaliveMs: number | undefined
  /** A client that reads nothing for this time is disconnected. */
  readonly stalledMs: number
}

/** The client of one event stream. Its fiber waits for the client to read, or for something to send. */
export class SseClient {
  shutdownNotice: "due" | "sent" | undefined
  readonly #times: SseTimes
  #handedOverAt: number
  #awaitsClient = false
  #signalled = false
  #resume: ((woken: Effect.Effect<void>) => void) | undefined
  #fiber: Fiber.Fiber<unknown, unknown> | undefined

  constructor(times: SseTimes, now: number) {
    this.#times = times
    this.#handedOverAt = now
  }

  /** True until the client has received all previous chunks. */
  get awaitsClient(): boolean {
    return this.#awaitsClient
  }

  isKeepaliveDue(now: number): boolean {
    const { keepaliveMs } = this.#times
    return keepaliveMs !== undefined && now - this.#handedOverAt >= keepaliveMs
  }

  /** Called when the client has received all previous chunks. `fiber` waits for the next chunks. */
  onPull(fiber: Fiber.Fiber<unknown, unknown>): void {
    this.#awaitsClient = false
    this.#signalled = false
    this.#fiber = fiber
  }

  handOver<A>(chunks: A, now: number): A {
    this.#awaitsClient = true
    this.#handedOverAt = now
    return chunks
  }

  /** Called now and then. Disconnects a stalled client, and wakes the fiber of a silent one. */
  sweep(now: number): void {
    if (!this.#awaitsClient) {
      if (this.isKeepaliveDue(now)) this.wake()
    } else if (now - this.#handedOverAt >= this.#times.stalledMs) this.#fiber?.interruptUnsafe()
  }

  beginShutdown(): void {
    this.shutdownNotice ??= "due"
    this.wake()
  }

  /** Succeeds when the stream may have something to send. A signal before the wait is not lost. */
  readonly awaitWake: Effect.Effect<void> = Effect.callback((resume) => {
    if (this.#signalled) return resume(Effect.void)
    this.#resume = resume
    return Effect.sync(() => {
      this.#resume = undefined
    })
  })

  wake(): void {
    this.#signalled = true
    const resume = this.#resume
    this.#resume = undefined
    resume?.(Effect.void)
  }
}
