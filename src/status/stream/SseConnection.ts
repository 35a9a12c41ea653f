import { Effect, type Fiber } from "effect"
import type { StoredStatus } from "../store/StatusStore.ts"
import { type BufferBounds, type Position, type Reset, ResumeCursor } from "./ResumeCursor.ts"
import type { TaskSubscriber } from "./TaskSubscriptions.ts"

export interface SseLimits {
  readonly isTerminal: (status: string) => boolean
  readonly bounds: BufferBounds
  readonly keepaliveMs: number | undefined
  readonly stalledMs: number
}

/** One open event stream. New events and a periodic sweep over all streams wake its fiber. */
export class SseConnection implements TaskSubscriber {
  readonly taskId: string
  readonly cursor: ResumeCursor
  reset: Reset | undefined
  sentCount = 0
  endedBy: Position | undefined
  shutdownNotice: "due" | "sent" | undefined
  hasSentReady = false
  unsubscribe: () => void = () => {}
  readonly onMalformed: () => void
  readonly #limits: SseLimits
  /** True after the subscription has succeeded or failed. A history that is read earlier may lack events. */
  #subscriptionSettled = false
  #readFailed = false
  #handedOverAt: number
  #awaitsClient = false
  #signalled = false
  #resume: ((woken: Effect.Effect<void>) => void) | undefined
  #fiber: Fiber.Fiber<unknown, unknown> | undefined

  constructor(
    taskId: string,
    lastEventId: string | undefined,
    isLastEvent: (event: StoredStatus, lastEventId: string) => boolean,
    limits: SseLimits,
    now: number,
    onMalformed: () => void
  ) {
    this.onMalformed = onMalformed
    this.taskId = taskId
    this.cursor = new ResumeCursor({
      lastEventId,
      isLastEvent,
      isTerminal: limits.isTerminal,
      bounds: limits.bounds
    })
    this.#limits = limits
    this.#handedOverAt = now
  }

  onEvent(event: StoredStatus): void {
    if (this.cursor.offer(event)) this.#wake()
  }

  onSubscribed(): void {
    this.#subscriptionSettled = true
    this.#readFailed = false
    this.cursor.markStale()
    this.#wake()
  }

  onDisconnected(): void {
    if (this.#subscriptionSettled) return
    this.#subscriptionSettled = true
    this.#wake()
  }

  get canRead(): boolean {
    return this.#subscriptionSettled && !this.#readFailed && this.cursor.needsHistory
  }

  onReadFailed(): void {
    this.#readFailed = true
    this.cursor.readFailed()
  }

  isKeepaliveDue(now: number): boolean {
    const { keepaliveMs } = this.#limits
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

  sweep(now: number): void {
    if (this.#awaitsClient) {
      if (now - this.#handedOverAt >= this.#limits.stalledMs) this.#fiber?.interruptUnsafe()
      return
    }
    const readsAgain = this.#readFailed
    this.#readFailed = false
    if (readsAgain || this.isKeepaliveDue(now)) this.#wake()
  }

  beginShutdown(): void {
    this.shutdownNotice ??= "due"
    this.#wake()
  }

  /** Succeeds when the stream may have something to send. A signal before the wait is not lost. */
  readonly awaitWake: Effect.Effect<void> = Effect.callback((resume) => {
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
