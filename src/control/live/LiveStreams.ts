import {
  type Array as Arr,
  Cause,
  Clock,
  Context,
  Effect,
  Layer,
  Metric,
  type Pull,
  Random,
  type Scope,
  Stream
} from "effect"
import { type Holder, type NoStream, OpenStreams } from "../../http/OpenStreams.ts"
import * as SseFrames from "../../http/SseFrames.ts"
import type { Topic } from "../../live/Topics.ts"
import * as FairShare from "../../services/FairShare.ts"
import * as LogThrottle from "../../services/LogThrottle.ts"
import type { Redis } from "../../services/Redis.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import type { Credentials } from "../operators/CredentialWatch.ts"
import * as CredentialWatch from "../operators/CredentialWatch.ts"
import { LiveListener } from "./LiveListener.ts"
import * as LivePosition from "./LivePosition.ts"
import * as LiveReader from "./LiveReader.ts"
import * as LiveTopics from "./LiveTopics.ts"

export interface Options {
  /** The number of open streams of this process. Default: 400. */
  readonly mostStreams?: number
  /** The number of open streams of one address, and of one operator token. Default: a quarter of `mostStreams`. */
  readonly mostStreamsPerHolder?: number
  /** A client that reads nothing for this many seconds is disconnected. Default: 30. */
  readonly stalledSeconds?: number
}

export interface LiveRequest {
  readonly topics: ReadonlyArray<Topic>
  readonly lastEventId: string | undefined
  readonly address: string | undefined
  readonly tokenId: string | null
  readonly credentials: Credentials
}

/**
 * Streams what happens in all processes to operators. One fiber reads for all streams of this process. A stream sends
 * at most four frames a second; what a slow client has not read is folded into counts.
 */
export class LiveStreams extends Context.Service<
  LiveStreams,
  {
    /** Opens a stream for the lifetime of the scope. It ends once the credentials lose the right to see a topic. */
    readonly open: (
      request: LiveRequest
    ) => Effect.Effect<Stream.Stream<Uint8Array>, Refused<"too_many_live_streams" | "gateway_overloaded">, Scope.Scope>
    /** Ends every stream with a notice, and refuses new ones. */
    readonly drain: Effect.Effect<void>
  }
>()("svc/control/LiveStreams") {
  static readonly layer = (options: Options = {}): Layer.Layer<LiveStreams, never, Redis> =>
    Layer.effect(LiveStreams, make(options))

  /** Ends all streams at shutdown. Provide the listener to this layer, or the listener waits for the streams. */
  static readonly drainFirst: Layer.Layer<never, never, LiveStreams> = Layer.effectDiscard(
    Effect.flatMap(LiveStreams, ({ drain }) => Effect.addFinalizer(() => drain))
  )
}

type Chunks = Arr.NonEmptyReadonlyArray<Uint8Array>

const make = Effect.fnUntraced(function* ({
  mostStreams = 400,
  mostStreamsPerHolder = FairShare.maximum(mostStreams),
  stalledSeconds = 30
}: Options) {
  const clock = yield* Clock.Clock
  const metrics = yield* Effect.context<never>()
  const read = yield* LiveReader.make
  const logFailure = yield* LogThrottle.makePerMinute
  const open = new OpenStreams<LiveListener>(mostStreams)
  const times = { keepaliveMs, stalledMs: stalledSeconds * 1_000 }
  const watch = yield* CredentialWatch.make
  openStreams.updateUnsafe(0, metrics)

  yield* open.sweepEvery(1_000)
  yield* Effect.suspend(() => read(open)).pipe(
    Effect.catchCause((cause) =>
      logFailure((suppressed) => Effect.logWarning(`The live streams wait, because Redis failed${suppressed}`, cause))
    ),
    Effect.andThen(Effect.sleep(frameEveryMs)),
    Effect.forever,
    Effect.forkScoped
  )

  const pull = (listener: LiveListener): Pull.Pull<Chunks> =>
    Effect.withFiber((fiber) => {
      listener.onPull(fiber)
      const now = clock.currentTimeMillisUnsafe()
      const send = (...frames: ReadonlyArray<string>) =>
        Effect.succeed<Chunks>(listener.handOver([Buffer.from(frames.join(""))], now))
      if (!listener.hasBegun) {
        listener.hasBegun = true
        return send(connected)
      }
      if (listener.shutdownNotice === "sent" || listener.hasSaidEnd) return Cause.done()
      if (listener.shutdownNotice === "due") {
        listener.shutdownNotice = "sent"
        return Effect.map(
          Random.nextIntBetween(...SseFrames.reconnectMs),
          (wait): Chunks => listener.handOver([Buffer.from(SseFrames.shutdownNotice(wait))], now)
        )
      }
      const frames = listener.take()
      if (frames.length > 0) return send(...frames)
      if (listener.isKeepaliveDue(now)) return send(SseFrames.keepalive)
      return Effect.andThen(listener.awaitWake, pull(listener))
    })

  const begin = ({ lastEventId, topics }: LiveRequest, holders: ReadonlyArray<Holder>) => {
    const resume = lastEventId === undefined ? new Map<Topic, number>() : LivePosition.decode(lastEventId)
    const listener = new LiveListener(topics, resume ?? new Map(), times, clock.currentTimeMillisUnsafe())
    if (resume === undefined) for (const topic of topics) listener.reset(topic, "unknown_position")
    open.add(listener, holders)
    openStreams.updateUnsafe(open.size, metrics)
    return listener
  }

  const end = (listener: LiveListener, holders: ReadonlyArray<Holder>) => {
    open.delete(listener, holders)
    openStreams.updateUnsafe(open.size, metrics)
  }

  return LiveStreams.of({
    open: (request) =>
      Effect.suspend(() => {
        const holders = holdersOf(request, mostStreamsPerHolder)
        const refused = open.refusal(holders)
        if (refused !== undefined) return Effect.fail(refusalOf(refused))
        return Effect.acquireRelease(
          Effect.sync(() => begin(request, holders)),
          (listener) => Effect.sync(() => end(listener, holders))
        ).pipe(
          Effect.tap((listener) =>
            watch({
              credentials: request.credentials,
              isAllowed: (scopes) => request.topics.every((topic) => LiveTopics.mayFollow(scopes, topic)),
              onLost: (message) => listener.end(message)
            })
          ),
          Effect.map((listener) => Stream.fromPull(Effect.succeed(pull(listener))))
        )
      }),
    drain: Effect.sync(() => open.drain())
  })
})

const holdersOf = ({ address, tokenId }: LiveRequest, most: number): ReadonlyArray<Holder> => [
  ...(address === undefined ? [] : [{ id: `address ${FairShare.callerOfAddress(address)}`, most }]),
  ...(tokenId === null ? [] : [{ id: `operator token ${tokenId}`, most }])
]

const refusalOf = (refused: NoStream): Refused<"too_many_live_streams" | "gateway_overloaded"> => {
  if (refused.reason === "share") {
    const { id, most } = refused.holder
    const whose = id.startsWith("address") ? "address" : "operator token"
    return new ControlError(
      "too_many_live_streams",
      `This ${whose} has ${most} live streams open, which is its limit. Close one of them first.`
    )
  }
  return new ControlError(
    "gateway_overloaded",
    refused.reason === "draining"
      ? "The process is shutting down: reconnect in a moment."
      : "This process has its maximum of live streams open. Try again later."
  )
}

const connected = ": connected\n\n"

/** A person reads no more than four frames a second. */
const frameEveryMs = 250

const keepaliveMs = 15_000

const openStreams = Metric.gauge("svc_live_open_streams", { description: "Open live streams of operators" })
