import { Effect, type Fiber } from "effect"
import type { StoredStatus } from "../store/StatusStore.ts"
import { type Bounds, ClientProgress, type Position, type Reset } from "./ClientProgress.ts"
import type { Follower } from "./StatusFollows.ts"

export interface Limits {
  readonly isTerminal: (status: string) => boolean
  readonly bounds: Bounds
  readonly keepaliveMs: number | undefined
  readonly stalledMs: number
}

/**
 * A stream that a client has open: one small object and one waiting fiber, since there are thousands. It is woken by
 * what happens to its task, and by a sweep over all of them, which serves as everybody's timer.
 */
export class OpenStream implements Follower {
  readonly taskId: string
  readonly progress: ClientProgress
  /** To go out before the events that wait. */
  reset: Reset | undefined
  sent = 0
  /** The terminal status that ended it. */
  endedBy: Position | undefined
  farewell: "due" | "said" | undefined
  greeted = false
  leave: () => void = () => {}
  readonly misheard: () => void
  readonly #limits: Limits
  /** A subscription was tried: reading before would only have to be done again. */
  #tried = false
  #readFailed = false
  #handedAt: number
  /** Whether the client has yet to take what it was handed. */
  #handed = false
  #signalled = false
  #resume: ((woken: Effect.Effect<void>) => void) | undefined
  #fiber: Fiber.Fiber<unknown, unknown> | undefined

  constructor(
    taskId: string,
    lastEventId: string | undefined,
    isLastEvent: (event: StoredStatus, lastEventId: string) => boolean,
    limits: Limits,
    now: number,
    misheard: () => void
  ) {
    this.misheard = misheard
    this.taskId = taskId
    this.progress = new ClientProgress({
      lastEventId,
      isLastEvent,
      isTerminal: limits.isTerminal,
      bounds: limits.bounds
    })
    this.#limits = limits
    this.#handedAt = now
  }

  heard(event: StoredStatus): void {
    if (this.progress.offer(event)) this.#wake()
  }

  listening(): void {
    this.#tried = true
    this.#readFailed = false
    this.progress.doubt()
    this.#wake()
  }

  deaf(): void {
    if (this.#tried) return
    this.#tried = true
    this.#wake()
  }

  get mayRead(): boolean {
    return this.#tried && !this.#readFailed && this.progress.wantsHistory
  }

  unread(): void {
    this.#readFailed = true
    this.progress.unread()
  }

  keepaliveDue(now: number): boolean {
    const { keepaliveMs } = this.#limits
    return keepaliveMs !== undefined && now - this.#handedAt >= keepaliveMs
  }

  /** The client has taken everything, and is about to wait in `fiber`. */
  asks(fiber: Fiber.Fiber<unknown, unknown>): void {
    this.#handed = false
    this.#signalled = false
    this.#fiber = fiber
  }

  hand<A>(chunks: A, now: number): A {
    this.#handed = true
    this.#handedAt = now
    return chunks
  }

  sweep(now: number): void {
    if (this.#handed) {
      // as if it had hung up
      if (now - this.#handedAt >= this.#limits.stalledMs) this.#fiber?.interruptUnsafe()
      return
    }
    const readsAgain = this.#readFailed
    this.#readFailed = false
    if (readsAgain || this.keepaliveDue(now)) this.#wake()
  }

  sayFarewell(): void {
    this.farewell ??= "due"
    this.#wake()
  }

  /** Something may be to be done. Also when it happened between the last look and the waiting. */
  readonly woken: Effect.Effect<void> = Effect.callback((resume) => {
    if (this.#signalled) return resume(Effect.void)
    this.#resume = resume
    return Effect.sync(() => {
      this.#resume = undefined
    })
  })

  #wake(): void {
    this.#signalled = true
    const resume = this.#resume
    this.#resume = undefined
    resume?.(Effect.void)
  }
}
