import { Cause, Deferred, Effect, Exit, Queue, type Scope, Stream } from "effect"
import { type Exchange, type Sink, Upstream, type UpstreamError } from "../services/Upstream.ts"

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

/** How many bytes may wait to be read. */
const room = 262_144

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
        waiting += bytes.length
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
      Effect.sync(() => upstream.start(exchange, sink, ended)),
      (cancel) => Effect.sync(cancel)
    )
    const begun: Array<Uint8Array> = []
    const read = (bytes: Uint8Array) =>
      Effect.sync(() => {
        waiting -= bytes.length
        wake()
      })
    return {
      ...(yield* Deferred.await(head)),
      body: Stream.concat(
        Stream.suspend(() => Stream.fromArray(begun)),
        Stream.tap(Stream.fromQueue(chunks), read)
      ),
      whole: Effect.fnUntraced(function* (most) {
        let size = 0
        for (;;) {
          const next = yield* Effect.catchIf(Queue.take(chunks), Cause.isDone, () => Effect.succeed(undefined))
          if (next === undefined) return Buffer.concat(begun)
          yield* read(next)
          begun.push(next)
          size += next.length
          if (size > most) return undefined
        }
      })
    }
  })
