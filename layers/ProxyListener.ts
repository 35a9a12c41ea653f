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
 * The proxy listener at `address`; drains as `Listeners.server` does. It is a plain `request` listener, because what Effect's
 * server makes for a request (a request of its own, a scope, parsed headers) is read by nobody here and took 20 µs of
 * each. A client that hangs up ends its request. `most`: of the connections that are open at once. `origins`: of the web
 * pages whose scripts may ask it.
 */
export const layer = (
  address: Address,
  drainWithin: Duration.Input,
  connectionLimits: ConnectionLimits,
  origins: CrossOrigin.AllowedOrigins = []
) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const proxyApp = yield* ProxyApp
      const answerProbe = yield* ProxyProbes.make
      const crossOrigin = origins.length === 0 ? undefined : CrossOrigin.make(origins)
      const server = gatewayServer(connectionLimits)
      /** By connection: an answer that waits behind another one hears nothing of its end. */
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
      // one for all of them, so that a request costs none
      function onFinish(this: ServerResponse): void {
        if (!this.req.complete && !this.req.destroyed) bodyDrainer.add(this.req)
      }
      const onEarlyAnswer = (outgoing: ServerResponse) => void outgoing.prependListener("finish", onFinish)
      const serve = (incoming: IncomingMessage, outgoing: ServerResponse) => {
        if (answerProbe(incoming, outgoing) || crossOrigin?.(incoming, outgoing) === true) return
        const callbacks = disconnectCallbacks.get(incoming.socket)
        // a refusal may be over before `handle` has answered what to call
        let onDisconnect: OnDisconnect | undefined
        let hasEnded = false
        openRequests++
        onDisconnect = proxyApp.handleUnsafe(WireNode.make(incoming, outgoing, { onEarlyAnswer }), () => {
          hasEnded = true
          if (onDisconnect !== undefined) callbacks?.delete(onDisconnect)
          openRequests--
          if (openRequests === 0) onIdle()
        })
        if (!hasEnded) callbacks?.add(onDisconnect)
      }
      server.on("request", serve).on("checkContinue", serve)
      /** What was cut off is still settled. */
      const requestsEnded = Effect.callback<void>((resume) => {
        onIdle = () => resume(Effect.void)
        if (openRequests === 0) onIdle()
      })
      const { port } = yield* Effect.acquireRelease(listen(server, address), () =>
        Effect.timeoutOption(closeServer(server), drainWithin).pipe(
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

/** Longer than a cold admission waits for a silent database, and its settlement for Redis. */
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

/** Takes no new connection, and waits for those that are left. */
const closeServer = (server: Server) =>
  Effect.callback<void>((resume) => {
    server.close(() => resume(Effect.void))
  })
