import { Cause, Deferred, Effect, Exit, Queue, type Scope, Stream } from "effect"
import { CollectedBytes } from "../../services/CollectedBytes.ts"
import { type Exchange, type Sink, Upstream, type UpstreamError } from "../../services/Upstream.ts"

/** A response whose status and headers have arrived. Closing the scope ends the exchange with the upstream. */
export interface UpstreamResponse {
  readonly status: number
  /** Header names and values in turn. */
  readonly headers: ReadonlyArray<string>
  /** The upstream is paused while nobody reads the body. */
  readonly body: Stream.Stream<Uint8Array, UpstreamError>
  /** Reads the whole body if it has at most `most` bytes. Otherwise returns `undefined` and consumes nothing. */
  readonly bufferUpTo: (most: number) => Effect.Effect<Buffer | undefined, UpstreamError>
}

/** The upstream is paused above this number of unread bytes. */
const maxQueuedBytes = 262_144
const chunkOverhead = 512
const queuedCost = (bytes: Uint8Array): number => bytes.length + chunkOverhead

export const request: (exchange: Exchange) => Effect.Effect<UpstreamResponse, UpstreamError, Upstream | Scope.Scope> =
  Effect.fnUntraced(function* (exchange) {
    const upstream = yield* Upstream
    const head = yield* Deferred.make<Pick<UpstreamResponse, "status" | "headers">, UpstreamError>()
    const chunks = yield* Queue.unbounded<Uint8Array, UpstreamError | Cause.Done>()
    let queuedBytes = 0
    let pendingResume: (() => void) | undefined

    const sink: Sink = {
      head: (status, headers) => {
        Deferred.doneUnsafe(head, Exit.succeed({ status, headers }))
        return "continue"
      },
      chunk: (bytes) => {
        queuedBytes += queuedCost(bytes)
        Queue.offerUnsafe(chunks, bytes)
        return queuedBytes > maxQueuedBytes ? "pause" : "continue"
      },
      onDrain: (resume) => {
        pendingResume = resume
        resumeIfDrained()
      }
    }
    const resumeIfDrained = () => {
      if (queuedBytes > maxQueuedBytes || pendingResume === undefined) return
      const resume = pendingResume
      pendingResume = undefined
      resume()
    }
    const onEnd = (exit: Exit.Exit<void, UpstreamError>) => {
      if (Exit.isSuccess(exit)) {
        Queue.endUnsafe(chunks)
      } else {
        Deferred.doneUnsafe(head, Exit.failCause(exit.cause))
        Queue.failCauseUnsafe(chunks, exit.cause)
      }
    }
    yield* Effect.acquireRelease(
      Effect.sync(() => upstream.exchangeUnsafe(exchange, sink, onEnd)),
      (cancel) => Effect.sync(cancel)
    )
    const buffered = new CollectedBytes()
    const onRead = (bytes: Uint8Array) =>
      Effect.sync(() => {
        queuedBytes -= queuedCost(bytes)
        resumeIfDrained()
      })
    return {
      ...(yield* Deferred.await(head)),
      body: Stream.concat(
        Stream.suspend(() => (buffered.length === 0 ? Stream.empty : Stream.succeed(buffered.take()))),
        Stream.tap(Stream.fromQueue(chunks), onRead)
      ),
      bufferUpTo: Effect.fnUntraced(function* (most) {
        for (;;) {
          const next = yield* Effect.catchIf(Queue.take(chunks), Cause.isDone, () => Effect.succeed(undefined))
          if (next === undefined) return buffered.take()
          yield* onRead(next)
          buffered.add(Buffer.from(next.buffer, next.byteOffset, next.byteLength))
          if (buffered.length > most) return undefined
        }
      })
    }
  })
