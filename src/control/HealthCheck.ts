import { Cause, Clock, Effect, Exit, Option, Result } from "effect"
import { type Sink, Upstream } from "../services/Upstream.ts"

/** What is asked whether it lives. */
export interface Probe {
  /** Scheme, host and port; `undefined` where nobody has set one. */
  readonly baseUrl: string | undefined
  readonly method: "GET" | "HEAD"
  readonly path: string
  /** Name, value, name, value. */
  readonly headers: ReadonlyArray<string>
}

export interface Checked {
  /** `undefined`: it answered with a status of 2xx. */
  readonly errorCode: string | undefined
  /** `undefined`: nothing was asked. */
  readonly latencyMs: number | undefined
}

/** From the connection to the answer's status. */
const deadlineMs = 3000

/** Asks once and looks at the status of the answer, and at nothing else of it (reference §2.13). */
export const check = Effect.fn("HealthCheck.check")(function* ({ baseUrl, headers, method, path }: Probe) {
  if (baseUrl === undefined) return unasked("missing_upstream_url")
  if (!URL.canParse(baseUrl)) return unasked("invalid_upstream_url")
  const upstream = yield* Upstream
  let status: number | undefined
  const sink: Sink = {
    head: (code) => {
      status = code
      return "stop"
    },
    chunk: () => "stop",
    onDrain: () => {}
  }
  const startedAt = yield* Clock.currentTimeMillis
  const exit = yield* upstream
    .exchange(
      {
        origin: new URL(baseUrl).origin,
        method,
        target: path,
        headers,
        body: null,
        headersWithinMs: deadlineMs,
        idleWithinMs: deadlineMs
      },
      sink
    )
    .pipe(Effect.timeoutOption(deadlineMs), Effect.exit)
  const checked: Checked = {
    errorCode: status === undefined ? failureOf(exit) : status >= 200 && status < 300 ? undefined : `http_${status}`,
    latencyMs: (yield* Clock.currentTimeMillis) - startedAt
  }
  return checked
})

const unasked = (errorCode: string): Checked => ({ errorCode, latencyMs: undefined })

const failureOf = (exit: Exit.Exit<Option.Option<void>, { readonly reason: string }>): string => {
  if (Exit.isSuccess(exit)) return Option.isNone(exit.value) ? "timeout" : "health_check_failed:no_answer"
  const error = Result.getOrUndefined(Cause.findError(exit.cause))
  return error?.reason === "timeout" ? "timeout" : `health_check_failed:${error?.reason ?? "unknown"}`
}
