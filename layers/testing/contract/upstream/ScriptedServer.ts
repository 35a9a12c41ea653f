import { createServer, type Socket } from "node:net"
import { Effect, type Scope } from "effect"
import { portOf } from "./SimulatorServer.ts"

/**
 * One connection of a client. A script reads requests and writes bytes:
 *
 * ```ts
 * const server = yield* ScriptedServer.serve(async (peer) => {
 *   await peer.request()
 *   await peer.write(head(200, ["content-length", "10"]) + "only")
 *   peer.reset()
 * })
 * ```
 *
 * After the script has returned, the connection stays open and silent.
 */
export interface Peer {
  /** 0 for the first connection that the server accepted. */
  readonly index: number
  /** All bytes that the client has sent, as latin1. */
  readonly received: string
  /** Returns the next complete request: head and body. Rejects if the client disconnects first. */
  readonly request: () => Promise<string>
  /** Resolves when the kernel has the bytes. */
  readonly write: (bytes: string | Uint8Array) => Promise<void>
  /** Ends the connection with a FIN. */
  readonly end: () => void
  /** Ends the connection with a RST. */
  readonly reset: () => void
  /** Stops reading from the connection. */
  readonly stopReading: () => void
  readonly closed: Promise<void>
}

export type Script = (peer: Peer) => Promise<void> | void

export interface ScriptedServer {
  readonly origin: string
  /** The same port, for a client that expects TLS. The server never responds to its handshake. */
  readonly secureOrigin: string
  readonly peers: ReadonlyArray<Peer>
}

/** Starts a TCP server that runs the script for each connection. */
export const serve = (script: Script): Effect.Effect<ScriptedServer, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(() => start(script)),
      (server) => Effect.promise(() => server.close())
    ),
    ({ port, peers }) => ({ origin: originOf("http", port), secureOrigin: originOf("https", port), peers })
  )

/** An origin at which no server listens. */
export const refusing: Effect.Effect<string> = Effect.promise(async () => {
  const server = await start(() => {})
  await server.close()
  return originOf("http", server.port)
})

/** Returns the head of a response. */
export const head = (status: number, headers: ReadonlyArray<string> = []): string => {
  const lines = headers.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${headers[i + 1]}`] : []))
  return [`HTTP/1.1 ${status} Scripted`, ...lines, "", ""].join("\r\n")
}

/** Returns a complete response. */
export const answer = (body: string, status = 200): string =>
  head(status, ["content-length", String(Buffer.byteLength(body))]) + body

/** Returns a chunk of a chunked body. An empty chunk ends the body. */
export const chunk = (content: string | Uint8Array): Uint8Array => {
  const bytes = typeof content === "string" ? Buffer.from(content) : content
  return Buffer.concat([Buffer.from(`${bytes.byteLength.toString(16)}\r\n`), bytes, Buffer.from("\r\n")])
}

const originOf = (scheme: string, port: number): string => `${scheme}://127.0.0.1:${port}`

const start = async (script: Script) => {
  const sockets: Array<Socket> = []
  const peers: Array<Peer> = []
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.push(socket)
    const peer = peerOf(socket, peers.length)
    peers.push(peer)
    // A script rejects when its client disconnects. Tests look at the client instead.
    new Promise<void>((done) => done(script(peer))).catch(() => socket.destroy())
  })
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
  return {
    port: portOf(server.address()),
    peers,
    close: () =>
      new Promise<void>((closed) => {
        server.close(() => closed())
        for (const socket of sockets) socket.destroy()
      })
  }
}

const peerOf = (socket: Socket, index: number): Peer => {
  const all: Array<Buffer> = []
  let unread = ""
  let wake = () => {}
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()))
  socket.on("error", () => {})
  socket.on("data", (bytes: Buffer) => {
    all.push(bytes)
    unread += bytes.toString("latin1")
    wake()
  })
  const next = () =>
    new Promise<void>((resolve, reject) => {
      wake = resolve
      void closed.then(() => reject(new Error("the client left")))
    })
  return {
    index,
    get received() {
      return Buffer.concat(all).toString("latin1")
    },
    request: async () => {
      for (;;) {
        const length = requestLength(unread)
        if (length !== undefined) {
          const request = unread.slice(0, length)
          unread = unread.slice(length)
          return request
        }
        await next()
      }
    },
    write: (bytes) =>
      new Promise((resolve, reject) => socket.write(bytes, (error) => (error ? reject(error) : resolve()))),
    end: () => {
      socket.end()
    },
    reset: () => {
      socket.resetAndDestroy()
    },
    stopReading: () => {
      socket.pause()
    },
    closed
  }
}

const requestLength = (text: string): number | undefined => {
  const headEnd = text.indexOf("\r\n\r\n")
  if (headEnd < 0) return undefined
  const fields = text.slice(0, headEnd)
  if (/^transfer-encoding: *chunked$/im.test(fields)) {
    const last = text.indexOf("\r\n0\r\n\r\n", headEnd)
    return last < 0 ? undefined : last + 7
  }
  const whole = headEnd + 4 + Number(/^content-length: *(\d+)/im.exec(fields)?.[1] ?? 0)
  return text.length < whole ? undefined : whole
}
