import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { Duplex } from "node:stream"
import { type Duration, Effect, Layer } from "effect"
import type { HungUp } from "../src/gateway/forward/RequestEnd.ts"
import { ProxyApp } from "../src/gateway/ProxyApp.ts"
import type { Address } from "./Environment.ts"
import * as CrossOrigin from "./http/CrossOrigin.ts"
import type { Most } from "./http/OpenConnections.ts"
import * as ProxyProbes from "./http/ProxyProbes.ts"
import { Remainders } from "./http/Remainders.ts"
import * as WireNode from "./http/WireNode.ts"
import { gatewayServer } from "./Listeners.ts"
import * as Start from "./Start.ts"

/**
 * The proxy listener at `address`; drains as `Listeners.server` does. It is a plain `request` listener, because what Effect's
 * server makes for a request (a request of its own, a scope, parsed headers) is read by nobody here and took 20 µs of
 * each. A client that hangs up ends its request. `most`: of the connections that are open at once. `origins`: of the web
 * pages whose scripts may ask it.
 */
export const layer = (address: Address, drainWithin: Duration.Input, most: Most, origins: CrossOrigin.Origins = []) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const proxyApp = yield* ProxyApp
      const probed = yield* ProxyProbes.make
      const crossOrigin = origins.length === 0 ? undefined : CrossOrigin.make(origins)
      const server = gatewayServer(most)
      /** By connection: an answer that waits behind another one hears nothing of its end. */
      const running = new WeakMap<Duplex, Set<HungUp>>()
      let requests = 0
      let whenIdle = () => {}
      server.on("connection", (socket) => {
        const ofSocket = new Set<HungUp>()
        running.set(socket, ofSocket)
        socket.on("close", () => {
          for (const hungUp of ofSocket) hungUp()
        })
      })
      const remainders = new Remainders()
      // one for all of them, so that a request costs none
      function finished(this: ServerResponse): void {
        if (!this.req.complete && !this.req.destroyed) remainders.add(this.req)
      }
      const onEarlyAnswer = (outgoing: ServerResponse) => void outgoing.prependListener("finish", finished)
      const serve = (incoming: IncomingMessage, outgoing: ServerResponse) => {
        if (probed(incoming, outgoing) || crossOrigin?.(incoming, outgoing) === true) return
        const ofSocket = running.get(incoming.socket)
        // a refusal may be over before `handle` has answered what to call
        let hungUp: HungUp | undefined
        let over = false
        requests++
        hungUp = proxyApp.handleUnsafe(WireNode.make(incoming, outgoing, { onEarlyAnswer }), () => {
          over = true
          if (hungUp !== undefined) ofSocket?.delete(hungUp)
          requests--
          if (requests === 0) whenIdle()
        })
        if (!over) ofSocket?.add(hungUp)
      }
      server.on("request", serve).on("checkContinue", serve)
      /** What was cut off is still settled. */
      const idle = Effect.callback<void>((resume) => {
        whenIdle = () => resume(Effect.void)
        if (requests === 0) whenIdle()
      })
      const { port } = yield* Effect.acquireRelease(listening(server, address), () =>
        Effect.timeoutOption(drained(server), drainWithin).pipe(
          Effect.andThen(Effect.sync(() => server.closeAllConnections())),
          Effect.andThen(Effect.timeoutOption(idle, settledWithin))
        )
      )
      yield* Start.announce(
        "proxy",
        `http://${address.host.includes(":") ? `[${address.host}]` : address.host}:${port}`
      )
    })
  )

/** Longer than a cold admission waits for a silent database, and its settlement for Redis. */
const settledWithin = "20 seconds"

const listening = (server: Server, address: Address) =>
  Effect.callback<{ readonly port: number }, Start.ListenerRefused>((resume) => {
    const { host, port } = address
    const refused = (cause: Error) => resume(Effect.fail(new Start.ListenerRefused({ address, cause })))
    server.once("error", refused)
    server.listen({ host, port }, () => {
      server.off("error", refused)
      const bound = server.address()
      resume(Effect.succeed({ port: bound !== null && typeof bound === "object" ? bound.port : port }))
    })
  })

/** Takes no new connection, and waits for those that are left. */
const drained = (server: Server) =>
  Effect.callback<void>((resume) => {
    server.close(() => resume(Effect.void))
  })
