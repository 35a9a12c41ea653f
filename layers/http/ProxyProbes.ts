import type { IncomingMessage, ServerResponse } from "node:http"
import { Effect, Option } from "effect"
import { Readiness } from "../../src/process/Readiness.ts"

export type ProxyProbes = (incoming: IncomingMessage, outgoing: ServerResponse) => boolean

/** Anyone may call the probes, so database, Redis and broker are pinged at most once in this time. */
const readinessTtl = "1 second"

const healthPath = "/admin-ui/healthz"
const readinessPath = "/admin-ui/readyz"

/**
 * Serves health and readiness for load balancers that cannot reach the control listener. The response contains only the
 * status, because anyone may read it.
 */
export const make = Effect.gen(function* () {
  const readiness = yield* Effect.serviceOption(Readiness)
  if (Option.isNone(readiness)) return (): boolean => false
  const fork = Effect.runForkWith(yield* Effect.context<never>())
  const status = yield* Effect.cachedWithTTL(
    Effect.map(readiness.value, (report) => report.status),
    readinessTtl
  )
  const probes: ProxyProbes = (incoming, outgoing) => {
    const { method, url } = incoming
    if ((url !== readinessPath && url !== healthPath) || (method !== "GET" && method !== "HEAD")) return false
    const respond = (status: string) => {
      const body = JSON.stringify({ status })
      outgoing
        .writeHead(status === "not_ready" ? 503 : 200, {
          "content-type": "application/json",
          "content-length": body.length,
          "cache-control": "no-store"
        })
        .end(method === "HEAD" ? undefined : body)
    }
    if (url === healthPath) respond("ok")
    else fork(Effect.map(status, respond))
    return true
  }
  return probes
})
