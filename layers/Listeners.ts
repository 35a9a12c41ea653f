import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Duration, Effect, Layer } from "effect"
import { HttpServer } from "effect/http"
import { body, type ErrorCode, GatewayError } from "../src/gateway/GatewayError.ts"
import type { Address } from "./Environment.ts"
import { type Arrivals, inTurns } from "./http/Arrivals.ts"
import { GatheringMessage, mostTinyChunks, tinyChunk, tinyChunks } from "./http/GatheringMessage.ts"
import { type Most, OpenConnections } from "./http/OpenConnections.ts"
import { noted } from "./http/OwnListeners.ts"
import * as Start from "./Start.ts"

/**
 * Node's own clocks on a connection. Headers are due soon; the whole request within `requestTimeout`, so that no unread
 * body lingers for ever; a connection on which nothing moves for as long as a route may take is nobody's; and idle
 * connections outlive the usual load balancer's minute.
 */
const clocks = (requestTimeout: number) => ({
  requestTimeout,
  headersTimeout: Math.min(15_000, requestTimeout),
  keepAliveTimeout: 75_000,
  connectionsCheckingInterval: Math.min(5_000, requestTimeout / 4)
})

/**
 * So long the rest of a request that is answered already is read and discarded: a client that writes all of it before
 * it reads is to have its answer.
 */
const lingersSeconds = 30

/**
 * For listeners that people and monitors ask. Also where one is reached by a stranger, the process keeps descriptors and
 * memory for its other listeners.
 */
export const few: Most = { inAll: 1_024, perAddress: 512 }

/** The longest `timeout_ms` that a route can have. */
const longestMs = 660_000

/** The JSON of a refusal to what is not HTTP, as the listener's other refusals look. */
export type Form = (refusal: {
  readonly code: ErrorCode
  readonly message: string
  readonly requestId: string
}) => string

const ofGateway: Form = ({ code, message, requestId }) => body(new GatewayError({ code, message }), "a", requestId)

/** The last request of a connection, and its answer. */
interface Running {
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
const attended = (server: Server, arrivals: Arrivals, form: Form): Server => {
  const running = new WeakMap<Duplex, Running>()

  const attend = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    running.set(incoming.socket, { incoming, outgoing })
    outgoing.on("close", answered)
  }

  // one for all of them, so that a request costs none
  function answered(this: ServerResponse): void {
    if (!server.listening) server.closeIdleConnections()
    const { complete, socket } = this.req
    if (socket.destroyed) return
    if (!complete) linger(this.req)
    else if (this.statusCode >= 400 && running.get(socket)?.outgoing === this) arrivals.again(socket)
  }

  const linger = (incoming: IncomingMessage) => {
    const { socket } = incoming
    let secondsLeft = lingersSeconds
    const ticking = setInterval(() => {
      secondsLeft--
      if (incoming.complete || socket.destroyed) clearInterval(ticking)
      else if (secondsLeft <= 0 || !server.listening) socket.destroy()
    }, 1_000)
  }

  const refuse = (cause: NodeJS.ErrnoException, socket: Duplex) => {
    if (!socket.writable || cause.code === "ECONNRESET" || !answerable(running.get(socket))) {
      socket.destroy()
      return
    }
    const [status, code, message] = unparsable[cause.code ?? ""] ?? notHttp
    socket.end(lastAnswer(form, status, code, message), () => socket.destroy())
  }

  function refuseTinyChunks(this: Socket): void {
    if (running.get(this)?.outgoing.writableEnded === true) this.destroy()
    else refuse(Object.assign(new Error(tinyChunks), { code: tinyChunks }), this)
  }
  server.on("connection", (socket) => socket.on(tinyChunks, refuseTinyChunks))
  return server.on("request", attend).on("checkContinue", attend).on("clientError", refuse)
}

/** An answer of the listener's own, after which the connection ends. */
const lastAnswer = (form: Form, status: string, code: ErrorCode, message: string, more: string = ""): string => {
  const requestId = crypto.randomUUID()
  const answer = form({ code, message, requestId })
  return `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\nx-request-id: ${requestId}\r\n${more}content-length: ${Buffer.byteLength(answer)}\r\nconnection: close\r\n\r\n${answer}`
}

/** Nothing is being answered, or only the broken request itself, and its answer has not begun. */
const answerable = (last: Running | undefined): boolean =>
  last === undefined ||
  last.outgoing.writableFinished ||
  (!last.incoming.complete && last.outgoing.socket !== null && !last.outgoing.headersSent)

type Unparsable = readonly [status: string, code: ErrorCode, message: string]

const notHttp: Unparsable = ["400 Bad Request", "malformed_request", "The request is not valid HTTP/1.1."]
const unparsable: Readonly<Record<string, Unparsable>> = {
  HPE_HEADER_OVERFLOW: [
    "431 Request Header Fields Too Large",
    "malformed_request",
    "The request's headers are larger than 16 KiB."
  ],
  ERR_HTTP_REQUEST_TIMEOUT: ["408 Request Timeout", "request_body_timeout", "The request did not arrive in time."],
  [tinyChunks]: [
    "400 Bad Request",
    "invalid_request_body",
    `The request body came in more than ${mostTinyChunks} chunks of less than ${tinyChunk} bytes on average. Send larger chunks, or the body whole with its content-length.`
  ]
}

const noPlace = "The gateway has as many connections open as it may, or as this address may. Try again shortly."

const nodeServer = (form: Form, requestTimeout: number, most: Most): Server => {
  const server = createServer({ ...clocks(requestTimeout), IncomingMessage: GatheringMessage }).setTimeout(longestMs)
  const refusal = () => lastAnswer(form, "503 Service Unavailable", "gateway_overloaded", noPlace, "retry-after: 1\r\n")
  return attended(noted(server), inTurns(server, new OpenConnections(most), refusal), form)
}

export interface Options {
  /** Default: the gateway's. */
  readonly form?: Form
  /** For a request to be there, with its body. Default: as long as a route of the gateway may take. */
  readonly requestWithin?: Duration.Input
  /** Connections that are open at once. Default: `few`. */
  readonly most?: Most
}

/**
 * A server at `address`. When it closes it takes no new connection, and running answers have `drainWithin` to end; then
 * whoever has not read theirs is cut off.
 */
export const server = (address: Address, drainWithin: Duration.Input, options: Options = {}) =>
  Layer.suspend(() => {
    const { form = ofGateway, most = few, requestWithin = longestMs } = options
    const server = nodeServer(form, Duration.toMillis(Duration.fromInputUnsafe(requestWithin)), most)
    const listening = NodeHttpServer.make(() => server, {
      host: address.host,
      port: address.port,
      gracefulShutdownTimeout: drainWithin
    }).pipe(Effect.mapError(({ cause }) => new Start.ListenerRefused({ address, cause })))
    // added later, so run before the wait for the last connection
    const cut = Effect.addFinalizer(() => Effect.sync(() => server.closeAllConnections()))
    return Layer.mergeAll(
      Layer.effect(HttpServer.HttpServer, Effect.tap(listening, cut)),
      NodeHttpServer.layerHttpServices
    )
  })

/** A Node server with the gateway's refusals, for requests that take as long as a route may. */
export const gatewayServer = (most: Most): Server => nodeServer(ofGateway, longestMs, most)
