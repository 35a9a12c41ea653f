import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Layer, Logger, Option, References } from "effect"
import { UrlParams } from "effect/http"
import { Otlp, OtlpSerialization } from "effect/observability"
import type { LogLevel, Settings } from "./Environment.ts"

/** JSON lines on standard output, and, where an endpoint is set, traces, logs and metrics over OTLP. */
export const layer = (settings: Settings): Layer.Layer<never> =>
  Option.match(settings.otlpEndpoint, {
    onNone: () => Layer.merge(logs(settings), Layer.succeed(References.TracerEnabled, false)),
    onSome: (baseUrl) =>
      Otlp.layer({
        baseUrl,
        resource: { serviceName: "svc-runtime" },
        loggerMergeWithExisting: true,
        shutdownTimeout: "3 seconds"
      }).pipe(
        Layer.provide([OtlpSerialization.layerProtobuf, NodeHttpClient.layerUndici]),
        Layer.provideMerge(logs(settings))
      )
  })

const logs = ({ logLevels }: Settings) =>
  Layer.mergeAll(
    Logger.layer([Logger.consoleJson]),
    level(logLevels.rest),
    // spans record no headers; of a URL they keep the names of its parameters, whose values may be anybody's credential
    Layer.succeed(UrlParams.CurrentRedactedNames, [/./])
  )

/** The least level of log lines: `LOG_LEVEL` sets it, and that of the listeners by their names. */
export const level = (minimum: LogLevel) => Layer.succeed(References.MinimumLogLevel, minimum)
