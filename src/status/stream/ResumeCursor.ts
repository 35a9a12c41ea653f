import type { HistoryOptions, StatusHistory, StoredStatus } from "../store/StatusStore.ts"
import * as TaskEnd from "../store/TaskEnd.ts"

/**
 * Why a stream restarts from the beginning of the stored history.
 *
 * - `history_trimmed`: events after the client's last one were trimmed.
 * - `history_gone`: no event of the task is stored.
 * - `unknown_event`: the client's last event does not belong to this task, or to an earlier history of it.
 * - `sequence_restarted`: the history expired, and the task has a new one.
 */
export type ResetReason = "history_trimmed" | "history_gone" | "unknown_event" | "sequence_restarted"

export interface Reset {
  readonly reason: ResetReason
  /** The first event sent after the reset; `undefined` if no event is stored. */
  readonly from: StoredStatus | undefined
}

/** An event without its JSON, which thousands of quiet streams would otherwise retain. */
export type Position = Omit<StoredStatus, "json">

/** The result of applying a history read. */
export interface AppliedHistory {
  /** Set by the first read of a resuming client: true if its last event was found. */
  readonly resumed?: boolean
  /** Must be sent before the buffered events. */
  readonly reset?: Reset
  readonly replayed: number
}

export interface BufferBounds {
  readonly events: number
  /** Total length of their JSON in UTF-16 code units. A single event may be longer. */
  readonly size: number
}

/**
 * The position of one client in a task's events, and its buffer. An event is sent if its sequence directly follows the
 * last one. Any other live event shows that something was missed, so the history is read again from the last event
 * sent. A client too slow for its buffer is treated the same way: it re-reads from the store.
 */
export class ResumeCursor {
  /** The last event sent, or the last one that the client already had. */
  #at: Position | undefined
  /** The terminal status in effect at that position. */
  #end: Position | undefined
  /** Set for a resuming client until the first read has searched for the event. */
  #lastEventId: string | undefined
  #startsOver: ResetReason | undefined
  #waiting: Array<StoredStatus> = []
  #size = 0
  /** How many buffered events come from the history. */
  #historical = 0
  #reading = false
  #stale = true
  /** Sequence of the newest event when the history was last read to its end. */
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
    return this.#stale && this.#waiting.length === 0
  }

  /** The terminal status that ended the task, once the store has confirmed that no newer event exists. */
  get terminalStatus(): Position | undefined {
    const settled = !this.#stale && !this.#reading && this.#waiting.length === 0
    return settled && this.#at?.sequence === this.#newestRead ? this.#end : undefined
  }

  /** Marks the buffer as incomplete: events may have been missed. */
  markStale(): void {
    this.#stale = true
  }

  /** Handles a live event. Returns true if the stream has something to do now. */
  offer(event: StoredStatus): boolean {
    if (this.#stale && !this.#reading) return false
    const last = this.#waiting.at(-1) ?? (this.#reading ? undefined : this.#at)
    if (last !== undefined && isSameEvent(last, event)) return false
    if (last === undefined ? this.#reading || event.sequence === 1 : event.sequence === last.sequence + 1) {
      if (this.#push(event)) return true
    }
    this.#drop()
    this.#stale = true
    return !this.#reading
  }

  /**
   * Options for the next read; `applyHistory` or `readFailed` must follow. A read is limited to the size of the buffer,
   * because reading a long history in full each time would take quadratic time. Only the search for the last event
   * reads all of it once.
   */
  beginRead(): HistoryOptions {
    this.#stale = false
    this.#reading = true
    if (this.#lastEventId !== undefined) return {}
    const { events, size } = this.#bounds
    // includes the last event sent: a different one at its position is a different history
    return this.#at === undefined
      ? { atMost: { events, bytes: size } }
      : { after: this.#at.sequence - 1, atMost: { events: events + 1, bytes: size } }
  }

  /** The read failed: the next one covers the live events received meanwhile. */
  readFailed(): void {
    this.#reading = false
    this.#stale = true
    this.#drop()
  }

  applyHistory(history: StatusHistory): AppliedHistory {
    this.#reading = false
    const live = this.#waiting
    this.#drop()
    const resumeAfter = this.#lastEventId
    this.#lastEventId = undefined
    if (resumeAfter !== undefined) {
      const found = history.events.findLast((event) => this.#isLastEvent(event, resumeAfter))
      if (found === undefined) return { ...this.#restart(history, missingEventReason(history), live), resumed: false }
      this.#at = positionOf(found)
      for (const event of history.events) if (event.sequence <= found.sequence) this.#passed(event)
      return { ...this.#continue(history, live), resumed: true }
    }
    if (this.#startsOver !== undefined) return this.#restart(history, this.#startsOver, live)
    const discontinuity = this.#at === undefined ? undefined : discontinuityAfter(this.#at, history)
    if (discontinuity === undefined) return this.#continue(history, live)
    this.#at = undefined
    this.#startsOver = discontinuity
    this.#stale = true
    return { replayed: 0 }
  }

  /** Removes all buffered events to send them. `ended`: the task is ended after the last one. */
  take(): { readonly events: ReadonlyArray<StoredStatus>; readonly historicalCount: number; readonly ended: boolean } {
    const events = this.#waiting
    const historical = this.#historical
    const last = events.at(-1)
    for (const event of events) this.#passed(event)
    if (last !== undefined) this.#at = positionOf(last)
    this.#drop()
    return { events, historicalCount: historical, ended: this.#end !== undefined }
  }

  #passed(event: StoredStatus): void {
    const end = TaskEnd.terminalStatusAfter<Position>(this.#end, event, this.#isTerminal)
    this.#end = end === event ? positionOf(event) : end
  }

  #restart(history: StatusHistory, reason: ResetReason, live: ReadonlyArray<StoredStatus>): AppliedHistory {
    this.#startsOver = undefined
    this.#at = undefined
    this.#end = undefined
    const arrival = this.#continue(history, live)
    return { ...arrival, reset: { reason, from: history.events[0] } }
  }

  #continue(history: StatusHistory, live: ReadonlyArray<StoredStatus>): AppliedHistory {
    const lastSequence = this.#at?.sequence ?? 0
    let replayed = 0
    for (const event of history.events) {
      if (event.sequence <= lastSequence) continue
      if (!this.#push(event)) {
        this.#stale = true
        break
      }
      replayed++
    }
    this.#historical = replayed
    if ((history.events.at(-1)?.sequence ?? history.newest) < history.newest) this.#stale = true
    if (this.#stale) return { replayed }
    // a history that expired under an open stream does not contradict the client's events
    this.#newestRead = history.newest === 0 ? this.#at?.sequence : history.newest
    for (const event of live) {
      if (history.events.some((read) => isSameEvent(read, event))) continue
      this.offer(event)
    }
    return { replayed }
  }

  #push(event: StoredStatus): boolean {
    const { events, size } = this.#bounds
    const full = this.#waiting.length >= events || this.#size + event.json.length > size
    if (full && this.#waiting.length > 0) return false
    this.#waiting.push(event)
    this.#size += event.json.length
    return true
  }

  #drop(): void {
    this.#waiting = []
    this.#size = 0
    this.#historical = 0
  }
}

const positionOf = ({ json: _, ...position }: StoredStatus): Position => position

const isSameEvent = (one: Position, other: Position): boolean =>
  one.sequence === other.sequence && one.eventId === other.eventId

const missingEventReason = (history: StatusHistory): ResetReason =>
  history.events.length === 0 ? "history_gone" : history.oldest > 1 ? "history_trimmed" : "unknown_event"

/**
 * Why the history does not continue from `at`; `undefined` if it does. The read starts at `at`: only the same event at
 * its position proves that the history is the same.
 */
const discontinuityAfter = (at: Position, history: StatusHistory): ResetReason | undefined => {
  if (history.newest === 0) return undefined
  const anchor = history.events.find(({ sequence }) => sequence === at.sequence)
  if (anchor === undefined) return history.newest < at.sequence ? "sequence_restarted" : "history_trimmed"
  return anchor.eventId === at.eventId ? undefined : "sequence_restarted"
}
