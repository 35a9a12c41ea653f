import type { IncomingMessage, ServerResponse } from "node:http"
import { Effect } from "effect"
import * as Headers from "../src/gateway/Headers.ts"
import type { BodyFailure, Wire } from "../src/gateway/Wire.ts"

const tooLarge: BodyFailure = { _tag: "TooLarge" }
const tooSlow: BodyFailure = { _tag: "TooSlow" }
const cut: BodyFailure = { _tag: "Cut" }
const noRoom: BodyFailure = { _tag: "NoRoom" }

/**
 * A client of Node's HTTP/1.1 server. Reading and writing are plain callbacks on its two streams: this is the byte path
 * of every request.
 */
export const make = (incoming: IncomingMessage, outgoing: ServerResponse): Wire => ({
  method: incoming.method ?? "GET",
  target: incoming.url ?? "/",
  headers: incoming.rawHeaders,

  readBody: ({ lease, maxBytes, withinMs }) =>
    Effect.callback<Buffer, BodyFailure>((resume) => {
      if (declaredLength(incoming) > maxBytes) return resume(Effect.fail(tooLarge))
      const chunks: Array<Buffer> = []
      let size = 0
      const finish = (result: Effect.Effect<Buffer, BodyFailure>) => {
        release()
        resume(result)
      }
      const onData = (chunk: Buffer) => {
        size += chunk.length
        if (size > maxBytes) return finish(Effect.fail(tooLarge))
        if (!lease.grow(chunk.length)) return finish(Effect.fail(noRoom))
        chunks.push(chunk)
      }
      const onEnd = () => finish(Effect.succeed(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, size)))
      const onCut = () => finish(Effect.fail(cut))
      const timer = setTimeout(() => finish(Effect.fail(tooSlow)), withinMs)
      const release = () => {
        clearTimeout(timer)
        incoming.off("data", onData).off("end", onEnd).off("close", onCut).off("error", onCut)
      }
      incoming.on("data", onData).on("end", onEnd).on("close", onCut).on("error", onCut)
      invite(incoming, outgoing)
      return Effect.sync(release)
    }),

  streamBody: async function* ({ idleMs, maxBytes, onFailure }) {
    const refuse = (failure: BodyFailure): Error => {
      onFailure(failure)
      return new Error(`the request body was not taken: ${failure._tag}`)
    }
    if (declaredLength(incoming) > maxBytes) throw refuse(tooLarge)
    invite(incoming, outgoing)
    // the connection outlives the body: there is an answer to give
    const chunks: AsyncIterator<Buffer> = incoming.iterator({ destroyOnReturn: false })
    let size = 0
    for (;;) {
      const next = await within(idleMs, chunks.next()).catch(() => {
        throw refuse(cut)
      })
      if (next === undefined) throw refuse(tooSlow)
      if (next.done === true) return
      size += next.value.length
      if (size > maxBytes) throw refuse(tooLarge)
      yield next.value
    }
  },

  head: (status, headers) => {
    outgoing.writeHead(status, [...headers])
    // an answer without a length may be long in coming, and its client wants to know that it is accepted; with a length
    // the headers go out in one write with the first bytes
    if (Headers.get(headers, "content-length") === undefined) outgoing.flushHeaders()
  },
  write: (bytes) => outgoing.write(bytes),
  onDrain: (resume, withinMs) => {
    const stalled = setTimeout(() => outgoing.destroy(), withinMs)
    const onClose = () => clearTimeout(stalled)
    outgoing.once("close", onClose)
    outgoing.once("drain", () => {
      clearTimeout(stalled)
      outgoing.off("close", onClose)
      resume()
    })
  },
  end: () => {
    outgoing.end()
  },
  cut: () => {
    outgoing.destroy()
  },
  answer: (status, headers, body) => {
    if (outgoing.headersSent) {
      outgoing.destroy()
      return
    }
    outgoing.writeHead(status, [...headers, "content-length", String(Buffer.byteLength(body))])
    outgoing.end(body)
  }
})

const declaredLength = (incoming: IncomingMessage): number => Number(incoming.headers["content-length"] ?? 0)

/** A client that asked first (`Expect: 100-continue`) sends its body only now that somebody wants it. */
const invite = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
  if (incoming.headers.expect?.toLowerCase() === "100-continue" && !incoming.complete) outgoing.writeContinue()
}

const within = async <A>(ms: number, promise: Promise<A>): Promise<A | undefined> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms)
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}
