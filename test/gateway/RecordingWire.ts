import { Result } from "effect"
import type { BodyFailure, Wire } from "../../src/gateway/request/Wire.ts"
import * as Headers from "../../src/http/Headers.ts"

export interface ClientRequest {
  readonly method?: string
  readonly target: string
  readonly headers?: Headers.RawHeaders
  /** Text, or what is sent as JSON. `stalls`: not all of it comes. `cut`: the client leaves in its middle. */
  readonly body?: string | object | "stalls" | "cut"
  /** The client takes each chunk only when it is told to go on. */
  readonly slow?: boolean
  /** The client takes the end of its answer only with `takeRest`. */
  readonly unread?: boolean
  /** Default: 192.0.2.1. */
  readonly address?: string
}

/** One client in memory: sends its request, and keeps what it gets. */
export interface RecordingWire extends Wire {
  readonly status: number | undefined
  readonly received: Headers.RawHeaders
  readonly header: (name: string) => string | undefined
  readonly text: string
  readonly takeRest: () => void
  /** A body that stalls is given up. */
  readonly tooSlow: () => void
  /** `whole`: the client had the end of its answer. `cut`: it saw that there is more. `open`: neither, yet. */
  readonly ending: "open" | "whole" | "cut"
}

/** `journal` gets a line for everything that reaches the client, in its order among all else that is noted there. */
export const make = (request: ClientRequest, journal: Array<string> = []): RecordingWire => {
  const {
    address = "192.0.2.1",
    body = "",
    headers = [],
    method = "POST",
    slow = false,
    target,
    unread = false
  } = request
  const bytes = Buffer.from(typeof body === "string" ? body : JSON.stringify(body))
  const chunks: Array<Buffer> = []
  let status: number | undefined
  let received: Headers.RawHeaders = []
  let ending: RecordingWire["ending"] = "open"
  let stalled = () => {}
  let flushed = () => {}
  const fail = (failure: BodyFailure) => Result.fail(failure)
  const keep = (chunk: Uint8Array) => {
    if (status === undefined || ending !== "open") throw new Error("a write outside of the answer")
    chunks.push(Buffer.from(chunk))
    journal.push(`write ${Buffer.from(chunk).toString()}`)
  }
  return {
    method,
    target,
    headers,
    address,
    connection: {},
    readBody: ({ lease, maxBytes }, done) => {
      const grown = (length: number) => {
        const whose = lease.grow(length)
        return whose === undefined ? undefined : fail({ _tag: "NoRoom", whose })
      }
      if (body === "stalls") {
        // its first byte has come
        const refused = grown(1)
        if (refused !== undefined) return done(refused)
        journal.push("the body stalls")
        stalled = () => done(fail({ _tag: "TooSlow", by: "deadline" }))
        return
      }
      if (body === "cut") return done(fail({ _tag: "Cut" }))
      if (bytes.length > maxBytes) return done(fail({ _tag: "TooLarge" }))
      done(grown(bytes.length) ?? Result.succeed(bytes))
    },
    tooSlow: () => stalled(),
    streamBody: async function* ({ maxBytes, onFailure }) {
      const refuse = (failure: BodyFailure) => {
        onFailure(failure)
        return new Error(failure._tag)
      }
      if (body === "stalls") throw refuse({ _tag: "TooSlow", by: "deadline" })
      if (body === "cut") throw refuse({ _tag: "Cut" })
      if (bytes.length > maxBytes) throw refuse({ _tag: "TooLarge" })
      yield bytes
    },
    head: (code, fields) => {
      if (status !== undefined) throw new Error("the head was sent before")
      status = code
      received = fields
      journal.push(`head ${code}`)
    },
    write: (chunk) => {
      keep(chunk)
      return !slow
    },
    onDrain: (resume) => {
      if (slow) resume()
    },
    end: (last) => {
      if (last !== undefined) keep(last)
      ending = "whole"
      journal.push("end")
      return !unread
    },
    onFlushed: (done) => {
      flushed = done
    },
    takeRest: () => flushed(),
    abort: () => {
      ending = "cut"
      journal.push("cut")
    },
    respond: (code, fields, text) => {
      if (status !== undefined) {
        ending = "cut"
        journal.push("cut")
        return
      }
      status = code
      received = fields
      chunks.push(Buffer.from(text))
      ending = "whole"
      journal.push(`answer ${code}`)
    },
    get status() {
      return status
    },
    get received() {
      return received
    },
    header: (name) => Headers.get(received, name),
    get text() {
      return Buffer.concat(chunks).toString()
    },
    get ending() {
      return ending
    }
  }
}
