import { connect } from "node:net"
import { Effect, type Scope } from "effect"

/** A client that sends bytes as they are given, for requests that no HTTP client would send. */
export interface RawConnection {
  readonly write: (bytes: string | Uint8Array) => void
  /** Everything that came, as latin1. */
  readonly received: () => string
  /** Waits until what came matches. Fails when the connection ends first. */
  readonly until: (pattern: RegExp) => Effect.Effect<string>
  /** The other side has hung up; what came until then. */
  readonly closed: Effect.Effect<string>
  /** Why it broke, rather than being closed in order. */
  readonly broken: () => string | undefined
  /** Half-closes: nothing more is sent. */
  readonly end: () => void
  readonly pause: () => void
  readonly resume: () => void
  readonly destroy: () => void
}

/** Connects to `origin`; refused is a defect. */
export const open = (origin: string): Effect.Effect<RawConnection, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const { hostname, port } = new URL(origin)
      const socket = connect({ host: hostname, port: Number(port), noDelay: true, allowHalfOpen: true })
      let text = ""
      let ended = false
      let broken: string | undefined
      const waiting = new Set<() => void>()
      const wake = () => {
        for (const look of waiting) look()
      }
      socket.on("data", (bytes: Buffer) => {
        text += bytes.toString("latin1")
        wake()
      })
      for (const event of ["end", "close", "error"] as const) {
        socket.on(event, () => {
          ended = true
          wake()
        })
      }
      socket.on("error", (error: NodeJS.ErrnoException) => {
        broken = error.code
      })
      await new Promise<void>((resolve, reject) => {
        socket.once("connect", resolve)
        socket.once("error", reject)
      })
      const when = (holds: () => boolean) =>
        new Promise<string>((resolve, reject) => {
          const look = () => {
            if (holds()) resolve(text)
            else if (ended) reject(new Error(`the connection ended with: ${JSON.stringify(text.slice(-2_000))}`))
            else return
            waiting.delete(look)
          }
          waiting.add(look)
          look()
        })
      const connection: RawConnection = {
        write: (bytes) => void socket.write(bytes),
        received: () => text,
        until: (pattern) => Effect.promise(() => when(() => pattern.test(text))),
        closed: Effect.promise(() => when(() => ended)),
        broken: () => broken,
        end: () => void socket.end(),
        pause: () => void socket.pause(),
        resume: () => void socket.resume(),
        destroy: () => void socket.destroy()
      }
      return connection
    }),
    ({ destroy }) => Effect.sync(destroy)
  )

/** A request as bytes: `content-length` is the body's own unless `headers` frame it otherwise. */
export const request = (
  line: string,
  headers: Readonly<Record<string, string>> = {},
  body: string | undefined = undefined
): string => {
  const framed = body === undefined || /content-length|transfer-encoding/i.test(Object.keys(headers).join())
  const fields = { host: "gateway", ...headers, ...(framed ? {} : { "content-length": Buffer.byteLength(body) }) }
  return [
    `${line} HTTP/1.1`,
    ...Object.entries(fields).map(([name, value]) => `${name}: ${value}`),
    "",
    body ?? ""
  ].join("\r\n")
}

export interface RawAnswer {
  readonly status: number
  readonly head: string
  readonly body: Buffer
  /** It has the length, or the last chunk, that it promised. */
  readonly whole: boolean
}

/** The first answer in what came. */
export const answerOf = (received: string): RawAnswer => {
  const headEnd = received.indexOf("\r\n\r\n")
  const head = received.slice(0, headEnd)
  const rest = received.slice(headEnd + 4)
  const length = /^content-length: *(\d+)/im.exec(head)?.[1]
  const { text, whole } = /^transfer-encoding: *chunked/im.test(head)
    ? dechunked(rest)
    : { text: rest.slice(0, Number(length ?? rest.length)), whole: rest.length >= Number(length ?? 0) }
  return { status: Number(head.slice(9, 12)), head, body: Buffer.from(text, "latin1"), whole }
}

const dechunked = (chunks: string): { readonly text: string; readonly whole: boolean } => {
  let rest = chunks
  let text = ""
  for (;;) {
    const lineEnd = rest.indexOf("\r\n")
    const size = Number.parseInt(rest.slice(0, lineEnd), 16)
    if (lineEnd < 0 || Number.isNaN(size)) return { text, whole: false }
    if (size === 0) return { text, whole: true }
    text += rest.slice(lineEnd + 2, lineEnd + 2 + size)
    rest = rest.slice(lineEnd + 2 + size + 2)
  }
}
