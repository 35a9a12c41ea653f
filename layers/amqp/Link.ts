import { Duplex } from "node:stream"
import { type Channel, type ConfirmChannel, type Connection, connect } from "amqplib/callback_api"
import { Effect, Redacted } from "effect"
import { BrokerError, type Server } from "../../src/services/Broker.ts"
import * as AmqpFailure from "./AmqpFailure.ts"

export interface Endpoint {
  readonly url: Redacted.Redacted
  /** How RabbitMQ's own tools call this connection. */
  readonly name: string
  readonly heartbeatSeconds: number
  /** Milliseconds, for the socket and AMQP's handshake together. */
  readonly connectWithin: number
  /** Milliseconds, for every question to the broker. */
  readonly answerWithin: number
  /** Milliseconds, for the broker's word that it has closed. */
  readonly closeWithin: number
}

type Operation = BrokerError["operation"]

/** One AMQP connection, from its handshake to its end. What comes after it is another link. */
export class Link {
  readonly server: Server
  /** Why the broker takes no publishes, while it takes none. */
  blockedReason: string | undefined
  /** Why it ended, once it has. */
  failure: Error | undefined
  readonly #connection: Connection
  readonly #socket: AbortController
  readonly #endpoint: Endpoint
  readonly #onEnd = new Set<() => void>()
  readonly #onBlocked = new Set<() => void>()
  readonly #closing = new WeakSet<Channel>()
  #silent = false

  constructor(connection: Connection, socket: AbortController, endpoint: Endpoint) {
    this.#connection = connection
    this.#socket = socket
    this.#endpoint = endpoint
    const { product, version } = connection.connection.serverProperties
    this.server = { product, version }
    corkWrites(connection.connection)
    connection.on("error", (error) => {
      this.failure = error
    })
    connection.on("handler-error", () => {})
    connection.on("blocked", (reason) => this.#block(reason))
    connection.on("unblocked", () => this.#block(undefined))
    connection.once("close", (error) => {
      this.failure ??= error ?? new Error("The connection was closed")
      // amqplib only ends its side: a peer that is silent would keep the socket for ever.
      socket.abort()
      for (const listener of this.#onEnd) listener()
    })
  }

  onEnd(listener: () => void): void {
    if (this.failure === undefined) this.#onEnd.add(listener)
    else listener()
  }

  onBlocked(listener: () => void): void {
    this.#onBlocked.add(listener)
  }

  ask<A>(
    operation: Operation,
    question: (answer: (error: Error, reply: A) => void) => void
  ): Effect.Effect<A, BrokerError> {
    return Effect.callback<A, BrokerError>((resume) => {
      try {
        // Not within amqplib's callback: it is not done with the channel, and what runs next may close it.
        question((error, reply) =>
          queueMicrotask(() => resume(error ? Effect.fail(this.#failure(operation, error)) : Effect.succeed(reply)))
        )
      } catch (error) {
        resume(Effect.fail(AmqpFailure.toEncodingError(operation, error)))
      }
    }).pipe(
      Effect.timeoutOrElse({
        duration: this.#endpoint.answerWithin,
        orElse: () =>
          Effect.fail(
            new BrokerError({
              operation,
              reason: "timeout",
              message: `RabbitMQ did not answer within ${this.#endpoint.answerWithin} ms`
            })
          )
      })
    )
  }

  /** `ended` is told once why the channel is no more, unless it is closed from here. */
  channel(operation: Operation, ended: (why: Error) => void): Effect.Effect<Channel, BrokerError> {
    return this.ask<Channel>(operation, (answer) => {
      this.#watch(this.#connection.createChannel(answer), ended)
    })
  }

  confirmChannel(operation: Operation, ended: (why: Error) => void): Effect.Effect<ConfirmChannel, BrokerError> {
    return this.ask<ConfirmChannel>(operation, (answer) => {
      this.#watch(this.#connection.createConfirmChannel(answer), ended)
    })
  }

  /**
   * Settles in time, whatever the peer does; and at once after a close that the peer did not answer, as there may be many
   * to come. The broker has what was sent on the channel before it says that it closed.
   */
  closeChannel(channel: Channel): Effect.Effect<void> {
    return Effect.suspend(() => {
      const patience = this.#silent ? 0 : this.#endpoint.closeWithin
      return Effect.callback<void>((resume) => {
        this.#closing.add(channel)
        // Not by the callback of `close`: it is not called when the connection ends first.
        channel.once("close", () => {
          this.#silent = false
          resume(Effect.void)
        })
        try {
          channel.close()
        } catch {
          resume(Effect.void)
        }
      }).pipe(
        Effect.timeoutOrElse({
          duration: patience,
          orElse: () =>
            Effect.sync(() => {
              this.#silent = true
            })
        })
      )
    })
  }

  /** A channel for a few questions. */
  withChannel<A>(
    operation: Operation,
    use: (channel: Channel) => Effect.Effect<A, BrokerError>
  ): Effect.Effect<A, BrokerError> {
    return Effect.acquireUseRelease(this.channel(operation, noop), use, (channel) => this.closeChannel(channel))
  }

  close(): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      this.onEnd(() => resume(Effect.void))
      try {
        this.#connection.close()
      } catch {
        resume(Effect.void)
      }
    }).pipe(Effect.timeoutOption(this.#endpoint.closeWithin), Effect.andThen(Effect.sync(() => this.destroy())))
  }

  destroy(): void {
    this.#socket.abort()
  }

  /** To amqplib, a question that the connection did not outlive has ended with its channel; the connection knows why. */
  #failure(operation: Operation, error: Error): BrokerError {
    return AmqpFailure.replyCodeOf(error) === undefined && this.failure !== undefined
      ? new BrokerError({ operation, reason: "lost", message: AmqpFailure.messageOf(this.failure) })
      : AmqpFailure.toBrokerError(operation, error)
  }

  #block(reason: string | undefined): void {
    this.blockedReason = reason
    for (const listener of this.#onBlocked) listener()
  }

  #watch(channel: Channel, ended: (why: Error) => void): void {
    let why: Error | undefined
    channel.on("error", (error) => {
      why = error
    })
    // While there is a listener, amqplib does not take the connection down for what a callback throws.
    channel.on("handler-error", () => {})
    channel.once("close", () => {
      if (this.#closing.has(channel)) return
      // Not within amqplib's callback: while a connection ends, it would take what is opened on it for alive.
      queueMicrotask(() => ended(why ?? this.failure ?? new Error("The connection was lost")))
    })
  }
}

const noop = () => {}

/**
 * Frames of one turn leave in one write: amqplib hands them to the socket one by one, and each would be a system call.
 * The multiplexer is not in amqplib's types.
 */
const corkWrites = (connection: object): void => {
  const stream: unknown = Reflect.get(connection, "stream")
  const multiplexer: unknown = Reflect.get(connection, "muxer")
  if (!(stream instanceof Duplex) || typeof multiplexer !== "object" || multiplexer === null) return
  const write: unknown = Reflect.get(multiplexer, "_readIncoming")
  if (typeof write !== "function") return
  Reflect.set(multiplexer, "_readIncoming", () => {
    stream.cork()
    try {
      Reflect.apply(write, multiplexer, [])
    } finally {
      stream.uncork()
    }
  })
}

export const open = (endpoint: Endpoint): Effect.Effect<Link, BrokerError> =>
  Effect.suspend(() => {
    const url = Redacted.value(endpoint.url)
    if (!URL.canParse(url)) return Effect.fail(unusable("The URL of RabbitMQ is not a URL"))
    const { hostname, password, pathname, port, protocol, username } = new URL(url)
    if (protocol !== "amqp:" && protocol !== "amqps:")
      return Effect.fail(unusable("The URL of RabbitMQ begins with neither amqp: nor amqps:"))
    return Effect.callback<Link, BrokerError>((resume) => {
      const socket = new AbortController()
      const options = {
        signal: socket.signal,
        noDelay: true,
        clientProperties: { connection_name: endpoint.name }
      }
      try {
        connect(
          {
            protocol: protocol.slice(0, -1),
            hostname: hostname.replace(/^\[|\]$/g, ""),
            ...(port === "" ? {} : { port: Number(port) }),
            ...(username === "" && password === ""
              ? {}
              : { username: decodeURIComponent(username), password: decodeURIComponent(password) }),
            vhost: pathname.slice(1),
            heartbeat: endpoint.heartbeatSeconds,
            frameMax,
            channelMax: 0
          },
          options,
          (error, connection) => {
            if (error) resume(Effect.fail(refusal(error)))
            else resume(Effect.succeed(new Link(connection, socket, endpoint)))
          }
        )
      } catch {
        // Its text may quote the password: a percent sign that starts no escape.
        resume(Effect.fail(unusable("The URL of RabbitMQ is not valid")))
      }
      return Effect.sync(() => socket.abort())
    }).pipe(
      Effect.timeoutOrElse({
        duration: endpoint.connectWithin,
        orElse: () => Effect.fail(unreachable(`RabbitMQ did not open within ${endpoint.connectWithin} ms`))
      })
    )
  })

const frameMax = 131_072

/** amqplib keeps to itself what the broker says at the last step, where it can say no to the virtual host alone. */
const refusal = (error: Error): BrokerError =>
  error.message.startsWith("Expected ConnectionOpenOk; got <ConnectionClose")
    ? new BrokerError({ operation: "connect", reason: "refused", message: "RabbitMQ refused the virtual host" })
    : AmqpFailure.toBrokerError("connect", error)

const unreachable = (message: string) => new BrokerError({ operation: "connect", reason: "unreachable", message })

const unusable = (message: string) => new BrokerError({ operation: "connect", reason: "refused", message })
