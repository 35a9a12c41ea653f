import type { HistoryOptions, StatusHistory, StoredStatus } from "../store/StatusStore.ts"
import * as TaskEnd from "../store/TaskEnd.ts"

/**
 * The reason why a client receives the stored history from its beginning.
 *
 * - `history_trimmed`: events after the client's last event are no longer stored.
 * - `history_gone`: no event of the task is stored.
 * - `unknown_event`: the client's last event is not in the history of this task.
 * - `sequence_restarted`: the history expired, and the task has a new history.
 */
export type ResetReason = "history_trimmed" | "history_gone" | "unknown_event" | "sequence_restarted"

export interface Reset {
  readonly reason: ResetReason
  readonly from: StoredStatus | undefined
}

/** A stored event without its JSON. Thousands of open streams would need much memory for the JSON. */
export type Position = Omit<StoredStatus, "json">

interface AppliedHistory {
  /** Whether the last event of the client was found. Set only by the first read, and only if the client sent an id. */
  readonly resumed?: boolean
  /** If set, this reset must be sent before the buffered events. */
  readonly reset?: Reset
  readonly replayed: number
}

export interface BufferBounds {
  readonly events: number
  /** The maximum total JSON length of the events. One event may be longer. */
  readonly size: number
}

/**
 * One client's position in the history of a task, and the buffer of events to send. A live event is sent if its
 * sequence number is the next one. Otherwise the client has missed an event, and the history is read again from the
 * last sent event. The history is also read again after the buffer of a slow client was full.
 */
export class ResumeCursor {
  #position: Position | undefined
  #end: Position | undefined
  #lastEventId: string | undefined
  #pendingReset: ResetReason | undefined
  #buffer: Array<StoredStatus> = []
  #bufferSize = 0
  #historicalCount = 0
  #reading = false
  #stale = true
  #newestRead: number | undefined
  readonly #isLastEvent: (event: StoredStatus, lastEventId: string) => boolean
  readonly #isTerminal: (status: string) => boolean
  readonly #bounds: BufferBounds

  constructor(options: {
    readonly lastEventId: string | undefined
    readonly isTerminal: (status: string) => boolean
    readonly isLastEvent: (event: StoredStatus, lastEventId: string) => boolean
    readonly bounds: BufferBounds
  }) {
    this.#lastEventId = options.lastEventId
    this.#isLastEvent = options.isLastEvent
    this.#isTerminal = options.isTerminal
    this.#bounds = options.bounds
  }

  get needsHistory(): boolean {
    return this.#stale && this.#buffer.length === 0
  }

  /** The terminal status of the task, after the store has confirmed that no newer event exists. */
  get terminalStatus(): Position | undefined {
    const settled = !this.#stale && !this.#reading && this.#buffer.length === 0
    return settled && this.#position?.sequence === this.#newestRead ? this.#end : undefined
  }

  markStale(): void {
    this.#stale = true
  }

  /** Processes a live event. Returns true if the stream must be woken. */
  offer(event: StoredStatus): boolean {
    if (this.#stale && !this.#reading) return false
    const last = this.#buffer.at(-1) ?? (this.#reading ? undefined : this.#position)
    if (last !== undefined && isSameEvent(last, event)) return false
    if (last === undefined ? this.#reading || event.sequence === 1 : event.sequence === last.sequence + 1) {
      if (this.#push(event)) return true
    }
    this.#clearBuffer()
    this.#stale = true
    return !this.#reading
  }

  /** Limits a read to the size of the buffer. Repeated reads of a long history would take quadratic time. */
  beginRead(): HistoryOptions {
    this.#stale = false
    this.#reading = true
    if (this.#lastEventId !== undefined) return {}
    const { events, size } = this.#bounds
    // The read includes the last sent event. If another event has its sequence number now, the history was restarted.
    return this.#position === undefined
      ? { atMost: { events, bytes: size } }
      : { after: this.#position.sequence - 1, atMost: { events: events + 1, bytes: size } }
  }

  readFailed(): void {
    this.#reading = false
    this.#stale = true
    this.#clearBuffer()
  }

  applyHistory(history: StatusHistory): AppliedHistory {
    this.#reading = false
    const live = this.#buffer
    this.#clearBuffer()
    const resumeAfter = this.#lastEventId
    this.#lastEventId = undefined
    if (resumeAfter !== undefined) {
      const found = history.events.findLast((event) => this.#isLastEvent(event, resumeAfter))
      if (found === undefined) return { ...this.#restart(history, missingEventReason(history), live), resumed: false }
      this.#position = positionOf(found)
      for (const event of history.events) if (event.sequence <= found.sequence) this.#advancePast(event)
      return { ...this.#continue(history, live), resumed: true }
    }
    if (this.#pendingReset !== undefined) return this.#restart(history, this.#pendingReset, live)
    const discontinuity = this.#position === undefined ? undefined : discontinuityAfter(this.#position, history)
    if (discontinuity === undefined) return this.#continue(history, live)
    this.#position = undefined
    this.#pendingReset = discontinuity
    this.#stale = true
    return { replayed: 0 }
  }

  /** Removes and returns all buffered events. `ended` is true if the task has ended after the last of these events. */
  take(): { readonly events: ReadonlyArray<StoredStatus>; readonly historicalCount: number; readonly ended: boolean } {
    const events = this.#buffer
    const historical = this.#historicalCount
    const last = events.at(-1)
    for (const event of events) this.#advancePast(event)
    if (last !== undefined) this.#position = positionOf(last)
    this.#clearBuffer()
    return { events, historicalCount: historical, ended: this.#end !== undefined }
  }

  #advancePast(event: StoredStatus): void {
    const end = TaskEnd.terminalStatusAfter<Position>(this.#end, event, this.#isTerminal)
    this.#end = end === event ? positionOf(event) : end
  }

  #restart(history: StatusHistory, reason: ResetReason, live: ReadonlyArray<StoredStatus>): AppliedHistory {
    this.#pendingReset = undefined
    this.#position = undefined
    this.#end = undefined
    const arrival = this.#continue(history, live)
    return { ...arrival, reset: { reason, from: history.events[0] } }
  }

  #continue(history: StatusHistory, live: ReadonlyArray<StoredStatus>): AppliedHistory {
    const lastSequence = this.#position?.sequence ?? 0
    let replayed = 0
    for (const event of history.events) {
      if (event.sequence <= lastSequence) continue
      if (!this.#push(event)) {
        this.#stale = true
        break
      }
      replayed++
    }
    this.#historicalCount = replayed
    if ((history.events.at(-1)?.sequence ?? history.newest) < history.newest) this.#stale = true
    if (this.#stale) return { replayed }
    // If the history has expired while the stream is open, the events that the client has are still valid.
    this.#newestRead = history.newest === 0 ? this.#position?.sequence : history.newest
    for (const event of live) {
      if (history.events.some((read) => isSameEvent(read, event))) continue
      this.offer(event)
    }
    return { replayed }
  }

  #push(event: StoredStatus): boolean {
    const { events, size } = this.#bounds
    const full = this.#buffer.length >= events || this.#bufferSize + event.json.length > size
    if (full && this.#buffer.length > 0) return false
    this.#buffer.push(event)
    this.#bufferSize += event.json.length
    return true
  }

  #clearBuffer(): void {
    this.#buffer = []
    this.#bufferSize = 0
    this.#historicalCount = 0
  }
}

const positionOf = ({ json: _, ...position }: StoredStatus): Position => position

const isSameEvent = (one: Position, other: Position): boolean =>
  one.sequence === other.sequence && one.eventId === other.eventId

const missingEventReason = (history: StatusHistory): ResetReason =>
  history.events.length === 0 ? "history_gone" : history.oldest > 1 ? "history_trimmed" : "unknown_event"

/** Returns why a history does not continue after the event `at`, or `undefined` if it does. */
const discontinuityAfter = (at: Position, history: StatusHistory): ResetReason | undefined => {
  if (history.newest === 0) return undefined
  const anchor = history.events.find(({ sequence }) => sequence === at.sequence)
  if (anchor === undefined) return history.newest < at.sequence ? "sequence_restarted" : "history_trimmed"
  return anchor.eventId === at.eventId ? undefined : "sequence_restarted"
}
