import {
  Array as Arr,
  Cause,
  Clock,
  Context,
  Effect,
  Layer,
  Metric,
  type Pull,
  Random,
  Schema,
  type Scope,
  Stream
} from "effect"
import { type Holder, type NoStream, OpenStreams } from "../../http/OpenStreams.ts"
import * as SseFrames from "../../http/SseFrames.ts"
import { SettingsError } from "../../messaging/envelope/Errors.ts"
import * as Observation from "../../messaging/observe/Observation.ts"
import { makeObserve, type ObservationSink } from "../../messaging/observe/ObservationSink.ts"
import { ContractAliases } from "../../messaging/topology/Aliases.ts"
import { ValidationIssues } from "../../messaging/topology/Parameters.ts"
import * as FairShare from "../../services/FairShare.ts"
import * as LogThrottle from "../../services/LogThrottle.ts"
import { type StatusHistory, StatusStore, type StoredStatus } from "../store/StatusStore.ts"
import { TerminalStatusSet } from "../store/TerminalStatusSet.ts"
import * as EventFrames from "./EventFrames.ts"
import { makePresenter, type Presentation } from "./PublicEvent.ts"
import { SseConnection, type SseLimits } from "./SseConnection.ts"
import * as TaskSubscriptions from "./TaskSubscriptions.ts"

export interface Options extends Presentation {
  /** The statuses that end a task. Default: `completed` and `failed`. */
  readonly terminalStatuses?: TerminalStatusSet | undefined
  /** The seconds without an event until a keepalive comment is sent, at most 3,600. `null`: never. Default: 15. */
  readonly keepaliveIntervalSeconds?: number | null
  /** The maximum number of open streams in this process. Further ones are refused. Default: 10,000. */
  readonly maxOpenStreams?: number
  /**
   * The maximum number of open streams per client address. Default: a quarter of `maxOpenStreams`. Behind a proxy, all
   * clients have the address of the proxy. In this case set it to the value of `maxOpenStreams`.
   */
  readonly maxOpenStreamsPerAddress?: number
  /** The maximum number of buffered events per client. A slow client gets later events from the store. Default: 64. */
  readonly maxWaitingEvents?: number
  /** The maximum total JSON length of a client's buffered events. One event may be longer. Default: 65,536. */
  readonly maxWaitingSize?: number
  /** A client that reads nothing for this many seconds is disconnected. Default: 60. */
  readonly stalledSeconds?: number
  readonly observationSink?: ObservationSink | undefined
}

/**
 * The stream was not opened.
 *
 * - `limit`: the process already has `maxOpenStreams` open streams.
 * - `share`: the client's address already has `maxOpenStreamsPerAddress` open streams.
 * - `draining`: the server is shutting down.
 */
export class StreamRefused extends Schema.TaggedError<StreamRefused>()("StreamRefused", {
  reason: Schema.Literals(["limit", "share", "draining"]),
  message: Schema.String
}) {}

/**
 * Streams the statuses of a task to a client: first the stored events after its last event, then live events. Each
 * event is sent once, in the order of the store. If events after the client's last event are no longer stored, the
 * client receives a `reset` frame and the whole stored history. A stream stays open while Redis is unavailable.
 */
export class EventStream extends Context.Service<
  EventStream,
  {
    /**
     * Opens a stream for the lifetime of the scope and returns its frames. The stream ends after a terminal status,
     * unless a later status resumes the task. It ends at once for a client that already has this status.
     */
    readonly open: (
      taskId: string,
      options?: {
        readonly lastEventId?: string | undefined
        /** The address of the client. Without an address, `maxOpenStreamsPerAddress` does not apply. */
        readonly address?: string | undefined
      }
    ) => Effect.Effect<Stream.Stream<Uint8Array>, StreamRefused, Scope.Scope>

    /** Ends every stream with a shutdown comment, and refuses new streams. */
    readonly drain: Effect.Effect<void>
  }
>()("svc/status/EventStream") {}

const make = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<EventStream["Service"], SettingsError, StatusStore | Scope.Scope> {
  const issues = new ValidationIssues()
  const settings = validate(options, issues)
  if (issues.mistakes.length > 0) return yield* SettingsError.of("EventStream", issues.mistakes)
  const store = yield* StatusStore
  const clock = yield* Clock.Clock
  const metrics = yield* Effect.context<never>()
  // A dashboard shows no rate of a counter that has no value before its first event.
  openStreams.updateUnsafe(0, metrics)
  for (const counter of [eventsSent, resets, keepalives]) counter.updateUnsafe(0, metrics)
  const observe = yield* makeObserve(options.observationSink)
  const subscriptions = yield* TaskSubscriptions.make(store.live)
  const frameEvent = makeFramer({ ...options, aliasConfig: options.aliasConfig ?? (yield* ContractAliases) })
  const logThrottled = yield* LogThrottle.makePerMinute
  const open = new OpenStreams<SseConnection>(settings.maxOpenStreams)
  yield* open.sweepEvery(settings.sweepMs)

  const observeMalformed = (taskId: string) =>
    observe((at) => Observation.of("SSEMalformedPubsubPayload", at, { task_id: taskId }))

  const openConnection = (taskId: string, lastEventId: string | undefined, holders: ReadonlyArray<Holder>) => {
    const now = clock.currentTimeMillisUnsafe()
    const stream = new SseConnection(taskId, lastEventId, isLastEvent, settings, now, () => observeMalformed(taskId))
    open.add(stream, holders)
    openStreams.updateUnsafe(open.size, metrics)
    observe((at) =>
      Observation.of("SSEStreamStarted", at, { task_id: taskId, resume_requested: lastEventId !== undefined })
    )
    return stream
  }

  const closeConnection = (stream: SseConnection, holders: ReadonlyArray<Holder>) => {
    stream.unsubscribe()
    open.delete(stream, holders)
    openStreams.updateUnsafe(open.size, metrics)
    const { endedBy, sentCount, taskId } = stream
    observe((at) =>
      Observation.of("SSEStreamEnded", at, {
        task_id: taskId,
        terminal_status: endedBy?.status ?? null,
        sent_count: sentCount
      })
    )
  }

  const applyHistory = (stream: SseConnection, lastEventId: string | undefined, history: StatusHistory) => {
    const { taskId } = stream
    const { replayed, reset, resumed } = stream.cursor.applyHistory(history)
    stream.reset ??= reset
    if (lastEventId !== undefined && resumed !== undefined) {
      observe((at) =>
        Observation.of("SSEResumeRequested", at, {
          task_id: taskId,
          last_event_id: lastEventId,
          history_match_found: resumed
        })
      )
    }
    if (replayed > 0) {
      observe((at) => Observation.of("SSEHistoryReplayed", at, { task_id: taskId, replayed_count: replayed }))
    }
  }

  const readHistory = (stream: SseConnection, lastEventId: string | undefined) =>
    store.history(stream.taskId, stream.cursor.beginRead()).pipe(
      Effect.map((history) => applyHistory(stream, lastEventId, history)),
      // The stream stays open. The next sweep over all streams reads the history again.
      Effect.catchCause((cause) => {
        stream.onReadFailed()
        return Cause.hasInterruptsOnly(cause)
          ? Effect.interrupt
          : Effect.logDebug(
              `An event stream could not read the history of task ${stream.taskId} and tries again in a moment`,
              cause
            )
      })
    )

  const tryFrame = (event: StoredStatus, failures: Array<unknown>): Uint8Array | undefined => {
    try {
      return frameEvent(event)
    } catch (cause) {
      failures.push(cause)
      return undefined
    }
  }

  /** Returns the frames of all buffered events, and the errors that the output adapter threw. */
  const takeFrames = (
    stream: SseConnection
  ): { readonly chunks: ReadonlyArray<Uint8Array>; readonly failures: ReadonlyArray<unknown> } => {
    const { taskId } = stream
    const chunks: Array<Uint8Array> = []
    const failures: Array<unknown> = []
    if (stream.reset !== undefined) {
      chunks.push(Buffer.from(EventFrames.reset(stream.reset)))
      stream.reset = undefined
      resets.updateUnsafe(1, metrics)
    }
    const { ended, events, historicalCount } = stream.cursor.take()
    for (const [index, event] of events.entries()) {
      const frame = tryFrame(event, failures)
      if (frame === undefined) {
        observeMalformed(taskId)
        continue
      }
      chunks.push(frame)
      stream.sentCount++
      eventsSent.updateUnsafe(1, metrics)
      observe((at) =>
        Observation.of("SSELiveEventSent", at, {
          task_id: taskId,
          event_id: event.eventId,
          status: event.status,
          source: index < historicalCount ? "history" : "pubsub"
        })
      )
    }
    // Reads the store again before the stream ends, because a newer event may have resumed the task.
    if (events.length > historicalCount && ended) stream.cursor.markStale()
    return { chunks, failures }
  }

  const logAdapterFailure = (taskId: string, failures: ReadonlyArray<unknown>) =>
    logThrottled((suppressed) =>
      Effect.logError(
        `The output adapter of event streams threw an error: an event of task ${taskId} was not sent${suppressed}`,
        failures[0]
      )
    )

  /** Returns the next chunks of a stream. Called when the client has received the previous chunks. */
  const pull = (stream: SseConnection, lastEventId: string | undefined): Pull.Pull<Chunks> =>
    Effect.withFiber((fiber) => {
      stream.onPull(fiber)
      const now = clock.currentTimeMillisUnsafe()
      const handOver = (chunks: Chunks) => Effect.succeed(stream.handOver(chunks, now))
      if (!stream.hasSentReady) {
        stream.hasSentReady = true
        stream.unsubscribe = subscriptions.subscribe(stream.taskId, stream)
        return handOver([ready])
      }
      if (stream.shutdownNotice === "sent") return Cause.done()
      if (stream.shutdownNotice === "due") {
        stream.shutdownNotice = "sent"
        return Effect.flatMap(Random.nextIntBetween(...SseFrames.reconnectMs), (wait) =>
          handOver([Buffer.from(SseFrames.shutdownNotice(wait))])
        )
      }
      const { chunks, failures } = takeFrames(stream)
      const next = (): Pull.Pull<Chunks> => {
        if (Arr.isReadonlyArrayNonEmpty(chunks)) return handOver(chunks)
        const { terminalStatus } = stream.cursor
        if (terminalStatus !== undefined) {
          stream.endedBy = terminalStatus
          return Cause.done()
        }
        if (stream.canRead) return Effect.andThen(readHistory(stream, lastEventId), pull(stream, lastEventId))
        if (stream.isKeepaliveDue(now)) {
          keepalives.updateUnsafe(1, metrics)
          observe((at) => Observation.of("SSEKeepaliveSent", at, { task_id: stream.taskId }))
          return handOver([keepalive])
        }
        return Effect.andThen(stream.awaitWake, pull(stream, lastEventId))
      }
      return failures.length === 0
        ? next()
        : Effect.andThen(logAdapterFailure(stream.taskId, failures), Effect.suspend(next))
    })

  return EventStream.of({
    open: (taskId, { address, lastEventId } = {}) =>
      Effect.suspend(() => {
        const holders = address === undefined ? [] : [holderOf(address, settings)]
        const refused = open.refusal(holders)
        if (refused !== undefined) return Effect.fail(refusalOf(refused, settings))
        return Effect.acquireRelease(
          Effect.sync(() => openConnection(taskId, lastEventId, holders)),
          (stream) => Effect.sync(() => closeConnection(stream, holders))
        ).pipe(Effect.map((stream) => Stream.fromPull(Effect.succeed(pull(stream, lastEventId)))))
      }),
    drain: Effect.sync(() => open.drain())
  })
})

export const layer = (options: Options = {}): Layer.Layer<EventStream, SettingsError, StatusStore> =>
  Layer.effect(EventStream, make(options))

/** Ends all streams at shutdown. Provide the HTTP listener to this layer, or the listener waits for the streams. */
export const drainFirst: Layer.Layer<never, never, EventStream> = Layer.effectDiscard(
  Effect.flatMap(EventStream, ({ drain }) => Effect.addFinalizer(() => drain))
)

const holderOf = (address: string, { maxOpenStreamsPerAddress: most }: Settings): Holder => ({
  id: FairShare.callerOfAddress(address),
  most
})

const refusalOf = ({ reason }: NoStream, { maxOpenStreams, maxOpenStreamsPerAddress }: Settings): StreamRefused => {
  const messages = {
    draining: "The server is shutting down: reconnect in a moment.",
    limit: `This process has ${maxOpenStreams} event streams open, which is its limit. Try again later.`,
    share: `This address has ${maxOpenStreamsPerAddress} event streams open, which is its limit. Close one of them first.`
  }
  return new StreamRefused({ reason, message: messages[reason] })
}

type Chunks = Arr.NonEmptyReadonlyArray<Uint8Array>

interface Settings extends SseLimits {
  readonly maxOpenStreams: number
  readonly maxOpenStreamsPerAddress: number
  readonly sweepMs: number
}

const validate = (options: Options, issues: ValidationIssues): Settings => {
  const seconds = (field: string, value: number, maximum: number) => {
    if (!(value > 0 && value <= maximum)) issues.addMistake(field, `must be more than 0 and at most ${maximum}`)
    return value * 1_000
  }
  const { keepaliveIntervalSeconds: keepalive = 15 } = options
  const maxOpenStreams = issues.checkInteger("maxOpenStreams", options.maxOpenStreams ?? 10_000, 1, 1_000_000) ?? 0
  const perAddress = options.maxOpenStreamsPerAddress ?? FairShare.maximum(maxOpenStreams)
  const keepaliveMs = keepalive === null ? undefined : seconds("keepaliveIntervalSeconds", keepalive, 3_600)
  const { terminalStatuses = new TerminalStatusSet() } = options
  return {
    isTerminal: (status) => terminalStatuses.has(status),
    maxOpenStreams,
    maxOpenStreamsPerAddress: issues.checkInteger("maxOpenStreamsPerAddress", perAddress, 1, 1_000_000) ?? 0,
    bounds: {
      events: issues.checkInteger("maxWaitingEvents", options.maxWaitingEvents ?? 64, 1, 100_000) ?? 0,
      size: issues.checkInteger("maxWaitingSize", options.maxWaitingSize ?? 65_536, 1, 1_000_000_000) ?? 0
    },
    keepaliveMs,
    stalledMs: seconds("stalledSeconds", options.stalledSeconds ?? 60, 86_400),
    sweepMs: Math.min(1_000, (keepaliveMs ?? 15_000) / 4)
  }
}

/** Creates a function that encodes an event once for all streams of its task. */
const makeFramer = (presentation: Presentation) => {
  const toPublicJson = makePresenter(presentation)
  const frames = new WeakMap<StoredStatus, Uint8Array>()
  return (event: StoredStatus): Uint8Array | undefined => {
    const cached = frames.get(event)
    if (cached !== undefined) return cached
    const json = toPublicJson(event.json)
    if (json === undefined) return undefined
    const frame = Buffer.from(EventFrames.status(event.eventId, json))
    frames.set(event, frame)
    return frame
  }
}

const isLastEvent = ({ eventId }: StoredStatus, lastEventId: string): boolean =>
  eventId === lastEventId || EventFrames.frameIdOf(eventId) === lastEventId

const ready = Buffer.from(EventFrames.ready)
const keepalive = Buffer.from(SseFrames.keepalive)

const counter = (name: string, description: string) => Metric.counter(name, { description, incremental: true })
const openStreams = Metric.gauge("svc_status_open_streams", { description: "Open event streams" })
const eventsSent = counter("svc_status_stream_events_sent_total", "Status events sent on event streams")
const resets = counter("svc_status_stream_resets_total", "Streams reset because events were missing")
const keepalives = counter("svc_status_stream_keepalives_total", "Keepalive comments on event streams")
