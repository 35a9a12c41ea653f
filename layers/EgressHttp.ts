import { Context, Effect, Layer, Redacted } from "effect"
import { Egress, EgressError } from "../src/services/Egress.ts"
import { type Flow, type Sink, Upstream, type UpstreamError } from "../src/services/Upstream.ts"
import * as UpstreamHttp from "./UpstreamHttp.ts"

/** Small requests over connections of their own: the same driver as the proxied traffic, which follows and retries nothing. */
export const layer: Layer.Layer<Egress> = Layer.effect(
  Egress,
  Effect.gen(function* () {
    const door = UpstreamHttp.layerWith({ connectionsPerOrigin: 64, idleConnections: 64, drainWithin: "1 second" })
    const { exchange } = Context.get(yield* Layer.build(Layer.fresh(door)), Upstream)
    return Egress.of({
      fetch: ({ bearer, body = null, headers = {}, maxBytes, method, url, withinMs }) =>
        Effect.gen(function* () {
          const at = URL.canParse(url) ? new URL(url) : undefined
          if (
            at === undefined ||
            !/^https?:$/.test(at.protocol) ||
            at.username + at.password !== "" ||
            at.hash !== ""
          ) {
            return yield* new EgressError({ reason: "invalid_url", message: "The address is no http or https URL." })
          }
          const answer = new Answer(maxBytes)
          const sent = [
            ...Object.entries(headers).flat(),
            ...(bearer === undefined ? [] : ["authorization", `Bearer ${Redacted.value(bearer)}`]),
            ...["accept-encoding", "identity"]
          ]
          yield* exchange(
            {
              origin: at.origin,
              target: at.pathname + at.search,
              method,
              headers: sent,
              body,
              headersWithinMs: withinMs,
              idleWithinMs: withinMs
            },
            answer
          ).pipe(
            Effect.mapError((error) => answer.refused ?? failed(error)),
            Effect.timeoutOrElse({ duration: withinMs, orElse: () => Effect.fail(late) })
          )
          return { status: answer.status, headers: answer.headers, body: Buffer.concat(answer.chunks) }
        })
    })
  })
)

/** What came, and why this side wanted no more of it. */
class Answer implements Sink {
  readonly chunks: Array<Uint8Array> = []
  readonly #maxBytes: number
  #bytes = 0
  status = 0
  headers: Record<string, string> = {}
  refused: EgressError | undefined

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  head(status: number, raw: ReadonlyArray<string>): Flow {
    this.status = status
    for (let i = 0; i + 1 < raw.length; i += 2) {
      const name = raw[i]!.toLowerCase()
      const before = this.headers[name]
      this.headers[name] = before === undefined ? raw[i + 1]! : `${before}, ${raw[i + 1]!}`
    }
    return [301, 302, 303, 307, 308].includes(status)
      ? this.#refuse("redirect", "It answers with a redirect.")
      : "continue"
  }

  chunk(bytes: Uint8Array): Flow {
    this.#bytes += bytes.length
    if (this.#bytes > this.#maxBytes) return this.#refuse("too_large", "Its answer is too large.")
    this.chunks.push(bytes)
    return "continue"
  }

  onDrain(): void {}

  #refuse(reason: "redirect" | "too_large", message: string): Flow {
    this.refused = new EgressError({ reason, message, status: this.status })
    return "stop"
  }
}

const late = new EgressError({ reason: "timeout", message: "It did not answer in time." })

const failed = ({ reason }: UpstreamError): EgressError =>
  reason === "timeout" || reason === "busy"
    ? late
    : reason === "malformed"
      ? new EgressError({ reason: "malformed", message: "Its answer is not valid HTTP." })
      : new EgressError({ reason: "unreachable", message: "It could not be reached." })
