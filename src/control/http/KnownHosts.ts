import { Context, Effect } from "effect"
import { type Headers, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { isAddress, requestHostname } from "../../http/RequestHost.ts"

/** Names of the control listener beside addresses and `localhost`, in lower case (`GATEWAY_CONTROL_HOSTS`). */
export const ControlHosts = Context.Reference<ReadonlyArray<string>>("svc/control/ControlHosts", {
  defaultValue: () => []
})

/**
 * Without a token, browsers are answered by the listener's own names alone: metrics, probes and documentation are not for
 * a page whose name was made to lead here. Monitors may use any name.
 */
export const KnownHosts = HttpRouter.middleware(
  Effect.gen(function* () {
    const names = new Set(yield* ControlHosts)
    const isKnown = (hostname: string) =>
      isAddress(hostname) || hostname === "localhost" || hostname.endsWith(".localhost") || names.has(hostname)
    return (httpEffect) =>
      Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers, url }) =>
        needsToken.test(url) || !isBrowser(headers) || isKnown(requestHostname(headers["host"]))
          ? httpEffect
          : Effect.succeed(forbidden)
      )
  }),
  { global: true }
)

const needsToken = /^\/admin-ui\/(?:admin|v1|upstream-ui)(?:[/?]|$)/

/** A page can leave out or change all of these but `Accept-Language`, which a browser adds where a page says nothing. */
const isBrowser = (headers: Headers.Headers): boolean =>
  ["accept-language", "sec-fetch-site", "origin", "referer"].some((name) => headers[name] !== undefined)

/** `Refusals` adds the words. */
const forbidden = HttpServerResponse.empty({ status: 403 })
