import { Result } from "effect"
import type { Execution } from "../policy/Guardrail.ts"
import { type Consequence, stoppedBy, type Verdict } from "./GuardrailOutcome.ts"
import type { SelectedGuardrail } from "./Selection.ts"
import type { StreamGuardrail, StreamOutlet } from "./StreamGuardrail.ts"
import { type HttpStreamOptions, invalidReply, type Reply, StreamJudge } from "./StreamJudge.ts"
import { EventTooLarge, type SseEvent, SseSplitter } from "./stream/SseEvents.ts"
import { TextWindows } from "./stream/TextWindows.ts"

/** An HTTP guardrail that judges a stream in pieces. An event passes when all of its texts were allowed. */
export class WindowedStream implements StreamGuardrail {
  readonly #step: SelectedGuardrail
  readonly #outlet: StreamOutlet
  readonly #judge: StreamJudge
  readonly #windows: TextWindows
  readonly #splitter = new SseSplitter()
  /** The events that arrived during a call. */
  #arrived: Array<SseEvent> = []
  /** Bytes that arrived after an event that was too large. They pass unread after the events before them. */
  readonly #unread: Array<string | Buffer> = []
  #isAdvancing = false
  #hasStarted = false
  #hasEnded = false
  #isGivenUp = false
  #isStopped = false
  #notedUnreadable = false

  constructor(
    step: SelectedGuardrail,
    windowChars: number,
    { call, now, route }: HttpStreamOptions,
    outlet: StreamOutlet
  ) {
    this.#step = step
    this.#outlet = outlet
    this.#judge = new StreamJudge(step, call, now)
    this.#windows = new TextWindows(route, windowChars)
  }

  get hasStarted(): boolean {
    return this.#hasStarted
  }

  get hasFailed(): boolean {
    return this.#judge.hasFailed
  }

  get isBusy(): boolean {
    return this.#judge.isBusy
  }

  push(bytes: Buffer): void {
    this.#hasStarted = true
    if (this.#isStopped) return
    if (this.#isGivenUp) this.#unread.push(bytes)
    else this.#split(() => this.#splitter.push(bytes))
    this.#advance()
  }

  end(): void {
    if (this.#isStopped) return
    if (!this.#isGivenUp) this.#split(() => this.#splitter.end())
    this.#hasEnded = true
    this.#advance()
  }

  cancel(): void {
    this.#isStopped = true
    this.#judge.cancel()
  }

  /** Held events are not billed: the client is billed for what was sent. */
  takeUnsent(): Buffer {
    return Buffer.alloc(0)
  }

  execution(): Execution {
    const { maxHeld, unreadable } = this.#windows
    return this.#judge.execution(this.#hasEnded && !this.#isStopped, {
      held_characters: maxHeld,
      ...(unreadable.length > 0 && { unguarded: unreadable })
    })
  }

  #split(split: () => ReadonlyArray<SseEvent>): void {
    try {
      for (const event of split()) this.#arrived.push(event)
    } catch (error) {
      if (!(error instanceof EventTooLarge)) throw error
      if (!this.#survives(this.#judge.fail("event_too_large"))) return
      this.#isGivenUp = true
      this.#unread.push(this.#splitter.rest())
    }
  }

  /** Sends what may be sent, until a call must be awaited. A call may return at once, so this is a loop. */
  #advance(): void {
    if (this.#isAdvancing) return
    this.#isAdvancing = true
    while (!this.isBusy && !this.#isStopped) {
      const isComplete = this.#addArrived()
      if (this.#isStopped) break
      this.#send(this.#windows.release())
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
    return this.#survives(this.#judge.fail(`cannot read: ${unreadable.join(", ")}`))
  }

  #startCall(): void {
    this.#judge.judge(this.#windows.takeDue(), checked, (consequence) => {
      if (!this.#survives(consequence) || this.#isAdvancing) return
      this.#advance()
      if (!this.isBusy) this.#outlet.ready()
    })
  }

  #finish(): void {
    for (const bytes of this.#unread.splice(0)) this.#send(bytes)
    if (this.#hasEnded) this.#outlet.end()
  }

  #send(text: string | Buffer): void {
    if (text.length > 0) this.#outlet.push(Buffer.from(text))
  }

  /** Returns false and stops the stream if it may not pass. */
  #survives(consequence: Consequence): boolean {
    if (this.#isStopped) return false
    if (consequence._tag !== "Stops") return true
    this.#isStopped = true
    this.#outlet.stop(stoppedBy(consequence.code, this.#step.definition.name))
    return false
  }
}

/** A part of the text was already sent, so a window cannot be changed. */
const checked = (verdict: Verdict): Reply => (verdict.action === "modify" ? invalidReply : Result.succeed(verdict))
