import { CollectedBytes } from "../services/CollectedBytes.ts"
import * as Forward from "./Forward.ts"
import * as Headers from "./Headers.ts"
import { madeKnown, type UpstreamObject } from "./model/UpstreamObjects.ts"

/**
 * Reads, of an answer that passes, which objects of the upstream it makes known. An event stream names its response in
 * its first event, when the client may use it already: `found` is told of it at once.
 */
export class CreatedObjects implements Forward.AnswerWatch {
  readonly #kind: string
  readonly #created: boolean
  readonly #found: (objects: ReadonlyArray<UpstreamObject>) => void
  #reads: "json" | "events" | "nothing" = "nothing"
  /** The JSON answer, or the begun line of a stream. */
  readonly #collected = new CollectedBytes()
  /** Bytes of the stream. */
  #seen = 0
  #objects: ReadonlyArray<UpstreamObject> = []

  constructor(kind: string, created: boolean, found: (objects: ReadonlyArray<UpstreamObject>) => void) {
    this.#kind = kind
    this.#created = created
    this.#found = found
  }

  head(status: number, headers: Headers.RawHeaders): void {
    const plain = (Headers.get(headers, "content-encoding") ?? "identity").toLowerCase() === "identity"
    if (status >= 300 || !plain) return
    const type = Forward.contentType(headers)
    this.#reads = type.includes("json") ? "json" : type.startsWith("text/event-stream") ? "events" : "nothing"
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
      this.#objects = madeKnown(this.#kind, parsed(this.#collected.take().toString()), this.#created)
      this.#stop()
    }
    return this.#objects
  }

  /** Each line is read once, when it is whole, however the stream is cut. */
  #readEvents(bytes: Buffer): void {
    let from = 0
    for (let end = bytes.indexOf(lineFeed); end !== -1; end = bytes.indexOf(lineFeed, from)) {
      this.#collected.add(bytes.subarray(from, end))
      from = end + 1
      this.#readLine(this.#collected.take())
      if (this.#reads === "nothing") return
    }
    this.#collected.add(bytes.subarray(from))
    this.#seen += bytes.length
    if (this.#seen > mostOfStream) this.#stop()
  }

  #readLine(line: Buffer): void {
    if (!line.subarray(0, dataField.length).equals(dataField)) return
    const objects = madeKnown(this.#kind, parsed(line.toString("utf8", dataField.length)), this.#created)
    if (objects.length === 0) return
    this.#objects = objects
    this.#stop()
    this.#found(objects)
  }

  #stop(): void {
    this.#reads = "nothing"
    this.#collected.clear()
  }
}

const lineFeed = 0x0a
const dataField = Buffer.from("data:")

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A longer answer makes nothing known. */
const mostJson = 4_194_304

/** The first event repeats the request's instructions and tools. */
const mostOfStream = 262_144
