import { Array as Arr, Duration, Effect, Layer, Redacted, SubscriptionRef } from "effect"
import {
  Broker,
  type BrokerError,
  type Outcome,
  type Publication,
  type Purpose,
  type Server
} from "../src/services/Broker.ts"
import * as Consumer from "./amqp/Consumer.ts"
import * as Internals from "./amqp/Internals.ts"
import type { Link } from "./amqp/Link.ts"
import * as OwnChannel from "./amqp/OwnChannel.ts"
import { Publisher, type PublisherLimits } from "./amqp/Publisher.ts"
import * as Recovery from "./amqp/Recovery.ts"
import * as Topology from "./amqp/Topology.ts"

type Url = string | Redacted.Redacted

export interface Options {
  /**
   * An `amqp:` URL, or an `amqps:` URL for TLS with the certificates that Node trusts. For a cluster, give the URL of
   * each node. The URLs are tried in order. After a lost connection, the next URL is tried.
   */
  readonly url: Url | Arr.NonEmptyReadonlyArray<Url>
  /**
   * If no broker can be reached at the start, `fail` makes the layer fail and `wait` keeps retrying. If the broker
   * refuses the connection, for example because of a wrong password, the layer always fails. Default: `fail`.
   */
  readonly whenUnreachable?: "fail" | "wait" | undefined
  /** RabbitMQ's management tools show this name for the connection. Default: `svc-runtime`. */
  readonly name?: string | undefined
  /** The AMQP heartbeat interval. Two missed heartbeats end the connection. Default: 10 seconds. */
  readonly heartbeatSeconds?: number | undefined
  /** Timeout of a connection attempt, including the handshake. Default: 5 seconds. */
  readonly connectWithin?: Duration.Input | undefined
  /** The timeout of a request to the broker, including the wait for a connection. Default: 5 seconds. */
  readonly answerWithin?: Duration.Input | undefined
  /** Timeout of a publish, from the call to the outcome. Default: 10 seconds. */
  readonly publishWithin?: Duration.Input | undefined
  /** Timeout of each step of an orderly shutdown. Default: 2 seconds. */
  readonly closeWithin?: Duration.Input | undefined
  /** The limit of unconfirmed publishes per purpose, or per exchange of statuses (1 to 1,000). Default: 256. */
  readonly windows?: Partial<Readonly<Record<Purpose, number>>> | undefined
}

/**
 * Implements `Broker` with amqplib (AMQP 0-9-1). All channels share one connection. Tasks, retries, each status
 * exchange and each consumer have a channel of their own. Unlike amqplib, the layer reconnects, limits the time of
 * every close, and survives callbacks that throw.
 */
const make = Effect.fnUntraced(function* (options: Options) {
  const millis = (given: Duration.Input | undefined, otherwise: number) =>
    given === undefined ? otherwise : Duration.toMillis(Duration.fromInputUnsafe(given))
  const closeWithin = millis(options.closeWithin, 2_000)
  const publishTimeoutMs = millis(options.publishWithin, 10_000)
  const urls: Arr.NonEmptyReadonlyArray<Url> = isOne(options.url) ? [options.url] : options.url
  const topology = Topology.make((operation) => recovery.link(operation))
  const recovery: Recovery.Recovery = yield* Recovery.make({
    urls: Arr.map(urls, redacted),
    whenUnreachable: options.whenUnreachable ?? "fail",
    name: options.name ?? "svc-runtime",
    heartbeatSeconds: options.heartbeatSeconds ?? 10,
    connectWithin: millis(options.connectWithin, 5_000),
    answerWithin: millis(options.answerWithin, 5_000),
    closeWithin,
    internals: yield* Internals.select,
    prepare: topology.declareAgain
  })
  const limitsOf = (purpose: Purpose): PublisherLimits => ({
    window: Math.min(Math.max(options.windows?.[purpose] ?? 256, 1), 1_000),
    timeoutMs: publishTimeoutMs
  })
  const publisher = yield* makePublisherFactory(recovery)
  const publisherByPurpose = { tasks: publisher(limitsOf("tasks")), retries: publisher(limitsOf("retries")) }
  const statusPublishers = new Map<string, Publisher>()
  let latest: Publisher | undefined
  let closed: string | undefined
  const publisherOf = ({ exchange, purpose }: Publication): Publisher => {
    if (purpose !== "statuses") return publisherByPurpose[purpose]
    const known = statusPublishers.get(exchange)
    if (known !== undefined) return known
    if (latest !== undefined && statusPublishers.size === maxStatusExchanges) return latest
    latest = publisher(limitsOf(purpose), hasStreamDeduplicationBug)
    if (closed !== undefined) latest.close(closed)
    statusPublishers.set(exchange, latest)
    return latest
  }
  // On shutdown, wait up to `closeWithin` for the confirmations of publishes that were already sent.
  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      const all = [...Object.values(publisherByPurpose), ...statusPublishers.values()]
      closed = "The broker was closed"
      for (const publisher of all) publisher.close(closed)
      return Effect.timeoutOption(
        Effect.forEach(all, (publisher) => publisher.idle, { concurrency: "unbounded", discard: true }),
        closeWithin
      )
    })
  )
  return Broker.of({
    server: Effect.map(recovery.link("connect"), (link) => link.server),
    declare: topology.declare,
    examine: topology.examine,
    remove: topology.remove,
    inspect: topology.inspect,
    publish: (publication) =>
      Effect.callback<Outcome>((resume) => Effect.sync(publisherOf(publication).publish(publication, resume))),
    consume: (consumed) => Consumer.make(recovery, topology, consumed),
    channel: ({ prefetch }) =>
      Effect.flatMap(recovery.link("channel"), (link) => OwnChannel.make(link, limitsOf("tasks"), prefetch)),
    connection: SubscriptionRef.changes(recovery.state),
    ping: Effect.flatMap(recovery.link("channel"), (link) => link.withChannel("channel", () => Effect.void))
  })
})

const isOne = (url: Options["url"]): url is Url => typeof url === "string" || Redacted.isRedacted(url)

const redacted = (url: Url): Redacted.Redacted => (typeof url === "string" ? Redacted.make(url) : url)

/**
 * The first 16 status exchanges have a channel each. Later ones share the last channel. Separate channels protect
 * against a bug of RabbitMQ before 4.0, in which a stream loses confirmed messages (see `Publisher.attach`).
 */
const maxStatusExchanges = 16

const makePublisherFactory = Effect.fnUntraced(function* (recovery: Recovery.Recovery) {
  const fork = Effect.runForkWith(yield* Effect.context<never>())
  const scope = yield* Effect.scope
  return (limits: PublisherLimits, distrustsConfirms: (server: Server) => boolean = () => false): Publisher => {
    let link: Link | undefined
    const open = () => {
      const opened = link
      if (opened === undefined) return publisher.openFailed()
      const opening = opened
        .confirmChannel("channel", (why) => publisher.detach(why))
        .pipe(
          Effect.map((channel) =>
            publisher.attach(channel, opened.openOutbox(channel), distrustsConfirms(opened.server))
          ),
          Effect.catch((error) =>
            Effect.logWarning(
              "RabbitMQ did not open a channel for publishing, so messages wait until a retry succeeds",
              error.message
            ).pipe(
              Effect.andThen(Effect.sleep(reopenAfterMs)),
              Effect.andThen(
                Effect.sync(() => {
                  publisher.openFailed()
                  publisher.wake()
                })
              )
            )
          )
        )
      fork(Effect.forkIn(opening, scope))
    }
    const publisher: Publisher = new Publisher(limits, open, (channel) => {
      if (link !== undefined) fork(link.closeChannel(channel))
    })
    recovery.onLink((next) => {
      link = next
      next.onEnd(() => {
        if (link === next) link = undefined
      })
      next.onBlocked(() => publisher.block(next.blockedReason))
      publisher.block(next.blockedReason)
      publisher.wake()
    })
    return publisher
  }
})

const hasStreamDeduplicationBug = ({ version }: Server): boolean => Number.parseInt(version, 10) < 4

/** The delay in milliseconds before the next attempt after RabbitMQ refused to open a channel. */
const reopenAfterMs = 100

export const layer = (options: Options): Layer.Layer<Broker, BrokerError> => Layer.effect(Broker, make(options))
