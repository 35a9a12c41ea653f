import { Effect, Layer } from "effect"
import { type Exchange, fromEffects, type Sink, Upstream, UpstreamError } from "../../src/services/Upstream.ts"

/** What an upstream does with an exchange. */
export type Script = (sink: Sink, request: Exchange) => Effect.Effect<void, UpstreamError>

/** An exchange that reached the upstream, and the body that came with it. */
export interface Sent extends Omit<Exchange, "body"> {
  readonly text: string
}

/** An upstream that does as it is told, and remembers what it was asked. */
export const layer = (script: Script, sent: Array<Sent>): Layer.Layer<Upstream> =>
  Layer.effect(
    Upstream,
    fromEffects((request, sink) =>
      Effect.gen(function* () {
        const { body, ...rest } = request
        sent.push({
          ...rest,
          text: yield* Effect.tryPromise({ try: () => textOf(body), catch: () => stopped("headers") })
        })
        yield* script(sink, request)
      })
    )
  )

const textOf = async (body: Exchange["body"]): Promise<string> => {
  if (body === null) return ""
  if (body instanceof Uint8Array) return Buffer.from(body).toString()
  const chunks: Array<Uint8Array> = []
  for await (const chunk of body) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

const stopped = (phase: UpstreamError["phase"]) => new UpstreamError({ phase, reason: "stopped" })

/** Answers with these chunks, whole. */
export const answers =
  (status: number, headers: ReadonlyArray<string>, ...chunks: ReadonlyArray<string | Buffer>): Script =>
  (sink) =>
    Effect.suspend(() => {
      if (sink.head(status, headers) === "stop") return Effect.fail(stopped("body"))
      for (const chunk of chunks) if (sink.chunk(Buffer.from(chunk)) === "stop") return Effect.fail(stopped("body"))
      return Effect.void
    })

const plain = ["content-type", "application/json"]

/** Answers with JSON, and says how long it is. */
export const json = (body: object, status = 200): Script => {
  const text = JSON.stringify(body)
  return answers(status, [...plain, "content-length", String(Buffer.byteLength(text))], text)
}

export const events = (...chunks: ReadonlyArray<string>): Script =>
  answers(200, ["content-type", "text/event-stream"], ...chunks)

/** Fails, after what `before` does. */
export const fails =
  (phase: UpstreamError["phase"], reason: UpstreamError["reason"], before: Script = () => Effect.void): Script =>
  (sink, request) =>
    Effect.andThen(before(sink, request), Effect.fail(new UpstreamError({ phase, reason })))

/** Goes on for ever, after what `before` does. */
export const hangs =
  (before: Script = () => Effect.void): Script =>
  (sink, request) =>
    Effect.andThen(before(sink, request), Effect.never)
