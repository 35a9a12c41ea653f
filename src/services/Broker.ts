import { Context, type Effect, type Option, Schema, type Scope, type Stream } from "effect"

/**
 * A broker operation failed. `message` holds the broker's own text.
 *
 * - `unreachable`: no connection within the deadline. `lost`: the connection or the channel ended before the reply, so
 *   the operation may or may not have been carried out. `timeout`: the broker did not reply in time. `closed`: this
 *   side closed the connection.
 * - `not_found` (404). `mismatch` (406): different arguments, or an unknown delivery tag. `denied` (403). `locked`
 *   (405). `refused`: any other refusal by the broker, or an invalid URL.
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
 * The value of a header or of an argument: an AMQP field value. Timestamps are `Date`, byte arrays are `Uint8Array`.
 * Numbers are finite, because RabbitMQ has no others; integers of any width are read as `number`. Names have at most
 * 255 bytes and are never `__proto__`. Tables and lists nest at most 100 levels deep. The headers of a message have at
 * most 64 KiB.
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
  /** Default: false. The broker deletes the queue with its last consumer. */
  readonly autoDelete?: boolean
  /** Default: false. Only this connection may use the queue, and the broker deletes it with the connection. */
  readonly exclusive?: boolean
  readonly arguments?: Fields
}

export interface Binding {
  readonly exchange: string
  readonly queue: string
  readonly routingKey: string
  readonly arguments?: Fields
}

/** The broker declares exchanges first, then queues, then bindings; each list in its order. */
export interface Declarations {
  readonly exchanges: ReadonlyArray<Exchange>
  readonly queues: ReadonlyArray<Queue>
  readonly bindings: ReadonlyArray<Binding>
}

/** How a declaration compares with the broker's state. `differs` is the broker's error text. */
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
 * The publishes of one purpose share a channel and a window of unconfirmed publishes. On RabbitMQ, statuses have one
 * channel for each exchange. An error that closes a channel, such as a missing exchange, therefore fails only publishes
 * of the same purpose.
 *
 * One publish of a status may store it twice: RabbitMQ before 4.0 confirms some messages that it loses, and the driver
 * publishes those again together with some that were stored. Duplicates have the same event id.
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
 * The outcome of a publish. Each calls for a different action.
 *
 * - `Confirmed`: at least one queue has stored the message, on disk if the queue is durable.
 * - `Returned`: the broker accepted the message, but no queue is bound for it.
 * - `Refused`: the message was not stored. `nacked`: the broker rejected it, for example because a queue is full.
 *   `no_exchange`, `denied`: the channel error of that kind. `invalid`: AMQP cannot carry the message, and `detail`
 *   names the part. `blocked`: the broker accepts no publishes because it is short of memory or disk. `unreachable`,
 *   `closed`: the message was never sent.
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
 * `reject` sends the message to the queue's dead-letter exchange, or drops it if there is none. A stream supports only
 * `ack`: `requeue` and `reject` act as `ack` there, because RabbitMQ would close the connection.
 */
export type Settlement = "ack" | "requeue" | "reject"

/**
 * The result of settling a delivery.
 *
 * - `requested`: the settlement is on its way. AMQP does not confirm it, so a crash may still redeliver the message.
 * - `stale`: the delivery's channel is gone, and the broker redelivers the message.
 * - `settled`: the delivery was settled before; this call is a no-op.
 */
export type Settled = "requested" | "stale" | "settled"

/** A message, bound to the channel that delivered it. */
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
   * Settles the delivery. A plain function, because it runs once per message; the driver sends acknowledgements in
   * batches.
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
   * Runs inside the driver's callbacks, so it must be synchronous and cheap. An exception is logged and affects only
   * its delivery, which returns to the queue a second later.
   */
  readonly onDelivery: (delivery: Delivery) => void
  /** All deliveries of this epoch are void: the broker redelivers them. */
  readonly onLost?: (epoch: number, reason: string) => void
  /**
   * Consuming has resumed under a new epoch; called before its first delivery. A stream resumes after the last settled
   * offset, even if the stream was deleted and declared again meanwhile. To tell the two streams apart, start a new
   * consumer.
   */
  readonly onResumed?: (epoch: number) => void
}

/** A consumer that survives lost connections, lost channels and its own cancellation by the broker. */
export interface Subscription {
  readonly queue: string
  /**
   * Stops deliveries. After it succeeds no further delivery arrives; earlier ones can be settled until the scope
   * closes.
   */
  readonly cancel: Effect.Effect<void>
}

/** A channel for one caller. It is not recovered: an error that closes the channel ends it for good. */
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
 * The state of the connection. `Blocked`: connected, but the broker accepts no publishes, for the given reason.
 * `failure` is the error of the last attempt, and empty before the first one has failed.
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

/** The door to RabbitMQ 3.10 or newer: topology, confirmed publishes, and consumers that recover by themselves. */
export class Broker extends Context.Service<
  Broker,
  {
    readonly server: Effect.Effect<Server, BrokerError>

    /**
     * Declares the topology now and again on every new connection, until `remove`. Stops at the first declaration that
     * the broker refuses; the later ones are not attempted.
     */
    readonly declare: (declarations: Declarations) => Effect.Effect<void, BrokerError>

    /** Compares a declaration with the broker without declaring anything. AMQP cannot examine bindings. */
    readonly examine: (
      declared: { readonly exchange: Exchange } | { readonly queue: Queue }
    ) => Effect.Effect<Examination, BrokerError>

    /** Deletes queues, exchanges and their bindings. Deleting a missing one is a no-op. */
    readonly remove: (names: {
      readonly queues?: ReadonlyArray<string>
      readonly exchanges?: ReadonlyArray<string>
    }) => Effect.Effect<void, BrokerError>

    /** Counts the queue's ready messages and its consumers. Returns `None` if the queue does not exist. */
    readonly inspect: (
      queue: string
    ) => Effect.Effect<Option.Option<{ readonly messages: number; readonly consumers: number }>, BrokerError>

    /** Publishes a message once its window has room. Never fails: the outcome is a value. */
    readonly publish: (publication: Publication) => Effect.Effect<Outcome>

    /**
     * Succeeds once the broker has registered the consumer. Closing the scope closes its channel, and the broker
     * requeues the unsettled deliveries.
     */
    readonly consume: (options: ConsumeOptions) => Effect.Effect<Subscription, BrokerError, Scope.Scope>

    readonly channel: (options: { readonly prefetch: number }) => Effect.Effect<Channel, BrokerError, Scope.Scope>

    /** Emits the current state, then every change. */
    readonly connection: Stream.Stream<Connection>

    /** Succeeds after one round trip to the broker. */
    readonly ping: Effect.Effect<void, BrokerError>
  }
>()("svc/Broker") {}
