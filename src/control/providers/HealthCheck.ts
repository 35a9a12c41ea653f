import { Cause, Clock, Effect, Exit, Option, Result } from "effect"
import { type Sink, Upstream } from "../../services/Upstream.ts"

/** What is asked whether it can be reached. */
export interface Probe {
  /** Scheme, host and port; `undefined` where nobody has set one. */
  readonly baseUrl: string | undefined
  readonly method: "GET" | "HEAD"
  readonly path: string
  /** Name, value, name, value; of a credential, or empty. */
  readonly credential: ReadonlyArray<string>
  readonly headers: ReadonlyArray<string>
  /** `success`: it was told by a path of its own what to look at. `answer`: anything but a failure of the server. */
  readonly expects: "success" | "answer"
}

export interface HealthCheckResult {
  /** `degraded`: it answers, and not to this credential. */
  readonly status: "healthy" | "degraded" | "unhealthy"
  readonly errorCode: string | undefined
  /** `undefined`: nothing was asked. */
  readonly latencyMs: number | undefined
}

/** From the connection to the answer's status. */
const deadlineMs = 3000

/** Asks once and looks at the status of the answer, and at nothing else of it. */
export const check = Effect.fn("HealthCheck.check")(function* (probe: Probe) {
  const { baseUrl, credential, headers, method, path } = probe
  if (baseUrl === undefined) return notSent("missing_upstream_url")
  if (!URL.canParse(baseUrl)) return notSent("invalid_upstream_url")
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
        headers: [...credential, ...headers],
        body: null,
        headersWithinMs: deadlineMs,
        idleWithinMs: deadlineMs
      },
      sink
    )
    .pipe(Effect.timeoutOption(deadlineMs), Effect.exit)
  const checked: HealthCheckResult = {
    ...(status === undefined
      ? ({ status: "unhealthy", errorCode: errorCodeOf(exit) } as const)
      : judgeStatus(probe, status)),
    latencyMs: (yield* Clock.currentTimeMillis) - startedAt
  }
  return checked
})

const judgeStatus = (
  { credential, expects }: Probe,
  status: number
): Pick<HealthCheckResult, "status" | "errorCode"> => {
  const errorCode = `http_${status}`
  if (expects === "success") {
    return status >= 200 && status < 300
      ? { status: "healthy", errorCode: undefined }
      : { status: "unhealthy", errorCode }
  }
  if (status >= 500) return { status: "unhealthy", errorCode }
  return (status === 401 || status === 403) && credential.length > 0
    ? { status: "degraded", errorCode: "credential_refused" }
    : { status: "healthy", errorCode: undefined }
}

const notSent = (errorCode: string): HealthCheckResult => ({ status: "unhealthy", errorCode, latencyMs: undefined })

const errorCodeOf = (exit: Exit.Exit<Option.Option<void>, { readonly reason: string }>): string => {
  if (Exit.isSuccess(exit)) return Option.isNone(exit.value) ? "timeout" : "unreachable"
  const reason = Result.getOrUndefined(Cause.findError(exit.cause))?.reason
  return reason === "timeout" || reason === "busy" ? reason : reason === "malformed" ? "not_http" : "unreachable"
}
