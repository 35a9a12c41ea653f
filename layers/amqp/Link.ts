import { type Channel, type ConfirmChannel, type Connection, connect } from "amqplib/callback_api"
import { Effect, Redacted } from "effect"
import { BrokerError, type Server } from "../../src/services/Broker.ts"
import * as AmqpFailure from "./AmqpFailure.ts"
import type { Internals, Outbox } from "./Internals.ts"

export interface Endpoint {
  readonly url: Redacted.Redacted
  readonly name: string
  readonly heartbeatSeconds: number
  /** The timeout for the socket and the AMQP handshake together, in milliseconds. */
  readonly connectWithin: number
  /** The timeout for every request to the broker, in milliseconds. */
  readonly answerWithin: number
  /** The timeout for the broker to confirm a close, in milliseconds. */
  readonly closeWithin: number
  readonly internals: Internals
}

type Operation = BrokerError["operation"]

/** One AMQP connection. Each reconnect creates a new `Link`. */
export class Link {
  readonly server: Server
  blockedReason: string | undefined
  failure: Error | undefined
  readonly #connection: Connection
  readonly #socket: AbortController
  readonly #endpoint: Endpoint
  readonly #onEnd = new Set<() => void>()
  readonly #onBlocked = new Set<() => void>()
  readonly #closing = new WeakSet<Channel>()
  #isPeerSilent = false

  constructor(connection: Connection, socket: AbortController, endpoint: Endpoint) {
    this.#connection = connection
    this.#socket = socket
    this.#endpoint = endpoint
    const { product, version } = connection.connection.serverProperties
    this.server = { product, version }
    endpoint.internals.corkWrites(connection.connection)
    connection.on("error", (error) => {
      this.failure = error
    })
    connection.on("handler-error", () => {})
    connection.on("blocked", (reason) => this.#block(reason))
    connection.on("unblocked", () => this.#block(undefined))
    connection.once("close", (error) => {
      this.failure ??= error ?? new Error("The connection was closed")
      // amqplib ends only its own side of the socket. An unresponsive broker would keep the socket open.
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
        // Deferred, because the continuation may close the channel while amqplib still uses it.
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

  /** Opens a channel. Calls `ended` once with the reason if the channel ends, unless `closeChannel` closed it. */
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

  openOutbox(channel: ConfirmChannel): Outbox {
    return this.#endpoint.internals.openOutbox(channel)
  }

  /**
   * Closes a channel, and waits at most `closeWithin` for the broker. After a timeout, later calls do not wait. A
   * confirmed close means that the broker has received everything that was sent on the channel.
   */
  closeChannel(channel: Channel): Effect.Effect<void> {
    return Effect.suspend(() => {
      const patience = this.#isPeerSilent ? 0 : this.#endpoint.closeWithin
      return Effect.callback<void>((resume) => {
        this.#closing.add(channel)
        // If the connection ends first, amqplib emits this event but does not call the callback of `close`.
        channel.once("close", () => {
          this.#isPeerSilent = false
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
              this.#isPeerSilent = true
            })
        })
      )
    })
  }

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
    // Without this listener, amqplib closes the connection when a callback throws.
    channel.on("handler-error", () => {})
    channel.once("close", () => {
      if (this.#closing.has(channel)) return
      // Deferred, because `ended` may open a channel. A channel on a connection that is ending would never work.
      queueMicrotask(() => ended(why ?? this.failure ?? new Error("The connection was lost")))
    })
  }
}

const noop = () => {}

export const open = (endpoint: Endpoint): Effect.Effect<Link, BrokerError> =>
  Effect.suspend(() => {
    const url = Redacted.value(endpoint.url)
    if (!URL.canParse(url)) return Effect.fail(unusable("The address of RabbitMQ is not a valid URL"))
    const { hostname, password, pathname, port, protocol, username } = new URL(url)
    if (protocol !== "amqp:" && protocol !== "amqps:")
      return Effect.fail(unusable("The URL of RabbitMQ must begin with amqp: or amqps:"))
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
        // The error quotes the invalid percent-encoding, which may be a part of the password.
        resume(Effect.fail(unusable("The URL of RabbitMQ is not valid")))
      }
      return Effect.sync(() => socket.abort())
    }).pipe(
      Effect.timeoutOrElse({
        duration: endpoint.connectWithin,
        orElse: () =>
          Effect.fail(unreachable(`RabbitMQ did not accept the connection within ${endpoint.connectWithin} ms`))
      })
    )
  })

const frameMax = 131_072

const refusal = (error: Error): BrokerError =>
  error.message.startsWith("Expected ConnectionOpenOk; got <ConnectionClose")
    ? new BrokerError({ operation: "connect", reason: "refused", message: "RabbitMQ refused the virtual host" })
    : AmqpFailure.toBrokerError("connect", error)

const unreachable = (message: string) => new BrokerError({ operation: "connect", reason: "unreachable", message })

const unusable = (message: string) => new BrokerError({ operation: "connect", reason: "refused", message })
