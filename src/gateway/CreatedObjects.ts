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
  #chunks: Array<Buffer> = []
  #length = 0
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
    if (this.#reads === "nothing") return
    this.#length += bytes.length
    this.#chunks.push(bytes)
    if (this.#reads === "events") this.#readEvents()
    else if (this.#length > mostJson) this.#stop()
  }

  /** All that the answer made known, when it is over. */
  objects(): ReadonlyArray<UpstreamObject> {
    if (this.#reads === "json") {
      this.#objects = madeKnown(this.#kind, parsed(Buffer.concat(this.#chunks).toString()), this.#created)
      this.#stop()
    }
    return this.#objects
  }

  #readEvents(): void {
    const text = Buffer.concat(this.#chunks).toString()
    const lines = text.split(/\r\n|\r|\n/)
    for (const line of lines.slice(0, -1)) {
      const objects = line.startsWith("data:") ? madeKnown(this.#kind, parsed(line.slice(5)), this.#created) : []
      if (objects.length === 0) continue
      this.#objects = objects
      this.#stop()
      this.#found(objects)
      return
    }
    if (this.#length > mostOfStream) this.#stop()
  }

  #stop(): void {
    this.#reads = "nothing"
    this.#chunks = []
  }
}

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
