import type { Redaction } from "../redact/Redaction.ts"
import type { Place, TextRoute } from "../text/Place.ts"
import { EventRedactor } from "./EventRedactor.ts"
import { type SseEvent, SseSplitter, textOf } from "./SseEvents.ts"

/** Redacts the text of one event stream. An event passes as soon as it is complete. */
export class StreamRedactor {
  readonly redaction: Redaction
  readonly #splitter = new SseSplitter()
  readonly #events: EventRedactor

  constructor(redaction: Redaction, route: TextRoute) {
    this.redaction = redaction
    this.#events = new EventRedactor(redaction, route)
  }

  /** The maximum number of characters that one text has held. */
  get maxHeld(): number {
    return this.#events.maxHeld
  }

  /** True if a text, or a piece of one, has arrived. */
  get hasText(): boolean {
    return this.#events.hasText
  }

  /** True if a text, or a part of one, was sent. */
  get hasSentText(): boolean {
    return this.#events.hasSentText
  }

  /** The places of content that is no text. */
  get unreadable(): ReadonlySet<Place> {
    return this.#events.unreadable
  }

  /** True if the stream has content that is no text, or findings that were not replaced, or not as a whole. */
  get hasUnreadable(): boolean {
    return this.unreadable.size > 0 || this.redaction.signedFindings > 0 || this.redaction.lateFindings > 0
  }

  /** Throws `EventTooLarge`. */
  push(bytes: Uint8Array): string {
    return this.#redact(this.#splitter.push(bytes))
  }

  end(): string {
    const last = this.#splitter.end()
    const half = last.findLast(({ end }) => end === "")
    // Half of an event is no place for more text, unless its data is complete.
    if (half !== undefined && !this.#events.isReadable(half)) return joined(this.#events.end()) + this.#redact(last)
    const sent = this.#redact(last)
    const rest = joined(this.#events.end())
    return rest !== "" && half !== undefined ? `${sent}\n\n${rest}` : sent + rest
  }

  /** Returns what was received and not sent, after an event that was too large. Later bytes go through `passUnread`. */
  giveUp(): string {
    return joined(this.#events.end()) + this.#splitter.rest()
  }

  passUnread(bytes: Uint8Array): string {
    return this.#splitter.decode(bytes)
  }

  #redact(events: ReadonlyArray<SseEvent>): string {
    let out = ""
    for (const event of events) out += joined(this.#events.redact(event))
    return out
  }
}

const joined = (events: ReadonlyArray<SseEvent>): string => events.map(textOf).join("")
