import { Context, type Effect, type Option, Schema, type Scope, type Stream } from "effect"

/**
 * - `unreachable`: no connection within the deadline; `lost`: the connection or the channel ended before an answer, and
 *   whether it was carried out is unknown; `timeout`: the broker did not answer in time; `closed`: this side has closed.
 * - `not_found` (404), `mismatch` (406: other arguments, unknown delivery tag), `denied` (403), `locked` (405), `refused`
 *   (anything else the broker said no to, or a URL that is none): the broker's own words are in `message`.
 * - `down` (404 as well): the queue is there, and the node that has it is not, or a stream has no leader.
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
 * The value of a header or of an argument: an AMQP field, with timestamps as `Date` and byte arrays as bytes. Numbers are
 * finite, as RabbitMQ has no others; whole ones of any width come back as `number`. Names have at most 255 bytes, and none
 * is `__proto__`; tables and lists are nested at most 100 levels deep, and the headers of a message have at most 64 KiB.
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
  /** Default: false. Gone with its last consumer. */
  readonly autoDelete?: boolean
  /** Default: false. Of this connection alone, and gone with it. */
  readonly exclusive?: boolean
  readonly arguments?: Fields
}

export interface Binding {
  readonly exchange: string
  readonly queue: string
  readonly routingKey: string
  readonly arguments?: Fields
}

/** Declared in this order, each list in its own. */
export interface Declarations {
  readonly exchanges: ReadonlyArray<Exchange>
  readonly queues: ReadonlyArray<Queue>
  readonly bindings: ReadonlyArray<Binding>
}

/** What a declaration would meet on the broker. `differs`: in the broker's words. */
export type Examination =
  | { readonly _tag: "Missing" }
  | { readonly _tag: "Same" }
  | { readonly _tag: "Differs"; readonly differs: string }

/** Message properties of AMQP 0-9-1. */
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
  /** Milliseconds. */
  readonly expiration?: number
  readonly messageId?: string
  /** Of whole seconds. */
  readonly timestamp?: Date
  readonly type?: string
  readonly userId?: string
  readonly appId?: string
}

/**
 * Publishes of one purpose share a channel and a window of unanswered publishes; on RabbitMQ, of statuses, those to one
 * exchange. What kills a channel, such as an exchange that does not exist, fails the innocent publishes of its own purpose
 * alone.
 *
 * A status may be stored twice by one publish: RabbitMQ before 4.0 confirms some that it loses, which are sent again with
 * some that it did not. Its event id tells.
 */
export type Purpose = "tasks" | "retries" | "statuses"

/** Always `mandatory`, and confirmed. */
export interface Publication {
  readonly purpose: Purpose
  /** Empty: the default exchange, which routes by the name of a queue. */
  readonly exchange: string
  readonly routingKey: string
  readonly content: Uint8Array
  readonly properties: Properties
}

/**
 * What is known of a publish; each calls for another action.
 *
 * - `Confirmed`: at least one queue has it, on disk where it is durable.
 * - `Returned`: the broker took it, and no queue did.
 * - `RouteError`: it was not stored. `nacked`: by the broker (a full queue); `no_exchange`; `denied`; `invalid`: AMQP cannot
 *   carry it, and `detail` names what; `blocked`: the broker takes nothing for lack of memory or disk; `unreachable`,
 *   `closed`: it was never sent.
 * - `Unknown`: it was sent, and no answer came: the connection was `lost`, or the `deadline` passed. It may be stored.
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
 * `reject` goes to the queue's dead-letter exchange, or nowhere. A stream knows `ack` alone; the others act as `ack`
 * there, as they would close the connection.
 */
export type Settlement = "ack" | "requeue" | "reject"

/**
 * `requested`: AMQP does not answer, so a crash may still bring the message back. `stale`: its channel is gone, and the
 * broker delivers it again, or has. `settled`: it was settled before; the second time changes nothing.
 */
export type Settled = "requested" | "stale" | "settled"

/** A message, bound to the channel that it came by. */
export interface Delivery {
  readonly queue: string
  readonly exchange: string
  readonly routingKey: string
  readonly content: Uint8Array
  readonly properties: Properties
  readonly redelivered: boolean
  /** Of its channel: counts from 1. */
  readonly deliveryTag: number
  /** Grows with every channel that the consumer lives through. */
  readonly epoch: number
  /** A plain function, as it is called for every message: acknowledgements are gathered and sent together. */
  readonly settle: (how: Settlement) => Settled
}

export interface ConsumeOptions {
  readonly queue: string
  /** How many deliveries may be unsettled: from 1 to 65,535. */
  readonly prefetch: number
  /** Such as `x-stream-offset`, `x-priority`. */
  readonly arguments?: Fields
  /**
   * Called from the driver's own callbacks: synchronous and cheap. What it throws is logged, and hurts nobody else: the
   * delivery goes back to its queue a second later.
   */
  readonly onDelivery: (delivery: Delivery) => void
  /** The deliveries of this epoch are void: the broker gives them to somebody again. */
  readonly onLost?: (epoch: number, reason: string) => void
  /**
   * Again at work after a loss, under a new epoch; before its first delivery. A stream is read on behind what was settled,
   * by its offset, also where it was deleted since and is another one: who has to tell them apart begins a new consumer.
   */
  readonly onResumed?: (epoch: number) => void
}

/** A consumer that outlives connections, channels and its own cancellation by the broker. */
export interface Subscription {
  readonly queue: string
  /** No further delivery arrives once it succeeds. What was delivered can still be settled until the scope closes. */
  readonly cancel: Effect.Effect<void>
}

/** A channel of one's own. What ends it, ends it for good: nothing here is recovered. */
export interface Channel {
  readonly get: (queue: string) => Effect.Effect<Option.Option<Delivery>, BrokerError>
  readonly consume: (
    options: Pick<ConsumeOptions, "queue" | "arguments" | "onDelivery">
  ) => Effect.Effect<Subscription, BrokerError>
  readonly publish: (publication: Omit<Publication, "purpose">) => Effect.Effect<Outcome>
  /** Fails when the channel has ended, with the reason. */
  readonly ended: Effect.Effect<never, BrokerError>
}

/**
 * `Blocked`: connected, and the broker takes no publishes, for the given reason. `failure`: of the last try, empty before
 * the first.
 */
export type Connection =
  | { readonly _tag: "Connected" }
  | { readonly _tag: "Blocked"; readonly reason: string }
  | { readonly _tag: "Connecting"; readonly attempt: number; readonly failure: string }
  | { readonly _tag: "Closed" }

/** What the broker says of itself. */
export interface Server {
  readonly product: string
  /** Such as `3.10.8`. */
  readonly version: string
}

/** RabbitMQ 3.10 or newer: topology, confirmed publishes and consumers that recover by themselves. */
export class Broker extends Context.Service<
  Broker,
  {
    readonly server: Effect.Effect<Server, BrokerError>

    /**
     * Declares, and declares again on every new connection, until it is removed. Fails without touching anything behind
     * the first declaration that the broker refuses.
     */
    readonly declare: (declarations: Declarations) => Effect.Effect<void, BrokerError>

    /** What declaring would meet, without declaring anything. Bindings cannot be examined. */
    readonly examine: (
      declared: { readonly exchange: Exchange } | { readonly queue: Queue }
    ) => Effect.Effect<Examination, BrokerError>

    /** Deletes queues, exchanges and their bindings; what is not there is no error. */
    readonly remove: (names: {
      readonly queues?: ReadonlyArray<string>
      readonly exchanges?: ReadonlyArray<string>
    }) => Effect.Effect<void, BrokerError>

    /** Messages that are ready, and consumers; none where there is no such queue. */
    readonly inspect: (
      queue: string
    ) => Effect.Effect<Option.Option<{ readonly messages: number; readonly consumers: number }>, BrokerError>

    /** Waits for its turn in its window. Never fails: what is known is the outcome. */
    readonly publish: (publication: Publication) => Effect.Effect<Outcome>

    /** Succeeds when the broker has registered the consumer. The scope closes its channel: unsettled deliveries return. */
    readonly consume: (options: ConsumeOptions) => Effect.Effect<Subscription, BrokerError, Scope.Scope>

    readonly channel: (options: { readonly prefetch: number }) => Effect.Effect<Channel, BrokerError, Scope.Scope>

    /** The present state first, then every change. */
    readonly connection: Stream.Stream<Connection>

    /** A round trip. */
    readonly ping: Effect.Effect<void, BrokerError>
  }
>()("svc/Broker") {}
