import { Option, Result, Schema } from "effect"
import { CollectedBytes } from "../services/CollectedBytes.ts"
import { FirstTextDelay } from "./FirstTextDelay.ts"
import type { Verdict } from "./GuardrailOutcome.ts"
import type { HttpStep } from "./Selection.ts"
import { noBytes, type StreamGuardrail, type StreamOutlet, type StreamReport } from "./StreamGuardrail.ts"
import { type HttpStreamOptions, invalidReply, type Passing, type Reply, StreamJudge } from "./StreamJudge.ts"
import { type LaneChanges, LaneTexts } from "./stream/LaneTexts.ts"
import { EventTooLarge, type SseEvent, SseSplitter } from "./stream/SseEvents.ts"
import type { TextRoute } from "./text/Place.ts"

/** An HTTP guardrail that judges all texts of a stream in one call, before the first event passes. */
export class BufferedStream implements StreamGuardrail {
  readonly #step: HttpStep
  readonly #route: TextRoute
  readonly #outlet: StreamOutlet
  readonly #judge: StreamJudge
  readonly #texts: LaneTexts
  readonly #splitter = new SseSplitter()
  readonly #collected = new CollectedBytes()
  readonly #firstText: FirstTextDelay
  #isJudged = false
  #heldCharacters = 0
  /** True if the rest of the stream passes unread, because the guardrail failed and its failure policy lets it pass. */
  #isGivenUp = false

  constructor(step: HttpStep, options: HttpStreamOptions, outlet: StreamOutlet) {
    this.#step = step
    this.#route = options.route
    this.#outlet = outlet
    this.#judge = new StreamJudge(step, options, outlet)
    this.#texts = new LaneTexts(options.route)
    this.#firstText = new FirstTextDelay(options.now)
  }

  get isBusy(): boolean {
    return this.#judge.isBusy
  }

  push(bytes: Buffer): void {
    if (this.#isGivenUp) {
      this.#outlet.push(bytes)
      return
    }
    this.#collected.add(bytes)
    this.#read(() => this.#splitter.push(bytes))
  }

  end(): void {
    if (!this.#isGivenUp) this.#read(() => this.#splitter.end())
    if (this.#isGivenUp) this.#release(noBytes)
    else if (!this.#judge.isStopped) this.#judgeAll()
  }

  #judgeAll(): void {
    const { unreadable } = this.#texts
    if (unreadable.length > 0 && !this.#judge.fail(`cannot read: ${unreadable.join(", ")}`)) return
    const texts = this.#texts.texts()
    this.#heldCharacters = texts.reduce((sum, { text }) => sum + text.length, 0)
    const pass = (consequence: Passing) => this.#release(this.#changedBy(consequence))
    if (texts.length === 0) pass({ _tag: "Goes" })
    else this.#judge.judge(texts, (verdict) => this.#checked(verdict), pass)
  }

  cancel(): void {
    this.#judge.cancel()
  }

  takeUnsent(): Buffer {
    return this.#collected.take()
  }

  report(): StreamReport {
    const { unreadable } = this.#texts
    return this.#judge.report(this.#isJudged, {
      held_characters: this.#heldCharacters,
      ...this.#firstText.metadata,
      ...(unreadable.length > 0 && { unguarded: unreadable })
    })
  }

  #read(split: () => ReadonlyArray<SseEvent>): void {
    try {
      for (const event of split()) this.#texts.add(event)
      if (this.#texts.hasTexts) this.#firstText.arrived()
    } catch (error) {
      if (!(error instanceof EventTooLarge)) throw error
      if (!this.#judge.fail("event_too_large")) return
      this.#isGivenUp = true
      this.#firstText.sent()
      this.#outlet.push(this.#collected.take())
    }
  }

  #release(bytes: Buffer): void {
    this.#isJudged = true
    this.#firstText.sent()
    if (bytes.length > 0) this.#outlet.push(bytes)
    this.#outlet.end()
  }

  /** The failure policy decides whether a text passes that should change and cannot. */
  #checked(verdict: Verdict): Reply {
    if (verdict.action !== "modify" || verdict.text === undefined) return Result.succeed(verdict)
    const changes = this.#changesOf(verdict.text)
    if (changes === undefined) return invalidReply
    if (changes.fixed.size === 0) return Result.succeed(verdict)
    const action = this.#step.definition.failurePolicy === "fail_closed" ? "block" : "modify"
    return Result.succeed({ ...verdict, action, metadata: { ...verdict.metadata, unguarded: [...changes.fixed] } })
  }

  #changedBy(consequence: Passing): Buffer {
    const collected = this.#collected.take()
    const changes = consequence._tag === "GoesAs" ? this.#changesOf(consequence.text) : undefined
    return changes === undefined ? collected : Buffer.from(changes.apply(this.#route, collected))
  }

  /** Returns `undefined` if the reply is not as described, or names a lane twice or an unknown one. */
  #changesOf(reply: string): LaneChanges | undefined {
    const decoded = Option.getOrUndefined(decodeTexts(reply))
    if (decoded === undefined) return undefined
    const texts = new Map(decoded.texts.map(({ lane, text }) => [lane, text]))
    return texts.size === decoded.texts.length ? this.#texts.changes(texts) : undefined
  }
}

const ChangedTexts = Schema.fromJsonString(
  Schema.Struct({ texts: Schema.Array(Schema.Struct({ lane: Schema.String, text: Schema.String })) })
)
const decodeTexts = Schema.decodeUnknownOption(ChangedTexts)
