import { Context, Effect } from "effect"
import { type Headers, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { isAddress, requestHostname } from "../../http/RequestHost.ts"
import { isPageRequest } from "./PortalPaths.ts"

/** Host names that browsers may use besides IP addresses and `localhost`, in lower case (`GATEWAY_CONTROL_HOSTS`). */
export const ControlHosts = Context.Reference<ReadonlyArray<string>>("svc/control/ControlHosts", {
  defaultValue: () => []
})

/**
 * Protects metrics, probes and documentation against web pages that use DNS rebinding. Browser requests to paths
 * without authentication must use a known host name. Monitoring tools may use any name.
 */
export const KnownHosts = HttpRouter.middleware(
  Effect.gen(function* () {
    const names = new Set(yield* ControlHosts)
    const isKnown = (hostname: string) =>
      isAddress(hostname) || hostname === "localhost" || hostname.endsWith(".localhost") || names.has(hostname)
    return (httpEffect) =>
      Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
        const { headers, url } = request
        const isProtected = needsToken.test(url) && !isPageRequest(request)
        return isProtected || !isBrowser(headers) || isKnown(requestHostname(headers["host"]))
          ? httpEffect
          : Effect.succeed(forbidden)
      })
  }),
  { global: true }
)

const needsToken = /^\/admin-ui\/(?:admin|v1|upstream-ui|tasks|find|live)(?:[/?]|$)/

/** A page can omit or change all of these headers except `Accept-Language`. The browser itself adds that header. */
const isBrowser = (headers: Headers.Headers): boolean =>
  ["accept-language", "sec-fetch-site", "origin", "referer"].some((name) => headers[name] !== undefined)

const forbidden = HttpServerResponse.empty({ status: 403 })
