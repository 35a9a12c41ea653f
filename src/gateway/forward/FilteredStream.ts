import type { BodyLease } from "../../services/BodyLeases.ts"
import type { Flow } from "../../services/Upstream.ts"
import type { GatewayError } from "../GatewayError.ts"
import * as BodyAdmission from "../request/BodyAdmission.ts"

/** Checks or changes an event stream on its way to the client. It writes to its output at once, or later. */
export interface StreamFilter {
  readonly push: (bytes: Buffer) => void
  /** The stream is complete. The filter calls `end` of its output when it has written everything. */
  readonly end: () => void
  /** The stream failed or the client left. The filter writes nothing afterwards. */
  readonly cancel: () => void
  /** True while the filter cannot take more bytes. It then calls `ready` of its output. */
  readonly isBusy: boolean
  /** Returns bytes that the filter held and did not write. They were produced, so they are billed. */
  readonly takeUnsent: () => Buffer
}

export interface FilterOutput {
  readonly push: (bytes: Buffer) => void
  readonly end: () => void
  /** Ends the stream with an error. */
  readonly block: (error: GatewayError) => void
  readonly ready: () => void
}

export interface StreamFilterOptions {
  /** True if the filter writes nothing before the end of the stream. It then holds all bytes of it. */
  readonly holdsWholeStream: boolean
  /** Reserves the memory of a stream that is held. */
  readonly lease: BodyLease
  /** Runs `run` after `ms` milliseconds, unless the returned function is called first. */
  readonly schedule: (ms: number, run: () => void) => () => void
  readonly open: (output: FilterOutput) => StreamFilter
}

/** What the filtered stream needs of the response that it is a part of. */
interface FilteredResponse {
  /** Sends bytes to the client. Returns `false` if the client reads too slowly. */
  readonly send: (bytes: Buffer) => boolean
  readonly sendComment: (comment: Buffer) => void
  readonly onDrain: (resume: () => void) => void
  /** Ends the exchange with the upstream. */
  readonly stop: () => void
}

/** An event stream that passes through a filter. It pauses the upstream while the filter or the client is busy. */
export class FilteredStream implements FilterOutput {
  readonly #options: StreamFilterOptions
  readonly #response: FilteredResponse
  readonly #filter: StreamFilter
  #blockedBy: GatewayError | undefined
  #isOver = false
  #isPushing = false
  #clientKeepsUp = true
  #awaitsClient = false
  #resume: (() => void) | undefined
  #ended: ((isComplete: boolean) => void) | undefined
  #cancelTimer: (() => void) | undefined
  /** True if memory for the complete stream is reserved. Otherwise memory is reserved for each chunk. */
  #isReserved = true

  constructor(options: StreamFilterOptions, response: FilteredResponse) {
    this.#options = options
    this.#response = response
    this.#filter = options.open(this)
  }

  /** The error that ends the stream. */
  get blockedBy(): GatewayError | undefined {
    return this.#blockedBy
  }

  /** Reserves memory for a stream of up to `maxBytes` bytes. Returns the error if there is none. */
  reserve(maxBytes: number): GatewayError | undefined {
    this.#isReserved = !this.#options.holdsWholeStream || Number.isFinite(maxBytes)
    return this.#options.holdsWholeStream && this.#isReserved ? this.#grow(maxBytes) : undefined
  }

  /** The head was sent. The client may time out before a stream that is held is complete, so comments follow. */
  begin(): void {
    if (this.#options.holdsWholeStream) this.#keepAlive()
  }

  receive(bytes: Buffer): Flow {
    if (!this.#isReserved) this.#blockedBy ??= this.#grow(bytes.length)
    if (this.#blockedBy !== undefined) return "stop"
    this.#isPushing = true
    this.#filter.push(bytes)
    this.#isPushing = false
    if (this.#blockedBy !== undefined) return "stop"
    return this.#filter.isBusy || !this.#clientKeepsUp ? "pause" : "continue"
  }

  onDrain(resume: () => void): void {
    this.#resume = resume
    this.#tryResume()
  }

  /** The upstream has sent all. `ended` is called once, with false if `cancel` or the filter ended the stream first. */
  complete(rest: Buffer | undefined, ended: (isComplete: boolean) => void): void {
    this.#ended = ended
    if (rest !== undefined && rest.length > 0) this.#filter.push(rest)
    if (!this.#isOver) this.#filter.end()
  }

  cancel(): void {
    if (this.#isOver) return
    this.#filter.cancel()
    this.#finish(false)
  }

  takeUnsent(): Buffer {
    return this.#filter.takeUnsent()
  }

  push(bytes: Buffer): void {
    if (this.#isOver) return
    this.#cancelTimer?.()
    if (!this.#response.send(bytes)) this.#clientKeepsUp = false
  }

  end(): void {
    this.#finish(true)
  }

  block(error: GatewayError): void {
    if (this.#isOver) return
    this.#blockedBy = error
    const isAwaited = this.#ended !== undefined
    this.#finish(false)
    // Within `receive`, the return value stops the upstream.
    if (!this.#isPushing && !isAwaited) this.#response.stop()
  }

  ready(): void {
    this.#tryResume()
  }

  #finish(isComplete: boolean): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#cancelTimer?.()
    this.#ended?.(isComplete)
  }

  #tryResume(): void {
    const resume = this.#resume
    if (resume === undefined || this.#filter.isBusy || this.#awaitsClient) return
    if (this.#clientKeepsUp) {
      this.#resume = undefined
      resume()
      return
    }
    this.#awaitsClient = true
    this.#response.onDrain(() => {
      this.#awaitsClient = false
      this.#clientKeepsUp = true
      this.#tryResume()
    })
  }

  #keepAlive(): void {
    this.#cancelTimer = this.#options.schedule(keepAliveMs, () => {
      if (this.#isOver) return
      this.#response.sendComment(waiting)
      this.#keepAlive()
    })
  }

  #grow(bytes: number): GatewayError | undefined {
    const limitOwner = this.#options.lease.grow(bytes)
    return limitOwner === undefined ? undefined : BodyAdmission.refusal(limitOwner, "response")
  }
}

const keepAliveMs = 10_000
const waiting = Buffer.from(": waiting\n\n")
