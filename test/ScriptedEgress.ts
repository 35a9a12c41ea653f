import { Effect, Layer, Redacted } from "effect"
import { Egress, EgressError, type EgressRequest } from "../src/services/Egress.ts"

/** What somebody at an address answers. */
export type Script = (asked: Asked) => Effect.Effect<{ readonly status: number; readonly body: string }, EgressError>

/** A request that left. */
export interface Asked {
  readonly url: string
  readonly headers: NonNullable<EgressRequest["headers"]>
  readonly bearer: string | undefined
  readonly withinMs: number
  readonly text: string
}

const unreachable = new EgressError({ reason: "unreachable", message: "It cannot be connected to." })

/** A door behind which somebody does as told, and that remembers what it let out. */
export const layer = (script: Script = () => Effect.fail(unreachable), asked: Array<Asked> = []): Layer.Layer<Egress> =>
  Layer.succeed(Egress, {
    fetch: ({ bearer, body, headers = {}, maxBytes, url, withinMs }) =>
      Effect.gen(function* () {
        const request: Asked = {
          url,
          headers,
          bearer: bearer === undefined ? undefined : Redacted.value(bearer),
          withinMs,
          text: Buffer.from(body ?? []).toString()
        }
        asked.push(request)
        const answer = yield* script(request).pipe(
          Effect.timeoutOrElse({
            duration: withinMs,
            orElse: () => Effect.fail(new EgressError({ reason: "timeout", message: "It did not answer in time." }))
          })
        )
        if (Buffer.byteLength(answer.body) > maxBytes) {
          return yield* new EgressError({ reason: "too_large", message: "Its answer is too large." })
        }
        return { status: answer.status, headers: {}, body: Buffer.from(answer.body) }
      })
  })

/** Answers with this, as JSON. */
export const says =
  (reply: object, status = 200): Script =>
  () =>
    Effect.succeed({ status, body: JSON.stringify(reply) })

/** A guardrail that does what its address says: `/allow`, `/block`, …; elsewhere nobody is at home. */
export const guardrail: Script = (asked) => {
  const replies: Readonly<Record<string, object>> = {
    "/allow": { action: "allow", metadata: { score: 0.1, api_token: "hidden" } },
    "/block": { action: "block", reason: "off topic" },
    "/modify": { action: "modify", request: { changed: true }, response: { answered: true } }
  }
  const reply = replies[new URL(asked.url).pathname]
  return reply === undefined ? Effect.fail(unreachable) : says(reply)(asked)
}
