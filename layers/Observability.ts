import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Layer, Logger, Option, References } from "effect"
import { Headers } from "effect/http"
import { Otlp, OtlpSerialization } from "effect/observability"
import type { LogLevel, Settings } from "./Environment.ts"

/** JSON lines on standard output, and, where an endpoint is set, traces, logs and metrics over OTLP. */
export const layer = (settings: Settings): Layer.Layer<never> =>
  Option.match(settings.otlpEndpoint, {
    onNone: () => logs,
    onSome: (baseUrl) =>
      Otlp.layer({
        baseUrl,
        resource: { serviceName: "svc-runtime" },
        loggerMergeWithExisting: true,
        shutdownTimeout: "3 seconds"
      }).pipe(Layer.provide([OtlpSerialization.layerProtobuf, NodeHttpClient.layerUndici]), Layer.provideMerge(logs))
  })

/** A header that might carry a credential never reaches a span or a log with its value. */
const redactedHeaders = [
  "authorization",
  "proxy-authorization",
  "cookie",
  "set-cookie",
  /key/i,
  /token/i,
  /secret/i,
  /^x-trusted-gateway-/i
]

const logs = Layer.mergeAll(
  Logger.layer([Logger.consoleJson]),
  Layer.succeed(Headers.CurrentRedactedNames, redactedHeaders)
)

/** The level of one component's log lines: `LOG_LEVEL` sets it per component. */
export const level = (minimum: LogLevel) => Layer.succeed(References.MinimumLogLevel, minimum)
