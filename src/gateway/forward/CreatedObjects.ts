import * as Headers from "../../http/Headers.ts"
import { forEachLinePart } from "../../http/SseLines.ts"
import * as JsonBounds from "../../policy/facts/JsonBounds.ts"
import { markersOf, type ObjectSearch, objectsIn, type UpstreamObject } from "../../policy/routes/UpstreamObjects.ts"
import { CollectedBytes } from "../../services/CollectedBytes.ts"
import * as Forward from "./Forward.ts"

/**
 * Reads, of an answer that passes, which objects of the upstream it makes known. An event stream names its response in
 * its first event, when the client may use it already: `found` is told of it at once.
 */
export class CreatedObjects implements Forward.ResponseObserver {
  readonly #sought: ObjectSearch
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

  constructor(sought: ObjectSearch, found: (objects: ReadonlyArray<UpstreamObject>) => void) {
    this.#sought = sought
    this.#awaited = sought.created
    this.#found = found
  }

  onHead(status: number, headers: Headers.RawHeaders): void {
    const plain = (Headers.get(headers, "content-encoding") ?? "identity").toLowerCase() === "identity"
    if (status >= 300 || !plain) return
    const type = Forward.contentTypeOf(headers)
    const reads = type.includes("json") ? "json" : type.startsWith("text/event-stream") ? "events" : undefined
    if (reads === undefined) return
    this.#reads = reads
    this.#marks = markersOf(this.#sought, reads)
  }

  onChunk(bytes: Buffer): void {
    if (this.#reads === "json") {
      this.#collected.add(bytes)
      if (this.#collected.length > maxJsonBytes) this.#stop()
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
  unannounced(): ReadonlyArray<UpstreamObject> {
    return this.#untold
  }

  /** Each line is read once, when it is whole, however the stream is cut. */
  #readEvents(bytes: Buffer): void {
    forEachLinePart(bytes, (_, from, end, isEnd) => {
      if (this.#reads === "nothing") return
      this.#collect(bytes.subarray(from, end))
      if (!isEnd) return
      const line = this.#skips ? undefined : this.#collected.take()
      this.#skips = false
      if (line !== undefined) this.#readLine(line)
    })
    if (this.#reads === "nothing" || !this.#awaited) return
    this.#before += bytes.length
    if (this.#before > maxStreamBytes) this.#settle()
  }

  #collect(bytes: Buffer): void {
    if (this.#skips) return
    this.#collected.add(bytes)
    if (this.#collected.length <= maxStreamBytes) return
    this.#skips = true
    this.#collected.clear()
  }

  #readLine(line: Buffer): void {
    if (!line.subarray(0, dataPrefix.length).equals(dataPrefix)) return
    if (!this.#awaited && !this.#isMarked(line)) return
    const objects = this.#add(line.subarray(dataPrefix.length))
    if (this.#awaited && objects.some(({ kind }) => kind === this.#sought.kind)) this.#settle()
    if (objects.length > 0) this.#found(objects)
  }

  /** What of these objects is new. */
  #add(json: Buffer): ReadonlyArray<UpstreamObject> {
    const added = objectsIn(this.#sought, parseJson(json))
      .filter(({ id, kind }) => !this.#objects.has(`${kind}/${id}`))
      .slice(0, maxObjects - this.#objects.size)
    for (const object of added) this.#objects.set(`${object.kind}/${object.id}`, object)
    if (this.#objects.size >= maxObjects) this.#stop()
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

const dataPrefix = Buffer.from("data:")

const parseJson = (json: Buffer): unknown => {
  if (JsonBounds.isExcessive(json)) return undefined
  try {
    return JSON.parse(json.toString())
  } catch {
    return undefined
  }
}

/** More than any honest answer makes known: each is kept until the stream ends, and then recorded. */
const maxObjects = 1_024

/** A longer answer makes nothing known. */
const maxJsonBytes = 4_194_304

/** Of a line, and before the event that is waited for, which repeats the request's instructions and tools. */
const maxStreamBytes = 1_048_576
