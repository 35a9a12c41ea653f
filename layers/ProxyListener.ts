import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { Duplex } from "node:stream"
import { type Duration, Effect, Layer, Option, Ref, SubscriptionRef } from "effect"
import type { OnDisconnect } from "../src/gateway/forward/RequestLifecycle.ts"
import { ProxyApp } from "../src/gateway/ProxyApp.ts"
import { type BoundAddress, GatewayAddress } from "../src/process/GatewayAddress.ts"
import { Lifecycle } from "../src/process/Lifecycle.ts"
import { shutdownSeconds } from "../src/process/ShutdownTimeouts.ts"
import type { Address } from "./environment/Variables.ts"
import { BodyDrainer } from "./http/BodyDrainer.ts"
import * as CrossOrigin from "./http/CrossOrigin.ts"
import type { ConnectionLimits } from "./http/OpenConnections.ts"
import * as ProxyProbes from "./http/ProxyProbes.ts"
import * as ServerClose from "./http/ServerClose.ts"
import * as WireNode from "./http/WireNode.ts"
import { gatewayServer } from "./Listeners.ts"
import * as Startup from "./Startup.ts"

/**
 * The listener for proxied requests. It handles Node's `request` event itself, because Effect's server would add 20 µs
 * to each request. A request ends when its client disconnects. Web pages on `corsOrigins` may call the listener.
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
      const isRetiring = yield* retiring
      const crossOrigin = corsOrigins.length === 0 ? undefined : CrossOrigin.make(corsOrigins)
      const server = gatewayServer(connectionLimits)
      /** Callbacks by connection, because Node reports no disconnect for a pipelined response that has not begun. */
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
      // One shared function avoids a closure per request.
      function onFinish(this: ServerResponse): void {
        if (!this.req.complete && !this.req.destroyed) bodyDrainer.add(this.req)
      }
      const onEarlyResponse = (outgoing: ServerResponse) => void outgoing.prependListener("finish", onFinish)
      const serve = (incoming: IncomingMessage, outgoing: ServerResponse) => {
        // The client must not send its next request on a connection of a listener that closes.
        if (!server.listening) outgoing.shouldKeepAlive = false
        if (answerProbe(incoming, outgoing) || crossOrigin?.(incoming, outgoing) === true) return
        const callbacks = disconnectCallbacks.get(incoming.socket)
        // A request may end before `handleUnsafe` returns, for example if it is refused.
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
      /** Waits for requests whose connection was closed. They still return their reserved limits and budgets. */
      const requestsEnded = Effect.callback<void>((resume) => {
        onIdle = () => resume(Effect.void)
        if (openRequests === 0) onIdle()
      })
      const { ip, port } = yield* Effect.acquireRelease(listen(server, address), () =>
        Effect.flatMap(isRetiring, (retires) =>
          ServerClose.drain(server, (retires ? ServerClose.closeInGrace : ServerClose.close)(server), drainTimeout)
        ).pipe(Effect.andThen(Effect.timeoutOption(requestsEnded, `${shutdownSeconds.settlement} seconds`)))
      )
      yield* noteAddress({ host: address.host, ip, port })
      yield* Startup.announceListener(
        "proxy",
        `http://${address.host.includes(":") ? `[${address.host}]` : address.host}:${port}`
      )
    })
  )

/** Tells the portal of the same process where applications reach the gateway. */
const noteAddress = Effect.fnUntraced(function* (bound: BoundAddress) {
  const address = yield* Effect.serviceOption(GatewayAddress)
  if (Option.isSome(address)) yield* Ref.set(address.value, Option.some(bound))
})

/** Returns whether another process takes the place of this one. */
const retiring: Effect.Effect<Effect.Effect<boolean>> = Effect.map(
  Effect.serviceOption(Lifecycle),
  Option.match({
    onNone: () => Effect.succeed(false),
    onSome: (lifecycle) => Effect.map(SubscriptionRef.get(lifecycle), (phase) => phase === "retiring")
  })
)

const listen = (server: Server, address: Address) =>
  Effect.callback<{ readonly ip: string; readonly port: number }, Startup.ListenerRefused>((resume) => {
    const { host, port } = address
    const onError = (cause: Error) => resume(Effect.fail(new Startup.ListenerRefused({ address, cause })))
    server.once("error", onError)
    server.listen({ host, port }, () => {
      server.off("error", onError)
      const bound = server.address()
      const isSocket = bound !== null && typeof bound === "object"
      resume(Effect.succeed(isSocket ? { ip: bound.address, port: bound.port } : { ip: host, port }))
    })
  })
