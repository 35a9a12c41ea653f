import type { Server } from "node:http"
import { Server as NetServer } from "node:net"
import { type Duration, Effect } from "effect"

/** A client that has just connected, or that has an idle connection, may be sending a request. It gets this time. */
const idleGrace = "5 seconds"

/** Servers whose idle connections may still be used. */
const inGrace = new WeakSet<Server>()

/** Returns whether idle connections only delay the end of the server. */
export const closesIdleConnections = (server: Server): boolean => !server.listening && !inGrace.has(server)

/** Accepts no new connections, closes idle ones, and ends when all others have closed. */
export const close = (server: Server): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    server.close(() => resume(Effect.void))
  })

/**
 * Closes a server whose clients reach another process at the same address, so no request may fail. Requests on open
 * connections are still served for 5 seconds, and each of these connections closes after its response.
 */
export const closeInGrace = Effect.fnUntraced(function* (server: Server) {
  const closed = Promise.withResolvers<void>()
  inGrace.add(server)
  // The method of `http.Server` would close idle connections.
  Reflect.apply(NetServer.prototype.close, server, [() => closed.resolve()])
  const isClosed = Effect.promise(() => closed.promise)
  yield* Effect.timeoutOption(isClosed, idleGrace)
  inGrace.delete(server)
  server.closeIdleConnections()
  yield* isClosed
})

/** Closes the server. After `drainTimeout`, connections that are still open are closed, too. */
export const drain = (server: Server, closing: Effect.Effect<void>, drainTimeout: Duration.Input) =>
  Effect.andThen(
    Effect.timeoutOption(closing, drainTimeout),
    Effect.sync(() => {
      inGrace.delete(server)
      server.closeAllConnections()
    })
  )
