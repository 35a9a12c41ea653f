import { Context, type Effect, type Option, Schema, type Scope, type Stream } from "effect"

/**
 * A broker operation failed. `message` holds the broker's own text.
 *
 * - `unreachable`: the client could not connect before the deadline. `closed`: this process closed the connection.
 * - `lost`: the connection or the channel ended before the reply. The operation may or may not have been carried out.
 * - `timeout`: the broker did not reply in time.
 * - `mismatch` (406): the object exists with other arguments, or a delivery tag is unknown.
 * - `not_found` (404), `denied` (403), `locked` (405). `refused`: any other refusal by the broker, or an invalid URL.
 * - `down` (also 404): the queue exists, but its node is down, or the stream has no leader.
 */
export class BrokerError extends Schema.TaggedError<BrokerError>()("BrokerError", {
  operation: Schema.Literals(["connect", "declare", "examine", "inspect", "remove", "consume", "channel"]),
  reason: Schema.Literals([
    "unreachable",
    "lost",
    "timeout",
    "closed",
    "not_found",
    "down",
    "mismatch",
    "denied",
    "locked",
    "refused"
  ]),
  message: Schema.String
}) {}

/**
 * An AMQP field value: the value of a header or of an argument. A timestamp is a `Date`, a byte array a `Uint8Array`.
 * Numbers must be finite. Integers of any width are read as `number`. Names have at most 255 bytes and are never
 * `__proto__`. Tables and lists nest at most 100 levels deep. The headers of a message have at most 64 KiB.
 */
export type Field =
  | string
  | number
  | bigint
  | boolean
  | null
  | Date
  | Uint8Array
  | ReadonlyArray<Field>
  | { readonly [name: string]: Field }

export type Fields = Readonly<Record<string, Field>>

export interface Exchange {
  readonly name: string
  readonly kind: "direct" | "topic" | "fanout" | "headers"
  /** Default: true. */
  readonly durable?: boolean
  readonly arguments?: Fields
}

export interface Queue {
  readonly name: string
  /** Default: true. */
  readonly durable?: boolean
  /** The broker deletes the queue when its last consumer has gone. Default: false. */
  readonly autoDelete?: boolean
  /** Only this connection may use the queue. The broker deletes the queue when the connection ends. Default: false. */
  readonly exclusive?: boolean
  readonly arguments?: Fields
}

export interface Binding {
  readonly exchange: string
  readonly queue: string
  readonly routingKey: string
  readonly arguments?: Fields
}

/** Exchanges are declared first, then queues, then bindings. Each list keeps its order. */
export interface Declarations {
  readonly exchanges: ReadonlyArray<Exchange>
  readonly queues: ReadonlyArray<Queue>
  readonly bindings: ReadonlyArray<Binding>
}

/** The result of comparing a declaration with the broker. `differs` is the error text of the broker. */
export type Examination =
  | { readonly _tag: "Missing" }
  | { readonly _tag: "Same" }
  | { readonly _tag: "Differs"; readonly differs: string }

/** The properties of a message in AMQP 0-9-1. */
export interface Properties {
  readonly contentType?: string
  readonly contentEncoding?: string
  readonly headers?: Fields
  /** Default: true. */
  readonly persistent?: boolean
  /** 0 to 255. */
  readonly priority?: number
  readonly correlationId?: string
  readonly replyTo?: string
  /** The message expires after this number of milliseconds. */
  readonly expiration?: number
  readonly messageId?: string
  /** AMQP stores whole seconds. */
  readonly timestamp?: Date
  readonly type?: string
  readonly userId?: string
  readonly appId?: string
}

/**
 * Publishes of one purpose share a channel and a limit of unconfirmed publishes. A channel error, such as a missing
 * exchange, fails only publishes of the same purpose. On RabbitMQ, statuses have one channel per exchange.
 *
 * A status may be stored twice. Before RabbitMQ 4.0, a stream may lose messages that it has confirmed. The driver sends
 * such messages again, although the stream may have stored them. Duplicates have the same event id.
 */
export type Purpose = "tasks" | "retries" | "statuses"

/** A message to publish. Every publish is `mandatory` and confirmed by the broker. */
export interface Publication {
  readonly purpose: Purpose
  /** An empty name is the default exchange, which routes by queue name. */
  readonly exchange: string
  readonly routingKey: string
  readonly content: Uint8Array
  readonly properties: Properties
}

/**
 * The outcome of a publish.
 *
 * - `Confirmed`: at least one queue has stored the message, on disk if the queue is durable.
 * - `Returned`: the broker accepted the message, but no queue has a matching binding.
 * - `Refused`: the message was not stored. `nacked`: the broker rejected it, for example because a queue is full.
 *   `no_exchange`, `denied`: the channel failed with this error. `invalid`: AMQP cannot carry the part of the message
 *   that `detail` names. `blocked`: the broker lacks memory or disk. `unreachable`, `closed`: the message was never
 *   sent.
 * - `Unknown`: the message was sent but not confirmed, because the connection was `lost` or the `deadline` passed. The
 *   message may be stored.
 */
export type Outcome =
  | { readonly _tag: "Confirmed" }
  | { readonly _tag: "Returned"; readonly detail: string }
  | {
      readonly _tag: "Refused"
      readonly reason: "nacked" | "no_exchange" | "denied" | "invalid" | "blocked" | "unreachable" | "closed"
      readonly detail: string
    }
  | { readonly _tag: "Unknown"; readonly reason: "lost" | "deadline"; readonly detail: string }

/**
 * `reject` sends the message to the dead-letter exchange of the queue. Without such an exchange, the broker drops the
 * message. On a stream, `requeue` and `reject` act as `ack`, because RabbitMQ would otherwise close the connection.
 */
export type Settlement = "ack" | "requeue" | "reject"

/**
 * The result of settling a delivery.
 *
 * - `requested`: the settlement will be sent. AMQP does not confirm it, so a crash may still redeliver the message.
 * - `stale`: the channel of the delivery has ended, and the broker redelivers the message.
 * - `settled`: the delivery was already settled. This call is a no-op.
 */
export type Settled = "requested" | "stale" | "settled"

/** A delivered message. Only the channel that delivered it can settle it. */
export interface Delivery {
  readonly queue: string
  readonly exchange: string
  readonly routingKey: string
  readonly content: Uint8Array
  readonly properties: Properties
  readonly redelivered: boolean
  /** The delivery's number on its channel, from 1. */
  readonly deliveryTag: number
  /** Increases with every channel that the consumer opens. */
  readonly epoch: number
  /**
   * Settles the delivery. This is a plain function and not an effect, because it runs once per message. The driver
   * sends acknowledgements in batches.
   */
  readonly settle: (how: Settlement) => Settled
}

export interface ConsumeOptions {
  readonly queue: string
  /** The maximum number of unsettled deliveries: 1 to 65,535. */
  readonly prefetch: number
  /** Consumer arguments, such as `x-stream-offset` or `x-priority`. */
  readonly arguments?: Fields
  /**
   * Runs inside callbacks of the driver, so it must be synchronous and cheap. If it throws, the driver logs the
   * exception and requeues the delivery one second later.
   */
  readonly onDelivery: (delivery: Delivery) => void
  /** Called when the channel of this epoch has ended. Its deliveries cannot be settled. The broker redelivers them. */
  readonly onLost?: (epoch: number, reason: string) => void
  /**
   * Called when consuming has resumed, before the first delivery of the new epoch. A stream consumer resumes after the
   * last settled offset, even if the stream was deleted and declared again. To read such a new stream from its start,
   * create a new consumer.
   */
  readonly onResumed?: (epoch: number) => void
}

/** A consumer that resumes after a lost connection, a lost channel, or a cancellation by the broker. */
export interface Subscription {
  readonly queue: string
  /**
   * Stops deliveries. After success, no further delivery arrives. Earlier ones can be settled until the scope closes.
   */
  readonly cancel: Effect.Effect<void>
}

/** A channel for one caller. A channel that an error has closed is not reopened. */
export interface Channel {
  readonly get: (queue: string) => Effect.Effect<Option.Option<Delivery>, BrokerError>
  readonly consume: (
    options: Pick<ConsumeOptions, "queue" | "arguments" | "onDelivery">
  ) => Effect.Effect<Subscription, BrokerError>
  readonly publish: (publication: Omit<Publication, "purpose">) => Effect.Effect<Outcome>
  /** Never succeeds. Fails with the reason once the channel has ended. */
  readonly ended: Effect.Effect<never, BrokerError>
}

/**
 * The state of the connection. `Blocked`: connected, but the broker accepts no publishes. `failure` is the error of the
 * last attempt to connect. It is empty before the first attempt has failed.
 */
export type Connection =
  | { readonly _tag: "Connected" }
  | { readonly _tag: "Blocked"; readonly reason: string }
  | { readonly _tag: "Connecting"; readonly attempt: number; readonly failure: string }
  | { readonly _tag: "Closed" }

/** The product name and version that the broker reports. */
export interface Server {
  readonly product: string
  /** For example `3.10.8`. */
  readonly version: string
}

/** Access to RabbitMQ 3.10 or newer: topology, confirmed publishes, and consumers that resume by themselves. */
export class Broker extends Context.Service<
  Broker,
  {
    readonly server: Effect.Effect<Server, BrokerError>

    /**
     * Declares the topology now, and again on every new connection until `remove`. Stops at the first declaration that
     * the broker refuses.
     */
    readonly declare: (declarations: Declarations) => Effect.Effect<void, BrokerError>

    /** Compares a declaration with the broker without declaring anything. AMQP cannot examine bindings. */
    readonly examine: (
      declared: { readonly exchange: Exchange } | { readonly queue: Queue }
    ) => Effect.Effect<Examination, BrokerError>

    /** Deletes queues, exchanges and their bindings. Deleting a missing object is a no-op. */
    readonly remove: (names: {
      readonly queues?: ReadonlyArray<string>
      readonly exchanges?: ReadonlyArray<string>
    }) => Effect.Effect<void, BrokerError>

    /** Counts the queue's ready messages and its consumers. Returns `None` if the queue does not exist. */
    readonly inspect: (
      queue: string
    ) => Effect.Effect<Option.Option<{ readonly messages: number; readonly consumers: number }>, BrokerError>

    /** Publishes a message. Waits while the limit of unconfirmed publishes is reached. A failure is an `Outcome`. */
    readonly publish: (publication: Publication) => Effect.Effect<Outcome>

    /**
     * Succeeds once the broker has registered the consumer. Closing the scope closes the channel of the consumer. The
     * broker then requeues unsettled deliveries.
     */
    readonly consume: (options: ConsumeOptions) => Effect.Effect<Subscription, BrokerError, Scope.Scope>

    readonly channel: (options: { readonly prefetch: number }) => Effect.Effect<Channel, BrokerError, Scope.Scope>

    /** Emits the current state, then every change. */
    readonly connection: Stream.Stream<Connection>

    /** Succeeds after one round trip to the broker. */
    readonly ping: Effect.Effect<void, BrokerError>
  }
>()("svc/Broker") {}
