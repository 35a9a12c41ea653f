import type { HistoryOptions, StatusHistory, StoredStatus } from "../store/StatusStore.ts"
import * as TaskEnd from "../store/TaskEnd.ts"

/**
 * Why a stream starts over.
 *
 * - `history_trimmed`: events behind the client's last one are no longer kept.
 * - `history_gone`: nothing of the task is kept.
 * - `unknown_event`: the client's last event is none of this task, or of an earlier life of it.
 * - `sequence_restarted`: the history expired, and the task has a new one.
 */
export type ResetReason = "history_trimmed" | "history_gone" | "unknown_event" | "sequence_restarted"

export interface Reset {
  readonly reason: ResetReason
  /** The first event that follows; none is kept. */
  readonly from: StoredStatus | undefined
}

/** An event without its text, of which thousands of quiet streams would hold one each. */
export type Position = Omit<StoredStatus, "json">

/** What a read of the history brought. */
export interface AppliedHistory {
  /** Only of the first read of a client that resumes: whether its last event was found. */
  readonly resumed?: boolean
  /** Comes before the events that wait now. */
  readonly reset?: Reset
  readonly replayed: number
}

export interface BufferBounds {
  readonly events: number
  /** Of their JSON, in UTF-16 units. One event may be longer. */
  readonly size: number
}

/**
 * How far one client has come in a task's events, and what waits for it. Sequences decide: an event goes out if it is the
 * very next one. Whatever else arrives live says that something was missed, and the history is read again from the last
 * event that went out. So is it when a client is too slow for what waits to stay within its bounds: the store is the
 * buffer of slow readers.
 */
export class ResumeCursor {
  /** The last that went out, or that the client had before. */
  #at: Position | undefined
  /** The terminal status that holds at that place. */
  #end: Position | undefined
  /** Of a client that resumes, until the first read has looked for it. */
  #lastEventId: string | undefined
  #startsOver: ResetReason | undefined
  #waiting: Array<StoredStatus> = []
  #size = 0
  /** How many of those that wait come from the history. */
  #historical = 0
  #reading = false
  #stale = true
  /** The newest event when the history was last read to its end. */
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

  /** The history is to be read. */
  get needsHistory(): boolean {
    return this.#stale && this.#waiting.length === 0
  }

  /** The terminal status that ended the task, if the store said that nothing newer was there. */
  get terminalStatus(): Position | undefined {
    const settled = !this.#stale && !this.#reading && this.#waiting.length === 0
    return settled && this.#at?.sequence === this.#newestRead ? this.#end : undefined
  }

  /** Events may have been missed. */
  markStale(): void {
    this.#stale = true
  }

  /** An event that was just stored. Answers whether there is something to do now. */
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
   * What to ask the store for; `arrived` or `unread` follows. No more than may wait: with the whole of a long history each
   * time, a client would cost as many events as the square of it. Where the last event has to be looked for, the whole of
   * it is read once.
   */
  beginRead(): HistoryOptions {
    this.#stale = false
    this.#reading = true
    if (this.#lastEventId !== undefined) return {}
    const { events, size } = this.#bounds
    // the last event comes along: another one in its place is another history
    return this.#at === undefined
      ? { atMost: { events, bytes: size } }
      : { after: this.#at.sequence - 1, atMost: { events: events + 1, bytes: size } }
  }

  /** The read failed: what came meanwhile is in the next one. */
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

  /** Everything that waits goes out. `ended`: the last of it leaves the task at its end. */
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
    // a history that expired under an open stream says nothing against what the client has
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
 * Why the history does not go on from `at`, if so. It was read from `at` on: that this very event is still there is the
 * only proof that what follows it is the same history.
 */
const discontinuityAfter = (at: Position, history: StatusHistory): ResetReason | undefined => {
  if (history.newest === 0) return undefined
  const anchor = history.events.find(({ sequence }) => sequence === at.sequence)
  if (anchor === undefined) return history.newest < at.sequence ? "sequence_restarted" : "history_trimmed"
  return anchor.eventId === at.eventId ? undefined : "sequence_restarted"
}
