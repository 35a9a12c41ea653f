import { Cause, Deferred, Effect, Exit, Queue, type Scope, Stream } from "effect"
import { CollectedBytes } from "../../services/CollectedBytes.ts"
import { type Exchange, type Sink, Upstream, type UpstreamError } from "../../services/Upstream.ts"

/** An answer of the upstream, from its head on. Its exchange ends with the scope. */
export interface UpstreamAnswer {
  readonly status: number
  /** Name, value, name, value. */
  readonly headers: ReadonlyArray<string>
  /** The body as it is wanted: who reads slowly slows the upstream down. */
  readonly body: Stream.Stream<Uint8Array, UpstreamError>
  /** The body, when it has at most `most` bytes; otherwise all of it is still in `body`. */
  readonly whole: (most: number) => Effect.Effect<Buffer | undefined, UpstreamError>
}

/** How much memory may wait to be read. */
const room = 262_144
/** A chunk in the queue takes so much beside its bytes. */
const perChunk = 512
const costOf = (bytes: Uint8Array): number => bytes.length + perChunk

export const ask: (exchange: Exchange) => Effect.Effect<UpstreamAnswer, UpstreamError, Upstream | Scope.Scope> =
  Effect.fnUntraced(function* (exchange) {
    const upstream = yield* Upstream
    const head = yield* Deferred.make<Pick<UpstreamAnswer, "status" | "headers">, UpstreamError>()
    const chunks = yield* Queue.unbounded<Uint8Array, UpstreamError | Cause.Done>()
    let waiting = 0
    let drained: (() => void) | undefined

    const sink: Sink = {
      head: (status, headers) => {
        Deferred.doneUnsafe(head, Exit.succeed({ status, headers }))
        return "continue"
      },
      chunk: (bytes) => {
        waiting += costOf(bytes)
        Queue.offerUnsafe(chunks, bytes)
        return waiting > room ? "pause" : "continue"
      },
      onDrain: (resume) => {
        drained = resume
        wake()
      }
    }
    const wake = () => {
      if (waiting > room || drained === undefined) return
      const resume = drained
      drained = undefined
      resume()
    }
    const ended = (exit: Exit.Exit<void, UpstreamError>) => {
      if (Exit.isSuccess(exit)) {
        Queue.endUnsafe(chunks)
      } else {
        Deferred.doneUnsafe(head, Exit.failCause(exit.cause))
        Queue.failCauseUnsafe(chunks, exit.cause)
      }
    }
    yield* Effect.acquireRelease(
      Effect.sync(() => upstream.exchangeUnsafe(exchange, sink, ended)),
      (cancel) => Effect.sync(cancel)
    )
    const begun = new CollectedBytes()
    const read = (bytes: Uint8Array) =>
      Effect.sync(() => {
        waiting -= costOf(bytes)
        wake()
      })
    return {
      ...(yield* Deferred.await(head)),
      body: Stream.concat(
        Stream.suspend(() => (begun.length === 0 ? Stream.empty : Stream.succeed(begun.take()))),
        Stream.tap(Stream.fromQueue(chunks), read)
      ),
      whole: Effect.fnUntraced(function* (most) {
        for (;;) {
          const next = yield* Effect.catchIf(Queue.take(chunks), Cause.isDone, () => Effect.succeed(undefined))
          if (next === undefined) return begun.take()
          yield* read(next)
          begun.add(Buffer.from(next.buffer, next.byteOffset, next.byteLength))
          if (begun.length > most) return undefined
        }
      })
    }
  })
