import { Cause, Clock, Effect, Exit, Option, Result } from "effect"
import { type Sink, Upstream } from "../../services/Upstream.ts"

/** A server, and the request that checks whether it works. */
export interface Probe {
  /** `undefined` if no address is configured. */
  readonly baseUrl: string | undefined
  readonly method: "GET" | "HEAD"
  readonly path: string
  /** Header names and values in turn. Empty without a credential. */
  readonly credential: ReadonlyArray<string>
  readonly headers: ReadonlyArray<string>
  /** `success`, for a configured health path: only status 2xx is healthy. `answer`: any status below 500 is healthy. */
  readonly expects: "success" | "answer"
}

export interface HealthCheckResult {
  /** `degraded`: the server responds but refuses the credential. */
  readonly status: "healthy" | "degraded" | "unhealthy"
  readonly errorCode: string | undefined
  /** `undefined` if no request was sent. */
  readonly latencyMs: number | undefined
}

/** The timeout for the connection and the response head together. */
const deadlineMs = 3000

/** Sends one request and derives the health from the response status. The response body is not read. */
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
