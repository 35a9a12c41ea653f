import { SseClient, type SseTimes } from "../../http/SseClient.ts"
import type { StoredStatus } from "../store/StatusStore.ts"
import { type BufferBounds, type Position, type Reset, ResumeCursor } from "./ResumeCursor.ts"
import type { TaskSubscriber } from "./TaskSubscriptions.ts"

export interface SseLimits extends SseTimes {
  readonly isTerminal: (status: string) => boolean
  readonly bounds: BufferBounds
}

/** One open event stream. New events and a periodic sweep over all streams wake its fiber. */
export class SseConnection extends SseClient implements TaskSubscriber {
  readonly taskId: string
  readonly cursor: ResumeCursor
  reset: Reset | undefined
  sentCount = 0
  endedBy: Position | undefined
  hasSentReady = false
  unsubscribe: () => void = () => {}
  readonly onMalformed: () => void
  /** True after the subscription has succeeded or failed. A history that is read earlier may lack events. */
  #subscriptionSettled = false
  #readFailed = false

  constructor(
    taskId: string,
    lastEventId: string | undefined,
    isLastEvent: (event: StoredStatus, lastEventId: string) => boolean,
    limits: SseLimits,
    now: number,
    onMalformed: () => void
  ) {
    super(limits, now)
    this.onMalformed = onMalformed
    this.taskId = taskId
    this.cursor = new ResumeCursor({
      lastEventId,
      isLastEvent,
      isTerminal: limits.isTerminal,
      bounds: limits.bounds
    })
  }

  onEvent(event: StoredStatus): void {
    if (this.cursor.offer(event)) this.wake()
  }

  onSubscribed(): void {
    this.#subscriptionSettled = true
    this.#readFailed = false
    this.cursor.markStale()
    this.wake()
  }

  onDisconnected(): void {
    if (this.#subscriptionSettled) return
    this.#subscriptionSettled = true
    this.wake()
  }

  get canRead(): boolean {
    return this.#subscriptionSettled && !this.#readFailed && this.cursor.needsHistory
  }

  onReadFailed(): void {
    this.#readFailed = true
    this.cursor.readFailed()
  }

  override sweep(now: number): void {
    super.sweep(now)
    if (this.awaitsClient || !this.#readFailed) return
    this.#readFailed = false
    this.wake()
  }
}
