import { createServer } from "node:http"
import { setImmediate } from "node:timers/promises"
import { Effect, type Scope } from "effect"
import { split } from "../../gateway/Streams.ts"
import { portOf } from "../../upstream/SimulatorServer.ts"
import type { Json } from "./VendorAnswers.ts"

export interface Reply {
  readonly events: ReadonlyArray<string>
  readonly plain?: Json
  /** The numbers of bytes that are written at once, used over and over. */
  readonly sizes: ReadonlyArray<number>
  /** The stream ends after this, and its events arrive before. */
  readonly ends?: Promise<void>
  /** True if the connection breaks instead of ending. */
  readonly breaks?: boolean
}

export interface StreamingVendor {
  readonly origin: string
  /** Sets the answer to all requests that follow. */
  readonly answer: (reply: Reply | ((body: string) => Reply)) => void
  /** The bodies that arrived, oldest first. */
  readonly bodies: Array<string>
}

/** A vendor that answers plainly or by a stream, as the request asks. */
export const serve: Effect.Effect<StreamingVendor, never, Scope.Scope> = Effect.map(
  Effect.acquireRelease(
    Effect.promise(() => start()),
    ({ server }) =>
      Effect.promise(
        () =>
          new Promise<void>((closed) => {
            server.close(() => closed())
            server.closeAllConnections()
          })
      )
  ),
  ({ server: _, ...vendor }) => vendor
)

const start = async () => {
  const bodies: Array<string> = []
  let replyTo: (body: string) => Reply = () => ({ events: [], sizes: [1] })
  const server = createServer(async (incoming, response) => {
    const chunks = await Array.fromAsync(incoming)
    const body = Buffer.concat(chunks).toString()
    bodies.push(body)
    const { breaks, ends, events, plain, sizes } = replyTo(body)
    if (!/"stream" ?: ?true/.test(body)) {
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(plain))
      return
    }
    response.writeHead(200, { "content-type": "text/event-stream" })
    for (const piece of split(Buffer.from(events.join("")), sizes)) {
      response.write(piece)
      // Pieces that are written in the same turn of the event loop arrive together.
      await setImmediate()
    }
    await ends
    if (breaks) response.destroy()
    else response.end()
  })
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
  return {
    server,
    origin: `http://127.0.0.1:${portOf(server.address())}`,
    bodies,
    answer: (reply: Reply | ((body: string) => Reply)) => {
      replyTo = typeof reply === "function" ? reply : () => reply
    }
  }
}
