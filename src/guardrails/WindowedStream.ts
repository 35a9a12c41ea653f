import { Result } from "effect"
import { FirstTextDelay } from "./FirstTextDelay.ts"
import type { Verdict } from "./GuardrailOutcome.ts"
import type { HttpStep } from "./Selection.ts"
import { noBytes, type StreamGuardrail, type StreamOutlet, type StreamReport } from "./StreamGuardrail.ts"
import { type HttpStreamOptions, invalidReply, type Reply, StreamJudge } from "./StreamJudge.ts"
import { EventTooLarge, type SseEvent, SseSplitter } from "./stream/SseEvents.ts"
import { TextWindows } from "./stream/TextWindows.ts"

/** An HTTP guardrail that judges a stream in pieces. An event passes when all of its texts were allowed. */
export class WindowedStream implements StreamGuardrail {
  readonly #outlet: StreamOutlet
  readonly #judge: StreamJudge
  readonly #windows: TextWindows
  readonly #splitter = new SseSplitter()
  readonly #firstText: FirstTextDelay
  /** The events that arrived during a call. */
  #arrived: Array<SseEvent> = []
  /** Bytes that arrived after an event that was too large. They pass unread after the events before them. */
  readonly #unread: Array<string> = []
  #isAdvancing = false
  #hasEnded = false
  #isGivenUp = false
  #notedUnreadable = false

  constructor(step: HttpStep, options: HttpStreamOptions, outlet: StreamOutlet) {
    this.#outlet = outlet
    this.#judge = new StreamJudge(step, options, outlet)
    this.#windows = new TextWindows(options.route, step.definition.provider.windowChars)
    this.#firstText = new FirstTextDelay(options.now)
  }

  get isBusy(): boolean {
    return this.#judge.isBusy
  }

  push(bytes: Buffer): void {
    if (this.#isGivenUp) this.#unread.push(this.#splitter.decode(bytes))
    else this.#split(() => this.#splitter.push(bytes))
    this.#advance()
  }

  end(): void {
    if (!this.#isGivenUp) this.#split(() => this.#splitter.end())
    this.#hasEnded = true
    this.#advance()
  }

  cancel(): void {
    this.#judge.cancel()
  }

  /** Held events are not billed: the client is billed for what was sent. */
  takeUnsent(): Buffer {
    return noBytes
  }

  report(): StreamReport {
    const { maxHeld, unreadable } = this.#windows
    return this.#judge.report(this.#hasEnded && !this.#judge.isStopped, {
      held_characters: maxHeld,
      ...this.#firstText.metadata,
      ...(unreadable.length > 0 && { unguarded: unreadable })
    })
  }

  #split(split: () => ReadonlyArray<SseEvent>): void {
    try {
      for (const event of split()) this.#arrived.push(event)
    } catch (error) {
      if (!(error instanceof EventTooLarge)) throw error
      if (!this.#judge.fail("event_too_large")) return
      this.#isGivenUp = true
      this.#unread.push(this.#splitter.rest())
    }
  }

  /** Sends what may be sent, until a call must be awaited. A call may return at once, so this is a loop. */
  #advance(): void {
    if (this.#isAdvancing) return
    this.#isAdvancing = true
    while (!this.isBusy && !this.#judge.isStopped) {
      const isComplete = this.#addArrived()
      if (this.#judge.isStopped) break
      this.#send(this.#windows.release())
      if (this.#windows.hasReleasedText) this.#firstText.sent()
      // A later guardrail may have stopped the stream.
      if (this.#judge.isStopped) break
      if (this.#windows.isDue) this.#startCall()
      else if (isComplete) {
        this.#finish()
        break
      }
    }
    this.#isAdvancing = false
  }

  /** Adds events until a call is due. Returns true if no event is left. */
  #addArrived(): boolean {
    let count = 0
    for (const event of this.#arrived) {
      if (this.#windows.isDue) break
      this.#windows.add(event)
      if (this.#windows.hasText) this.#firstText.arrived()
      count++
      if (!this.#notedUnreadable && !this.#noteUnreadable()) break
    }
    this.#arrived = this.#arrived.slice(count)
    const isComplete = this.#arrived.length === 0
    if (isComplete && (this.#hasEnded || this.#isGivenUp)) this.#windows.flush()
    return isComplete
  }

  #noteUnreadable(): boolean {
    const { unreadable } = this.#windows
    if (unreadable.length === 0) return true
    this.#notedUnreadable = true
    return this.#judge.fail(`cannot read: ${unreadable.join(", ")}`)
  }

  #startCall(): void {
    this.#judge.judge(this.#windows.takeDue(), checked, () => {
      if (this.#isAdvancing) return
      this.#advance()
      if (!this.isBusy) this.#outlet.ready()
    })
  }

  #finish(): void {
    for (const text of this.#unread.splice(0)) this.#send(text)
    if (this.#hasEnded) this.#outlet.end()
  }

  #send(text: string): void {
    if (text !== "") this.#outlet.push(Buffer.from(text))
  }
}

/** A part of the text was already sent, so a window cannot be changed. */
const checked = (verdict: Verdict): Reply => (verdict.action === "modify" ? invalidReply : Result.succeed(verdict))
