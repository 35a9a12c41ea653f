import * as Headers from "../../http/Headers.ts"
import { eachPart } from "../../http/SseLines.ts"
import * as JsonBounds from "../../policy/facts/JsonBounds.ts"
import { madeKnown, marksOf, type Sought, type UpstreamObject } from "../../policy/routes/UpstreamObjects.ts"
import { CollectedBytes } from "../../services/CollectedBytes.ts"
import * as Forward from "./Forward.ts"

/**
 * Reads, of an answer that passes, which objects of the upstream it makes known. An event stream names its response in
 * its first event, when the client may use it already: `found` is told of it at once.
 */
export class CreatedObjects implements Forward.AnswerWatch {
  readonly #sought: Sought
  readonly #found: (objects: ReadonlyArray<UpstreamObject>) => void
  #reads: "json" | "events" | "nothing" = "nothing"
  /** What is in the text that makes known more than what was created. */
  #marks: ReadonlyArray<string> = []
  /** The JSON answer, or the begun line of a stream. */
  readonly #collected = new CollectedBytes()
  /** The rest of the line is not read: it is too long. */
  #skips = false
  /** The event that names what was created is still to come. */
  #awaited: boolean
  /** Bytes of the stream before that event. */
  #before = 0
  #untold: ReadonlyArray<UpstreamObject> = []
  readonly #objects = new Map<string, UpstreamObject>()

  constructor(sought: Sought, found: (objects: ReadonlyArray<UpstreamObject>) => void) {
    this.#sought = sought
    this.#awaited = sought.created
    this.#found = found
  }

  head(status: number, headers: Headers.RawHeaders): void {
    const plain = (Headers.get(headers, "content-encoding") ?? "identity").toLowerCase() === "identity"
    if (status >= 300 || !plain) return
    const type = Forward.contentType(headers)
    const reads = type.includes("json") ? "json" : type.startsWith("text/event-stream") ? "events" : undefined
    if (reads === undefined) return
    this.#reads = reads
    this.#marks = marksOf(this.#sought, reads)
  }

  chunk(bytes: Buffer): void {
    if (this.#reads === "json") {
      this.#collected.add(bytes)
      if (this.#collected.length > mostJson) this.#stop()
    } else if (this.#reads === "events") this.#readEvents(bytes)
  }

  /** All that the answer made known, when it is over. */
  objects(): ReadonlyArray<UpstreamObject> {
    if (this.#reads === "json") {
      const bytes = this.#collected.take()
      // most answers of tools name no container, and are not parsed for it
      if (this.#sought.created || this.#marks.length === 0 || this.#isMarked(bytes)) this.#untold = this.#add(bytes)
      this.#stop()
    }
    return [...this.#objects.values()]
  }

  /** Those of them that `found` was not told of. */
  untold(): ReadonlyArray<UpstreamObject> {
    return this.#untold
  }

  /** Each line is read once, when it is whole, however the stream is cut. */
  #readEvents(bytes: Buffer): void {
    eachPart(bytes, (_, from, end, isEnd) => {
      if (this.#reads === "nothing") return
      this.#collect(bytes.subarray(from, end))
      if (!isEnd) return
      const line = this.#skips ? undefined : this.#collected.take()
      this.#skips = false
      if (line !== undefined) this.#readLine(line)
    })
    if (this.#reads === "nothing" || !this.#awaited) return
    this.#before += bytes.length
    if (this.#before > mostOfStream) this.#settle()
  }

  #collect(bytes: Buffer): void {
    if (this.#skips) return
    this.#collected.add(bytes)
    if (this.#collected.length <= mostOfStream) return
    this.#skips = true
    this.#collected.clear()
  }

  #readLine(line: Buffer): void {
    if (!line.subarray(0, dataField.length).equals(dataField)) return
    if (!this.#awaited && !this.#isMarked(line)) return
    const objects = this.#add(line.subarray(dataField.length))
    if (this.#awaited && objects.some(({ kind }) => kind === this.#sought.kind)) this.#settle()
    if (objects.length > 0) this.#found(objects)
  }

  /** What of these objects is new. */
  #add(json: Buffer): ReadonlyArray<UpstreamObject> {
    const added = madeKnown(this.#sought, parsed(json))
      .filter(({ id, kind }) => !this.#objects.has(`${kind}/${id}`))
      .slice(0, mostObjects - this.#objects.size)
    for (const object of added) this.#objects.set(`${object.kind}/${object.id}`, object)
    if (this.#objects.size >= mostObjects) this.#stop()
    return added
  }

  /** Nothing created is waited for any longer. */
  #settle(): void {
    this.#awaited = false
    if (this.#marks.length === 0) this.#stop()
  }

  #isMarked(bytes: Buffer): boolean {
    return this.#marks.some((mark) => bytes.includes(mark))
  }

  #stop(): void {
    this.#reads = "nothing"
    this.#collected.clear()
  }
}

const dataField = Buffer.from("data:")

const parsed = (json: Buffer): unknown => {
  if (JsonBounds.isExcessive(json)) return undefined
  try {
    return JSON.parse(json.toString())
  } catch {
    return undefined
  }
}

/** More than any honest answer makes known: each is kept until the stream ends, and then recorded. */
const mostObjects = 1_024

/** A longer answer makes nothing known. */
const mostJson = 4_194_304

/** Of a line, and before the event that is waited for, which repeats the request's instructions and tools. */
const mostOfStream = 1_048_576
