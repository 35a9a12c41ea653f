import type { IncomingMessage, ServerResponse } from "node:http"
import { Effect, Option } from "effect"
import { Readiness } from "../../src/process/Readiness.ts"

/** Answers a probe of the proxy listener; false: the request is none. */
export type ProxyProbes = (incoming: IncomingMessage, outgoing: ServerResponse) => boolean

/** Strangers may ask as often as they like: the servers are pinged for them once in that time. */
const freshFor = "1 second"

const health = "/admin-ui/healthz"
const readiness = "/admin-ui/readyz"

/**
 * Health and readiness on the listener that load balancers send requests to, so that they need not reach the control
 * listener. Whoever may reach it is told one word, and not what the process works with.
 */
export const make = Effect.gen(function* () {
  const known = yield* Effect.serviceOption(Readiness)
  if (Option.isNone(known)) return (): boolean => false
  const fork = Effect.runForkWith(yield* Effect.context<never>())
  const status = yield* Effect.cachedWithTTL(
    Effect.map(known.value, (report) => report.status),
    freshFor
  )
  const probes: ProxyProbes = (incoming, outgoing) => {
    const { method, url } = incoming
    if ((url !== readiness && url !== health) || (method !== "GET" && method !== "HEAD")) return false
    const answer = (status: string) => {
      const body = JSON.stringify({ status })
      outgoing
        .writeHead(status === "not_ready" ? 503 : 200, {
          "content-type": "application/json",
          "content-length": body.length,
          "cache-control": "no-store"
        })
        .end(method === "HEAD" ? undefined : body)
    }
    if (url === health) answer("ok")
    else fork(Effect.map(status, answer))
    return true
  }
  return probes
})
