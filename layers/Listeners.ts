import { createServer, IncomingMessage, type Server, ServerResponse } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { type Duration, Effect, Layer } from "effect"
import { HttpServer, HttpServerRequest, HttpServerResponse } from "effect/http"
import { body, GatewayError } from "../src/gateway/GatewayError.ts"
import { ProxyApp } from "../src/gateway/ProxyApp.ts"
import type { Address } from "./Environment.ts"
import * as WireNode from "./WireNode.ts"

/**
 * Node's own clocks on a connection. Headers are due soon; the whole request within the longest `timeout_ms` that a route
 * can have, so that no unread body lingers for ever; a connection on which nothing moves for that long is nobody's; and
 * idle connections outlive the usual load balancer's minute.
 */
const clocks = {
  headersTimeout: 15_000,
  requestTimeout: 660_000,
  keepAliveTimeout: 75_000,
  connectionsCheckingInterval: 5_000
} as const

/** What is not HTTP never reaches a program: the parser's refusal is given the gateway's form here. */
const refuseUnparsable = (server: Server): Server =>
  server.on("clientError", (cause: NodeJS.ErrnoException, socket) => {
    if (!socket.writable || cause.code === "ECONNRESET") {
      socket.destroy()
      return
    }
    const [status, message] = unparsable[cause.code ?? ""] ?? ["400 Bad Request", "The request is not valid HTTP/1.1."]
    const answer = body(new GatewayError({ code: "invalid_request_body", message }), "a", "-")
    socket.end(
      `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(answer)}\r\nconnection: close\r\n\r\n${answer}`
    )
  })

const unparsable: Readonly<Record<string, readonly [status: string, message: string]>> = {
  HPE_HEADER_OVERFLOW: ["431 Request Header Fields Too Large", "The request's headers are larger than 16 KiB."],
  ERR_HTTP_REQUEST_TIMEOUT: ["408 Request Timeout", "The request did not arrive in time."]
}

/** A server at `address`. When it closes it takes no new connection, and running answers have `drainWithin` to end. */
export const server = (address: Address, drainWithin: Duration.Input) =>
  NodeHttpServer.layer(() => refuseUnparsable(createServer(clocks).setTimeout(clocks.requestTimeout)), {
    host: address.host,
    port: address.port,
    gracefulShutdownTimeout: drainWithin
  })

/**
 * The proxy listener. The server would run the program uninterruptibly; a client that hangs up must end it. The program
 * writes the answer itself, and the server leaves an ended answer alone.
 */
export const proxy = Layer.unwrap(
  Effect.map(ProxyApp, (proxyApp) =>
    HttpServer.serve(
      Effect.interruptible(
        Effect.gen(function* () {
          const request = yield* HttpServerRequest.HttpServerRequest
          const incoming = NodeHttpServerRequest.toIncomingMessage(request)
          const outgoing = NodeHttpServerRequest.toServerResponse(request)
          // `createServer` of node:http makes nothing else
          if (!(incoming instanceof IncomingMessage && outgoing instanceof ServerResponse))
            return httpVersionUnsupported
          const status = yield* proxyApp.handle(WireNode.make(incoming, outgoing))
          return HttpServerResponse.empty({ status })
        })
      )
    )
  )
)

const httpVersionUnsupported = HttpServerResponse.empty({ status: 505 })
