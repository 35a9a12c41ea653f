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
 * Node's own clocks on a connection. Headers are due soon; the whole request within `requestTimeout`, so that no unread
 * body lingers for ever; a connection on which nothing moves for as long as a route may take is nobody's; and idle
 * connections outlive the usual load balancer's minute.
 */
const nodeTimeouts = (requestTimeout: number) => ({
  requestTimeout,
  headersTimeout: Math.min(15_000, requestTimeout),
  keepAliveTimeout: 75_000,
  connectionsCheckingInterval: Math.min(5_000, requestTimeout / 4)
})

/**
 * So long the rest of a request that is answered already is read and discarded: a client that writes all of it before
 * it reads is to have its answer.
 */
const maxLingerSeconds = 30

/**
 * For listeners that people and monitors ask. Also where one is reached by a stranger, the process keeps descriptors and
 * memory for its other listeners.
 */
export const defaultConnectionLimits: ConnectionLimits = { total: 1_024, perAddress: 512 }

/** The longest `timeout_ms` that a route can have. */
const maxRouteTimeoutMs = 660_000

/** The JSON of a refusal to what is not HTTP, as the listener's other refusals look. */
export type RefusalFormat = (refusal: {
  readonly code: ErrorCode
  readonly message: string
  readonly requestId: string
}) => string

const gatewayFormat: RefusalFormat = ({ code, message, requestId }) =>
  errorBody(new GatewayError({ code, message }), "a", requestId)

/** The last request of a connection, and its answer. */
interface LastExchange {
  readonly incoming: IncomingMessage
  readonly outgoing: ServerResponse
}

/**
 * What Node leaves to the program on a connection.
 *
 * - What is not HTTP never reaches a program. Where it cannot be taken for another request's answer, the parser's
 *   refusal is given the listener's form; then the connection ends, and whatever was still coming in on it.
 * - A closing server hangs up on connections that are idle, and waits for the others. Those that become idle meanwhile
 *   are hung up on here, or a client's kept-alive connection would hold the exit for `keepAliveTimeout`.
 * - A request that goes on behind its answer holds its connection for a while, and a closing server for a second.
 * - A connection whose request was refused takes its next turn among the new ones: otherwise refused requests, one after
 *   the other on open connections, would take as much of the event loop as they like.
 */
const attachHandlers = (server: Server, acceptQueue: AcceptQueue, format: RefusalFormat): Server => {
  const lastExchanges = new WeakMap<Duplex, LastExchange>()

  const trackExchange = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    lastExchanges.set(incoming.socket, { incoming, outgoing })
    outgoing.on("close", onResponseClose)
  }

  // one for all of them, so that a request costs none
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

/** An answer of the listener's own, after which the connection ends. */
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

/** Nothing is being answered, or only the broken request itself, and its answer has not begun. */
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
    `The request body came in more than ${maxTinyChunks} chunks of less than ${tinyChunkBytes} bytes on average. Send larger chunks, or the body whole with its content-length.`
  ]
}

const tooManyConnections =
  "The gateway has as many connections open as it may, or as this address may. Try again shortly."

const nodeServer = (format: RefusalFormat, requestTimeout: number, limits: ConnectionLimits): Server => {
  const server = createServer({ ...nodeTimeouts(requestTimeout), IncomingMessage: CoalescingMessage }).setTimeout(
    maxRouteTimeoutMs
  )
  const refusal = () =>
    closingResponse(format, "503 Service Unavailable", "gateway_overloaded", tooManyConnections, "retry-after: 1\r\n")
  return attachHandlers(trackServer(server), acceptThrough(server, new OpenConnections(limits), refusal), format)
}

export interface Options {
  /** Default: the gateway's. */
  readonly format?: RefusalFormat
  /** For a request to be there, with its body. Default: as long as a route of the gateway may take. */
  readonly requestTimeout?: Duration.Input
  /** Connections that are open at once. Default: `few`. */
  readonly connectionLimits?: ConnectionLimits
}

/**
 * A server at `address`. When it closes it takes no new connection, and running answers have `drainWithin` to end; then
 * whoever has not read theirs is cut off.
 */
export const serverLayer = (address: Address, drainWithin: Duration.Input, options: Options = {}) =>
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
      gracefulShutdownTimeout: drainWithin
    }).pipe(Effect.mapError(({ cause }) => new Startup.ListenerRefused({ address, cause })))
    // added later, so run before the wait for the last connection
    const closeConnections = Effect.addFinalizer(() => Effect.sync(() => server.closeAllConnections()))
    return Layer.mergeAll(
      Layer.effect(HttpServer.HttpServer, Effect.tap(listening, closeConnections)),
      NodeHttpServer.layerHttpServices
    )
  })

/** A Node server with the gateway's refusals, for requests that take as long as a route may. */
export const gatewayServer = (limits: ConnectionLimits): Server => nodeServer(gatewayFormat, maxRouteTimeoutMs, limits)
