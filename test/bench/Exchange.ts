import type { RecordableHistogram } from "node:perf_hooks"
import { Client, type Dispatcher } from "undici"
import { nanos } from "./Latency.ts"
import { bodies, eventsOf, type Kind, path } from "./Scenario.ts"

/** Whom to ask, and with what in the headers. */
export interface Target {
  readonly origin: string
  readonly headers: Readonly<Record<string, string>>
}

/** What a client saw of one answer. */
export interface Seen {
  /** Status 200, to its end, and of a stream every event. */
  readonly whole: boolean
  readonly firstByteMs: number
  readonly totalMs: number
  /** The longest silence between two arrivals. */
  readonly longestGapMs: number
  /** The first reason why it is not whole. */
  readonly problem: string | undefined
}

const silenceMs = 30_000

/** A connection for one exchange at a time. */
export const connect = ({ origin }: Target): Client =>
  new Client(origin, { pipelining: 1, headersTimeout: silenceMs, bodyTimeout: silenceMs, keepAliveTimeout: silenceMs })

/** `gaps` gets the silences between two arrivals, in nanoseconds. */
export const ask = (
  client: Client,
  { headers }: Target,
  kind: Kind,
  done: (seen: Seen) => void,
  gaps?: RecordableHistogram
): void => {
  client.dispatch(
    {
      method: "POST",
      path,
      headers: { "content-type": "application/json", ...headers },
      body: bodies[kind]
    },
    new Reader(kind, done, gaps)
  )
}

const newline = 0x0a

class Reader implements Dispatcher.DispatchHandler {
  readonly #expectedEvents: number
  readonly #done: (seen: Seen) => void
  readonly #gaps: RecordableHistogram | undefined
  readonly #begun = performance.now()
  #status = 0
  #firstByte = Number.NaN
  #lastByte = Number.NaN
  #longestGap = 0
  #events = 0
  #blankLineBegun = false

  constructor(kind: Kind, done: (seen: Seen) => void, gaps: RecordableHistogram | undefined) {
    this.#expectedEvents = eventsOf(kind)
    this.#done = done
    this.#gaps = gaps
  }

  onRequestStart(): void {}

  onResponseStart(_: Dispatcher.DispatchController, status: number): void {
    this.#status = status
  }

  onResponseData(_: Dispatcher.DispatchController, bytes: Buffer): void {
    const now = performance.now()
    if (Number.isNaN(this.#firstByte)) this.#firstByte = now
    else this.#countGap(now - this.#lastByte)
    this.#lastByte = now
    if (this.#expectedEvents > 0) this.#countEvents(bytes)
  }

  onResponseEnd(): void {
    // a guardrail may send the rest of a text in an event of its own
    const missing = this.#expectedEvents - this.#events
    this.#finish(
      this.#status !== 200 ? `status ${this.#status}` : missing <= 0 ? undefined : `${missing} events are missing`
    )
  }

  onResponseError(_: unknown, error: Error): void {
    this.#finish(error.message)
  }

  #countGap(gap: number): void {
    this.#longestGap = Math.max(this.#longestGap, gap)
    this.#gaps?.record(nanos(gap))
  }

  /** An event ends with a blank line, which two chunks may share. */
  #countEvents(bytes: Buffer): void {
    if (this.#blankLineBegun && bytes[0] === newline) this.#events++
    for (let at = bytes.indexOf("\n\n"); at !== -1; at = bytes.indexOf("\n\n", at + 2)) this.#events++
    this.#blankLineBegun = bytes.at(-1) === newline && bytes.at(-2) !== newline
  }

  #finish(problem: string | undefined): void {
    this.#done({
      whole: problem === undefined,
      firstByteMs: this.#firstByte - this.#begun,
      totalMs: performance.now() - this.#begun,
      longestGapMs: this.#longestGap,
      problem
    })
  }
}
