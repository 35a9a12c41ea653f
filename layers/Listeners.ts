import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Duration, Effect, Layer } from "effect"
import { HttpServer } from "effect/http"
import { type ErrorCode, errorBody, GatewayError } from "../src/gateway/GatewayError.ts"
import type { Address } from "./Environment.ts"
import { type AcceptQueue, acceptThrough } from "./http/AcceptQueue.ts"
import { CoalescingMessage, maxTinyChunks, tinyChunkBytes, tinyChunksEvent } from "./http/CoalescingMessage.ts"
import { type ConnectionLimits, OpenConnections } from "./http/OpenConnections.ts"
import { trackServer } from "./http/OwnListeners.ts"
import * as Startup from "./Startup.ts"

/**
 * Node's timeouts of a connection. Headers are due within 15 seconds and the whole request within `requestTimeout`.
 * Idle connections stay open for 75 seconds, longer than the minute that load balancers usually keep them.
 */
const nodeTimeouts = (requestTimeout: number) => ({
  requestTimeout,
  headersTimeout: Math.min(15_000, requestTimeout),
  keepAliveTimeout: 75_000,
  connectionsCheckingInterval: Math.min(5_000, requestTimeout / 4)
})

/** The rest of an answered request is read for this time: clients may write the whole body before they read. */
const maxLingerSeconds = 30

/** For listeners of operators and monitors. Leaves file descriptors and memory for the other listeners. */
export const defaultConnectionLimits: ConnectionLimits = { total: 1_024, perAddress: 512 }

const maxRouteTimeoutMs = 660_000

/** Formats a rejection as the listener's own error responses look. */
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
 * Handles connection events that Node leaves to the program.
 *
 * - Bytes that are not HTTP never reach a program. The connection gets an error response, unless a client could take it
 *   for the response to another request, and is then closed.
 * - A closing server closes idle connections and waits for the others. Connections that become idle meanwhile are
 *   closed here; otherwise a kept-alive connection would delay the exit by `keepAliveTimeout`.
 * - A request whose body continues after its response keeps its connection for up to 30 seconds, or for one second
 *   while the server closes.
 * - A connection whose request was refused goes back into the accept queue. Otherwise a series of refused requests on
 *   open connections could take all of the event loop.
 */
const attachHandlers = (server: Server, acceptQueue: AcceptQueue, format: RefusalFormat): Server => {
  const lastExchanges = new WeakMap<Duplex, LastExchange>()

  const trackExchange = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    lastExchanges.set(incoming.socket, { incoming, outgoing })
    outgoing.on("close", onResponseClose)
  }

  // One shared function, so that a request allocates none.
  function onResponseClose(this: ServerResponse): void {
    if (!server.listening) server.closeIdleConnections()
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
      else if (secondsLeft <= 0 || !server.listening) socket.destroy()
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

/** True when no response is in progress, or when only the broken request itself awaits its response. */
const canRefuse = (last: LastExchange | undefined): boolean =>
  last === undefined ||
  last.outgoing.writableFinished ||
  (!last.incoming.complete && last.outgoing.socket !== null && !last.outgoing.headersSent)

type ParseRefusal = readonly [status: string, code: ErrorCode, message: string]

const notHttp: ParseRefusal = ["400 Bad Request", "malformed_request", "The request is not valid HTTP/1.1."]
const parseRefusals: Readonly<Record<string, ParseRefusal>> = {
  HPE_HEADER_OVERFLOW: [
    "431 Request Header Fields Too Large",
    "malformed_request",
    "The request's headers are larger than 16 KiB."
  ],
  ERR_HTTP_REQUEST_TIMEOUT: ["408 Request Timeout", "request_body_timeout", "The request did not arrive in time."],
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
  /** Default: the gateway's format. */
  readonly format?: RefusalFormat
  /** The time within which a request must arrive with its body. Default: the longest timeout of a gateway route. */
  readonly requestTimeout?: Duration.Input
  /** The limits of open connections. Default: `defaultConnectionLimits`. */
  readonly connectionLimits?: ConnectionLimits
}

/**
 * An HTTP server at `address`. On shutdown the server accepts no connection and lets running responses finish for
 * `drainTimeout`; it then closes the remaining connections.
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
    // Finalizers run in reverse order: this one runs before the server waits for its last connection.
    const closeConnections = Effect.addFinalizer(() => Effect.sync(() => server.closeAllConnections()))
    return Layer.mergeAll(
      Layer.effect(HttpServer.HttpServer, Effect.tap(listening, closeConnections)),
      NodeHttpServer.layerHttpServices
    )
  })

/** A Node server with the gateway's error responses and the longest timeout of a route. */
export const gatewayServer = (limits: ConnectionLimits): Server => nodeServer(gatewayFormat, maxRouteTimeoutMs, limits)
