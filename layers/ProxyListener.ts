import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { Duplex } from "node:stream"
import { type Duration, Effect, Layer } from "effect"
import type { OnDisconnect } from "../src/gateway/forward/RequestLifecycle.ts"
import { ProxyApp } from "../src/gateway/ProxyApp.ts"
import type { Address } from "./Environment.ts"
import { BodyDrainer } from "./http/BodyDrainer.ts"
import * as CrossOrigin from "./http/CrossOrigin.ts"
import type { ConnectionLimits } from "./http/OpenConnections.ts"
import * as ProxyProbes from "./http/ProxyProbes.ts"
import * as WireNode from "./http/WireNode.ts"
import { gatewayServer } from "./Listeners.ts"
import * as Startup from "./Startup.ts"

/**
 * The proxy listener at `address`. It drains as `Listeners.serverLayer` does. The listener handles Node's `request`
 * event directly: the request object, scope and parsed headers of Effect's server would be unused, and take 20 µs of
 * each request. When a client disconnects, its request ends. `corsOrigins` are the origins of web pages whose scripts
 * may call the listener.
 */
export const layer = (
  address: Address,
  drainTimeout: Duration.Input,
  connectionLimits: ConnectionLimits,
  corsOrigins: CrossOrigin.AllowedOrigins = []
) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const proxyApp = yield* ProxyApp
      const answerProbe = yield* ProxyProbes.make
      const crossOrigin = corsOrigins.length === 0 ? undefined : CrossOrigin.make(corsOrigins)
      const server = gatewayServer(connectionLimits)
      /** Kept by connection, because Node reports no disconnect for a pipelined response that has not begun. */
      const disconnectCallbacks = new WeakMap<Duplex, Set<OnDisconnect>>()
      let openRequests = 0
      let onIdle = () => {}
      server.on("connection", (socket) => {
        const callbacks = new Set<OnDisconnect>()
        disconnectCallbacks.set(socket, callbacks)
        socket.on("close", () => {
          for (const onDisconnect of callbacks) onDisconnect()
        })
      })
      const bodyDrainer = new BodyDrainer()
      // One shared function, so that a request allocates none.
      function onFinish(this: ServerResponse): void {
        if (!this.req.complete && !this.req.destroyed) bodyDrainer.add(this.req)
      }
      const onEarlyResponse = (outgoing: ServerResponse) => void outgoing.prependListener("finish", onFinish)
      const serve = (incoming: IncomingMessage, outgoing: ServerResponse) => {
        if (answerProbe(incoming, outgoing) || crossOrigin?.(incoming, outgoing) === true) return
        const callbacks = disconnectCallbacks.get(incoming.socket)
        // A refused request may end before `handleUnsafe` has returned the callback.
        let onDisconnect: OnDisconnect | undefined
        let hasEnded = false
        openRequests++
        onDisconnect = proxyApp.handleUnsafe(WireNode.make(incoming, outgoing, { onEarlyResponse }), () => {
          hasEnded = true
          if (onDisconnect !== undefined) callbacks?.delete(onDisconnect)
          openRequests--
          if (openRequests === 0) onIdle()
        })
        if (!hasEnded) callbacks?.add(onDisconnect)
      }
      server.on("request", serve).on("checkContinue", serve)
      /** Requests that were cut off still settle their reservations. */
      const requestsEnded = Effect.callback<void>((resume) => {
        onIdle = () => resume(Effect.void)
        if (openRequests === 0) onIdle()
      })
      const { port } = yield* Effect.acquireRelease(listen(server, address), () =>
        Effect.timeoutOption(closeServer(server), drainTimeout).pipe(
          Effect.andThen(Effect.sync(() => server.closeAllConnections())),
          Effect.andThen(Effect.timeoutOption(requestsEnded, settlementTimeout))
        )
      )
      yield* Startup.announceListener(
        "proxy",
        `http://${address.host.includes(":") ? `[${address.host}]` : address.host}:${port}`
      )
    })
  )

/** Longer than a cold admission waits for a silent database and its settlement waits for Redis. */
const settlementTimeout = "20 seconds"

const listen = (server: Server, address: Address) =>
  Effect.callback<{ readonly port: number }, Startup.ListenerRefused>((resume) => {
    const { host, port } = address
    const onError = (cause: Error) => resume(Effect.fail(new Startup.ListenerRefused({ address, cause })))
    server.once("error", onError)
    server.listen({ host, port }, () => {
      server.off("error", onError)
      const bound = server.address()
      resume(Effect.succeed({ port: bound !== null && typeof bound === "object" ? bound.port : port }))
    })
  })

/** Accepts no new connection, and waits until the open ones have closed. */
const closeServer = (server: Server) =>
  Effect.callback<void>((resume) => {
    server.close(() => resume(Effect.void))
  })
