import * as Headers from "../../../http/Headers.ts"
import { LineScanner } from "../../../http/SseLines.ts"
import * as JsonBounds from "../../../policy/facts/JsonBounds.ts"
import { markersOf, type ObjectSearch, objectsIn, type UpstreamObject } from "../../../policy/routes/UpstreamObjects.ts"
import { CollectedBytes } from "../../../services/CollectedBytes.ts"
import type * as Forward from "../Forward.ts"

/**
 * Finds upstream objects (such as stored responses and files) that a response names. In a stream, calls `found` at
 * once, because the client may already use the object.
 */
export class CreatedObjects implements Forward.ResponseObserver {
  readonly #sought: ObjectSearch
  readonly #found: (objects: ReadonlyArray<UpstreamObject>) => void
  #format: "json" | "events" | "nothing" = "nothing"
  /** Text without any of these strings names no further objects. */
  #marks: ReadonlyArray<string> = []
  readonly #collected = new CollectedBytes()
  readonly #lines = new LineScanner()
  #isLineSkipped = false
  #awaitsCreation: boolean
  #bytesBefore = 0
  #unannounced: ReadonlyArray<UpstreamObject> = []
  readonly #objects = new Map<string, UpstreamObject>()

  constructor(sought: ObjectSearch, found: (objects: ReadonlyArray<UpstreamObject>) => void) {
    this.#sought = sought
    this.#awaitsCreation = sought.created
    this.#found = found
  }

  onHead(status: number, headers: Headers.RawHeaders): void {
    if (status >= 300 || Headers.contentEncoding(headers) !== "identity") return
    const type = Headers.contentType(headers)
    const reads = type.includes("json") ? "json" : type.startsWith("text/event-stream") ? "events" : undefined
    if (reads === undefined) return
    this.#format = reads
    this.#marks = markersOf(this.#sought, reads)
  }

  onChunk(bytes: Buffer): void {
    if (this.#format === "json") {
      this.#collected.add(bytes)
      if (this.#collected.length > maxJsonBytes) this.#stop()
    } else if (this.#format === "events") this.#readEvents(bytes)
  }

  /** Returns all objects that the response names. Call it once, after the last chunk. */
  objects(): ReadonlyArray<UpstreamObject> {
    if (this.#format === "json") {
      const bytes = this.#collected.take()
      // A response that cannot name an object is not parsed.
      if (this.#sought.created || this.#marks.length === 0 || this.#isMarked(bytes))
        this.#unannounced = this.#add(bytes)
      this.#stop()
    }
    return [...this.#objects.values()]
  }

  /** Returns the objects for which `found` was not called. */
  unannounced(): ReadonlyArray<UpstreamObject> {
    return this.#unannounced
  }

  #readEvents(bytes: Buffer): void {
    this.#lines.scan(bytes, (part, from, end, isEnd) => {
      if (this.#format === "nothing") return
      this.#collect(part.subarray(from, end))
      if (!isEnd) return
      const line = this.#isLineSkipped ? undefined : this.#collected.take()
      this.#isLineSkipped = false
      if (line !== undefined) this.#readLine(line)
    })
    if (this.#format === "nothing" || !this.#awaitsCreation) return
    this.#bytesBefore += bytes.length
    if (this.#bytesBefore > maxStreamBytes) this.#stopAwaiting()
  }

  #collect(bytes: Buffer): void {
    if (this.#isLineSkipped) return
    this.#collected.add(bytes)
    if (this.#collected.length <= maxStreamBytes) return
    this.#isLineSkipped = true
    this.#collected.clear()
  }

  #readLine(line: Buffer): void {
    if (!line.subarray(0, dataPrefix.length).equals(dataPrefix)) return
    if (!this.#awaitsCreation && !this.#isMarked(line)) return
    const objects = this.#add(line.subarray(dataPrefix.length))
    if (this.#awaitsCreation && objects.some(({ kind }) => kind === this.#sought.kind)) this.#stopAwaiting()
    if (objects.length > 0) this.#found(objects)
  }

  #add(json: Buffer): ReadonlyArray<UpstreamObject> {
    const added = objectsIn(this.#sought, parseJson(json))
      .filter(({ id, kind }) => !this.#objects.has(`${kind}/${id}`))
      .slice(0, maxObjects - this.#objects.size)
    for (const object of added) this.#objects.set(`${object.kind}/${object.id}`, object)
    if (this.#objects.size >= maxObjects) this.#stop()
    return added
  }

  #stopAwaiting(): void {
    this.#awaitsCreation = false
    if (this.#marks.length === 0) this.#stop()
  }

  #isMarked(bytes: Buffer): boolean {
    return this.#marks.some((mark) => bytes.includes(mark))
  }

  #stop(): void {
    this.#format = "nothing"
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

/** No real response names more objects. The objects are kept in memory until the stream ends. */
const maxObjects = 1_024

/** Longer JSON responses (in bytes) are not searched for upstream objects. */
const maxJsonBytes = 4_194_304

/** The maximum bytes of a line. Also the number of bytes of a stream that are searched for the created object. */
const maxStreamBytes = 1_048_576
