import * as net from "node:net"
import * as tls from "node:tls"
import { type buildConnector, Client, type Dispatcher, errors } from "undici"
import * as FairShare from "../../src/services/FairShare.ts"
import {
  type AddressPolicy,
  AddressRefused,
  allowPrivateAddresses,
  isTrusted,
  privateAddressesOf,
  refusedLiteralHost,
  socketLookup
} from "./AddressPolicy.ts"
import type { PrivateAddresses } from "./AddressRule.ts"
import { FairQueue } from "./FairQueue.ts"
import { type NameLookups, processLookups as ofProcess } from "./NameLookups.ts"
import { leadsToOwnListener } from "./OwnListeners.ts"

export interface ConnectionWaiter {
  /** Each caller has a limited share of connections and queue. `undefined`, the program itself, has no limit. */
  readonly caller: string | undefined
  readonly onConnection: (connection: Connection) => void
}

export interface PoolLimits {
  readonly connectionsPerOrigin: number
  readonly waitingPerOrigin: number
  /** The limit for all origins together. */
  readonly idleConnections: number
}

/** Node's servers close idle connections after 5 s. Closing earlier avoids a request on a closing connection. */
const keepAliveMs = 4_000
/** The limit for the time that a server requests with `keep-alive: timeout`. */
const keepAliveHintMs = 60_000
const tlsSessionsKept = 100

interface Origin {
  readonly url: string
  readonly privateAddresses: PrivateAddresses
  /** If true, requests may reach a listener of this process. */
  readonly trusted: boolean
  readonly idle: Array<Connection>
  readonly waiters: FairQueue<ConnectionWaiter>
  readonly busyByCaller: Map<string, number>
  busyForCallers: number
  openCount: number
}

/**
 * One socket with its undici client. It serves one request at a time, so cancelling the request closes the socket.
 * undici's own `Pool` would keep cancelled requests in its queue and open connections for them.
 */
export class Connection {
  readonly origin: Origin
  readonly #client: Client
  #socket: net.Socket | undefined
  isIdle = false
  caller: string | undefined

  constructor(origin: Origin, sessions: TlsSessions, names: NameLookups, onIdleLost: (connection: Connection) => void) {
    this.origin = origin
    this.#client = new Client(origin.url, {
      pipelining: 1,
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: keepAliveMs,
      keepAliveMaxTimeout: keepAliveHintMs,
      connect: (options, callback) => {
        const refused = refusedLiteralHost(options.hostname, origin.privateAddresses)
        if (refused === undefined) this.#socket = connect(options, names, origin, sessions, callback)
        else queueMicrotask(() => callback(refused, null))
      }
    })
    this.#client.on("disconnect", () => {
      if (this.isIdle) onIdleLost(this)
    })
  }

  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    this.#client.dispatch(options, handler)
  }

  get isAlive(): boolean {
    return this.#socket !== undefined && !this.#socket.destroyed
  }

  /** True if an error closed the socket, instead of an orderly close. */
  get isBroken(): boolean {
    return this.#socket !== undefined && this.#socket.errored !== null
  }

  destroy(reason: Error): void {
    this.#client.destroy(reason, noop)
    // undici's client does not know the socket before it is connected.
    this.#socket?.destroy()
  }
}

export type AcquireResult = "granted" | "waiting" | "full"

/** Connections by origin. An origin is removed when it has no connections and no waiting requests. */
export class ConnectionPool {
  readonly #limits: PoolLimits
  readonly #addressPolicy: AddressPolicy
  readonly #names: NameLookups
  readonly #origins = new Map<string, Origin>()
  readonly #busy = new Set<Connection>()
  readonly #sessions = new TlsSessions()
  #idle = 0
  #destroyed = false
  #onDrained: (() => void) | undefined

  constructor(
    limits: PoolLimits,
    addressPolicy: AddressPolicy = allowPrivateAddresses,
    names: NameLookups = ofProcess
  ) {
    this.#limits = limits
    this.#addressPolicy = addressPolicy
    this.#names = names
  }

  get origins(): number {
    return this.#origins.size
  }

  acquire(url: string, waiter: ConnectionWaiter): AcquireResult {
    const origin = this.#origins.get(url) ?? this.#newOrigin(url)
    if (!this.#mayTakeAnother(origin, waiter.caller)) return origin.waiters.add(waiter)
    const idle = origin.idle.pop()
    if (idle !== undefined) {
      this.#idle -= 1
      idle.isIdle = false
      this.#assign(idle, waiter)
      return "granted"
    }
    if (origin.openCount < this.#limits.connectionsPerOrigin) {
      this.#assign(this.#open(origin), waiter)
      return "granted"
    }
    return origin.waiters.add(waiter)
  }

  /** Returns whether the caller has used up its own share of the connections. */
  isCallerAtLimit(url: string, caller: string | undefined): boolean {
    const origin = this.#origins.get(url)
    return origin !== undefined && !this.#mayTakeAnother(origin, caller)
  }

  cancelWait(url: string, waiter: ConnectionWaiter): void {
    this.#origins.get(url)?.waiters.remove(waiter)
  }

  /** If the connection cannot be reused, undici has closed its socket already. */
  release(connection: Connection): void {
    this.#releaseShare(connection)
    const next = connection.isAlive ? this.#nextWaiting(connection.origin) : undefined
    if (next !== undefined) {
      this.#assign(connection, next)
    } else if (!connection.isAlive || this.#isClosing || this.#idle >= this.#limits.idleConnections) {
      this.discard(connection, new Error("not kept alive"))
    } else {
      this.#busy.delete(connection)
      connection.isIdle = true
      connection.origin.idle.push(connection)
      this.#idle += 1
    }
  }

  discard(connection: Connection, reason: Error): void {
    this.#releaseShare(connection)
    this.#busy.delete(connection)
    this.#close(connection, reason)
    const next = this.#nextWaiting(connection.origin)
    if (next !== undefined) this.acquire(connection.origin.url, next)
    this.#checkDrained()
  }

  drain(onDrained: () => void): void {
    this.#onDrained = onDrained
    for (const origin of [...this.#origins.values()]) {
      for (const connection of origin.idle.splice(0)) {
        this.#idle -= 1
        this.#close(connection, new Error("closing"))
      }
    }
    this.#checkDrained()
  }

  destroy(): void {
    this.#destroyed = true
    for (const connection of this.#busy) connection.destroy(new errors.ClientDestroyedError())
  }

  get #isClosing(): boolean {
    return this.#onDrained !== undefined
  }

  #newOrigin(url: string): Origin {
    return {
      url,
      privateAddresses: privateAddressesOf(this.#addressPolicy, url),
      trusted: isTrusted(this.#addressPolicy, url),
      idle: [],
      waiters: new FairQueue(this.#limits.waitingPerOrigin),
      busyByCaller: new Map(),
      busyForCallers: 0,
      openCount: 0
    }
  }

  #open(origin: Origin): Connection {
    const connection = new Connection(origin, this.#sessions, this.#names, (lost) => {
      origin.idle.splice(origin.idle.indexOf(lost), 1)
      this.#idle -= 1
      this.#close(lost, new Error("hung up while idle"))
    })
    origin.openCount += 1
    this.#origins.set(origin.url, origin)
    return connection
  }

  #assign(connection: Connection, waiter: ConnectionWaiter): void {
    const { caller } = waiter
    connection.caller = caller
    if (caller !== undefined) {
      connection.origin.busyByCaller.set(caller, (connection.origin.busyByCaller.get(caller) ?? 0) + 1)
      connection.origin.busyForCallers++
    }
    this.#busy.add(connection)
    if (this.#destroyed) connection.destroy(new errors.ClientDestroyedError())
    waiter.onConnection(connection)
  }

  #releaseShare(connection: Connection): void {
    const { caller, origin } = connection
    connection.caller = undefined
    if (caller === undefined) return
    origin.busyForCallers--
    const remaining = (origin.busyByCaller.get(caller) ?? 0) - 1
    if (remaining > 0) origin.busyByCaller.set(caller, remaining)
    else origin.busyByCaller.delete(caller)
  }

  #mayTakeAnother(origin: Origin, caller: string | undefined): boolean {
    if (caller === undefined) return true
    const busy = origin.busyByCaller.get(caller) ?? 0
    return busy < FairShare.allowance(this.#limits.connectionsPerOrigin, origin.busyForCallers - busy)
  }

  #nextWaiting(origin: Origin): ConnectionWaiter | undefined {
    return origin.waiters.next((caller) => this.#mayTakeAnother(origin, caller))
  }

  #close(connection: Connection, reason: Error): void {
    connection.isIdle = false
    connection.origin.openCount -= 1
    connection.destroy(reason)
    if (connection.origin.openCount === 0 && connection.origin.waiters.size === 0) {
      this.#origins.delete(connection.origin.url)
    }
  }

  #checkDrained(): void {
    if (this.#busy.size === 0) this.#onDrained?.()
  }
}

/** Keeps TLS sessions, because resuming a session saves a round trip for a new connection. */
class TlsSessions {
  readonly #sessions = new Map<string, Buffer>()

  get(key: string): Buffer | undefined {
    return this.#sessions.get(key)
  }

  set(key: string, session: Buffer): void {
    this.#sessions.delete(key)
    this.#sessions.set(key, session)
    for (const oldest of this.#sessions.keys()) {
      if (this.#sessions.size <= tlsSessionsKept) break
      this.#sessions.delete(oldest)
    }
  }
}

/**
 * Opens a socket. The caller limits the time and destroys the socket. undici's `buildConnector` has two disadvantages.
 * It returns the socket only after connecting, so a cancelled request could not close it. It holds TLS sessions weakly,
 * so the next garbage collection drops them.
 */
const connect = (
  options: buildConnector.Options,
  names: NameLookups,
  { privateAddresses, trusted }: Pick<Origin, "privateAddresses" | "trusted">,
  sessions: TlsSessions,
  callback: buildConnector.Callback
): net.Socket => {
  const secure = options.protocol === "https:"
  const { abandon, lookup } = socketLookup(names, privateAddresses)
  const socket = secure
    ? connectTls(options, lookup, sessions)
    : net.connect({ host: options.hostname, port: Number(options.port || 80), lookup })
  let hasCalledBack = false
  socket.once("close", abandon)
  socket.setNoDelay(true)
  socket.setKeepAlive(true, 60_000)
  socket.once(secure ? "secureConnect" : "connect", () => {
    hasCalledBack = true
    if (trusted || !leadsToOwnListener(socket)) return callback(null, socket)
    socket.destroy()
    callback(new AddressRefused(`${socket.remoteAddress}:${socket.remotePort}`, "a listener of this process"), null)
  })
  socket.on("error", (error) => {
    if (hasCalledBack) return
    hasCalledBack = true
    callback(error, null)
  })
  return socket
}

const connectTls = (
  options: buildConnector.Options,
  lookup: net.LookupFunction,
  sessions: TlsSessions
): tls.TLSSocket => {
  const servername = options.servername ?? (net.isIP(options.hostname) === 0 ? options.hostname : "")
  const key = `${servername || options.hostname}:${options.port}`
  const session = sessions.get(key)
  const socket = tls.connect({
    host: options.hostname,
    port: Number(options.port || 443),
    lookup,
    servername,
    ALPNProtocols: ["http/1.1"],
    ...(session === undefined ? {} : { session })
  })
  socket.on("session", (fresh) => sessions.set(key, fresh))
  return socket
}

const noop = () => {}
