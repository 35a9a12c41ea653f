import { connect, createServer, type Server, type Socket } from "node:net"
import { Effect } from "effect"
import * as LocalPort from "./LocalPort.ts"

/** Stands between a client and a server, and misbehaves on demand. */
export interface TcpProxy {
  readonly port: number
  /** Connections stay open and nothing comes through any more, no end either: a peer that hangs. */
  readonly freeze: Effect.Effect<void>
  readonly thaw: Effect.Effect<void>
  /** Every connection is reset and none is accepted: a peer that is gone. */
  readonly cut: Effect.Effect<void>
  readonly restore: Effect.Effect<void>
}

/** `sent`: told of what clients send. */
export const make = Effect.fnUntraced(function* (
  target: { readonly host: string; readonly port: number },
  sent: (bytes: Buffer) => void = () => {}
) {
  const sockets = new Set<Socket>()
  const held: Array<() => void> = []
  let frozen = false

  const accept = (client: Socket) => {
    const upstream = connect(target)
    client.on("data", sent)
    for (const [from, to] of [
      [client, upstream],
      [upstream, client]
    ] as const) {
      sockets.add(from)
      from.on("data", (bytes) => to.write(bytes))
      from.on("error", () => {})
      from.on("close", () => {
        sockets.delete(from)
        if (frozen) held.push(() => to.destroy())
        else to.destroy()
      })
      if (frozen) from.pause()
    }
  }

  const listen = (server: Server, port: number) =>
    Effect.callback<number>((resume) => {
      server.listen(port, "127.0.0.1", () => {
        const address = server.address()
        resume(typeof address === "object" && address !== null ? Effect.succeed(address.port) : Effect.die("no port"))
      })
    })
  const hangUp = (server: Server) =>
    Effect.callback<void>((resume) => {
      server.close(() => resume(Effect.void))
      for (const socket of sockets) socket.resetAndDestroy()
    })

  let server = createServer(accept)
  // that nobody is given while it is cut
  const port = yield* listen(server, yield* LocalPort.free)
  yield* Effect.addFinalizer(() => hangUp(server))
  return {
    port,
    freeze: Effect.sync(() => {
      frozen = true
      for (const socket of sockets) socket.pause()
    }),
    thaw: Effect.sync(() => {
      frozen = false
      for (const end of held.splice(0)) end()
      for (const socket of sockets) socket.resume()
    }),
    cut: Effect.suspend(() => hangUp(server)),
    restore: Effect.suspend(() => {
      server = createServer(accept)
      return Effect.asVoid(listen(server, port))
    })
  } satisfies TcpProxy
})
