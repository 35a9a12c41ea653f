import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Duration, Effect, Layer } from "effect"
import { HttpServer } from "effect/http"
import { type ErrorCode, errorBody, GatewayError } from "../src/gateway/GatewayError.ts"
import type { Address } from "./environment/Variables.ts"
import { type AcceptQueue, acceptThrough } from "./http/AcceptQueue.ts"
import { CoalescingMessage, maxTinyChunks, tinyChunkBytes, tinyChunksEvent } from "./http/CoalescingMessage.ts"
import { type ConnectionLimits, OpenConnections } from "./http/OpenConnections.ts"
import { trackServer } from "./http/OwnListeners.ts"
import { closesIdleConnections } from "./http/ServerClose.ts"
import * as Startup from "./Startup.ts"

/** Load balancers usually close idle connections after 60 seconds, and should close them first. */
export const keepAliveSeconds = 75

/** Headers must arrive within 15 seconds, the whole request within `requestTimeout`. */
const nodeTimeouts = (requestTimeout: number) => ({
  requestTimeout,
  headersTimeout: Math.min(15_000, requestTimeout),
  keepAliveTimeout: keepAliveSeconds * 1_000,
  connectionsCheckingInterval: Math.min(5_000, requestTimeout / 4)
})

/** After an early response, the rest of the request's body is read for this time, because many clients send it all. */
const maxLingerSeconds = 30

/** For listeners without proxied traffic. The limits leave file descriptors and memory for the proxy listener. */
export const defaultConnectionLimits: ConnectionLimits = { total: 1_024, perAddress: 512 }

const maxRouteTimeoutMs = 660_000

/** Formats the body of an error response, because each listener has its own error format. */
export type RefusalFormat = (refusal: {
  readonly code: ErrorCode
  readonly message: string
  readonly requestId: string
}) => string

const gatewayFormat: RefusalFormat = ({ code, message, requestId }) =>
  errorBody(new GatewayError({ code, message }), "a", requestId)

interface LastExchange {
  readonly incoming: IncomingMessage
  readonly outgoing: ServerResponse
}

/**
 * Handles the cases that Node leaves to the program:
 *
 * - Input that is not HTTP gets an error response, unless the client could take it for the response to another request.
 * - On shutdown, connections that become idle are closed. Otherwise they would delay the exit by `keepAliveTimeout`.
 * - If a response ends before the request's body, its connection stays open for up to 30 seconds.
 * - After a refused request, the connection returns to the accept queue, so that repeated refusals cannot occupy the
 *   event loop.
 */
const attachHandlers = (server: Server, acceptQueue: AcceptQueue, format: RefusalFormat): Server => {
  const lastExchanges = new WeakMap<Duplex, LastExchange>()

  const trackExchange = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    lastExchanges.set(incoming.socket, { incoming, outgoing })
    outgoing.on("close", onResponseClose)
  }

  // One shared function avoids a closure per request.
  function onResponseClose(this: ServerResponse): void {
    if (closesIdleConnections(server)) server.closeIdleConnections()
    const { complete, socket } = this.req
    if (socket.destroyed) return
    if (!complete) lingerForBody(this.req)
    else if (this.statusCode >= 400 && lastExchanges.get(socket)?.outgoing === this) acceptQueue.requeue(socket)
  }

  const lingerForBody = (incoming: IncomingMessage) => {
    const { socket } = incoming
    let secondsLeft = maxLingerSeconds
    const timer = setInterval(() => {
      secondsLeft--
      if (incoming.complete || socket.destroyed) clearInterval(timer)
      else if (secondsLeft <= 0 || closesIdleConnections(server)) socket.destroy()
    }, 1_000)
  }

  const refuseUnparsable = (cause: NodeJS.ErrnoException, socket: Duplex) => {
    if (!socket.writable || cause.code === "ECONNRESET" || !canRefuse(lastExchanges.get(socket))) {
      socket.destroy()
      return
    }
    const [status, code, message] = parseRefusals[cause.code ?? ""] ?? notHttp
    socket.end(closingResponse(format, status, code, message), () => socket.destroy())
  }

  function refuseTinyChunks(this: Socket): void {
    if (lastExchanges.get(this)?.outgoing.writableEnded === true) this.destroy()
    else refuseUnparsable(Object.assign(new Error(tinyChunksEvent), { code: tinyChunksEvent }), this)
  }
  server.on("connection", (socket) => socket.on(tinyChunksEvent, refuseTinyChunks))
  return server.on("request", trackExchange).on("checkContinue", trackExchange).on("clientError", refuseUnparsable)
}

const closingResponse = (
  format: RefusalFormat,
  status: string,
  code: ErrorCode,
  message: string,
  extraHeaders: string = ""
): string => {
  const requestId = crypto.randomUUID()
  const json = format({ code, message, requestId })
  return `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\nx-request-id: ${requestId}\r\n${extraHeaders}content-length: ${Buffer.byteLength(json)}\r\nconnection: close\r\n\r\n${json}`
}

/** Returns true if no other response is unfinished. Otherwise the client could confuse the two responses. */
const canRefuse = (last: LastExchange | undefined): boolean =>
  last === undefined ||
  last.outgoing.writableFinished ||
  (!last.incoming.complete && last.outgoing.socket !== null && !last.outgoing.headersSent)

type ParseRefusal = readonly [status: string, code: ErrorCode, message: string]

const notHttp: ParseRefusal = [
  "400 Bad Request",
  "malformed_request",
  "The request is not valid HTTP/1.1. This port accepts neither TLS nor HTTP/2."
]
const parseRefusals: Readonly<Record<string, ParseRefusal>> = {
  HPE_HEADER_OVERFLOW: [
    "431 Request Header Fields Too Large",
    "malformed_request",
    "The request's headers are larger than 16 KiB. Send smaller headers."
  ],
  ERR_HTTP_REQUEST_TIMEOUT: [
    "408 Request Timeout",
    "request_body_timeout",
    "The request did not arrive completely in time. Send it again."
  ],
  [tinyChunksEvent]: [
    "400 Bad Request",
    "invalid_request_body",
    `The request body came in more than ${maxTinyChunks} chunks of less than ${tinyChunkBytes} bytes on average. Send larger chunks, or the whole body with a content-length.`
  ]
}

const tooManyConnections =
  "The limit of open connections is reached, for the gateway or for this client address. Try again shortly."

const nodeServer = (format: RefusalFormat, requestTimeout: number, limits: ConnectionLimits): Server => {
  const server = createServer({ ...nodeTimeouts(requestTimeout), IncomingMessage: CoalescingMessage }).setTimeout(
    maxRouteTimeoutMs
  )
  const refusal = () =>
    closingResponse(format, "503 Service Unavailable", "gateway_overloaded", tooManyConnections, "retry-after: 1\r\n")
  return attachHandlers(trackServer(server), acceptThrough(server, new OpenConnections(limits), refusal), format)
}

export interface Options {
  /** Default: the error format of the gateway. */
  readonly format?: RefusalFormat
  /** The timeout for receiving a whole request. Default: the longest timeout of a gateway route. */
  readonly requestTimeout?: Duration.Input
  readonly connectionLimits?: ConnectionLimits
}

/**
 * An HTTP server. On shutdown it accepts no new connections. Running responses get `drainTimeout` to finish, then all
 * connections are closed.
 */
export const serverLayer = (address: Address, drainTimeout: Duration.Input, options: Options = {}) =>
  Layer.suspend(() => {
    const {
      format = gatewayFormat,
      connectionLimits = defaultConnectionLimits,
      requestTimeout = maxRouteTimeoutMs
    } = options
    const server = nodeServer(format, Duration.toMillis(Duration.fromInputUnsafe(requestTimeout)), connectionLimits)
    const listening = NodeHttpServer.make(() => server, {
      host: address.host,
      port: address.port,
      gracefulShutdownTimeout: drainTimeout
    }).pipe(Effect.mapError(({ cause }) => new Startup.ListenerRefused({ address, cause })))
    // Finalizers run in reverse order. This one runs before the server's own, which waits for the last connection.
    const closeConnections = Effect.addFinalizer(() => Effect.sync(() => server.closeAllConnections()))
    return Layer.mergeAll(
      Layer.effect(HttpServer.HttpServer, Effect.tap(listening, closeConnections)),
      NodeHttpServer.layerHttpServices
    )
  })

export const gatewayServer = (limits: ConnectionLimits): Server => nodeServer(gatewayFormat, maxRouteTimeoutMs, limits)
