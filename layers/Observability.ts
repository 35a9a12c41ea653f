import { hostname } from "node:os"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Effect, Layer, Logger, type LogLevel, Option, Redacted, References, Tracer } from "effect"
import { UrlParams } from "effect/http"
import { Otlp, OtlpSerialization } from "effect/observability"
import { AccessLog } from "../src/gateway/telemetry/AccessLog.ts"
import { GenAiConventions } from "../src/process/SemanticConventions.ts"
import { shutdownSeconds } from "../src/process/ShutdownTimeouts.ts"
import type { Role } from "./DoorOptions.ts"
import type { OtlpSettings, Settings } from "./Environment.ts"
import * as ProcessMetrics from "./ProcessMetrics.ts"
import type * as LogLine from "./telemetry/LogLine.ts"
import * as LogLines from "./telemetry/LogLines.ts"
import * as Sampler from "./telemetry/Sampler.ts"
import { version } from "./telemetry/Version.ts"

/** The process that writes logs, metrics and traces. */
interface Source extends LogLine.Source {
  readonly role: Role
}

/** Writes log lines as JSON to standard output. With an OTLP endpoint, also exports traces, logs and metrics. */
export const layer = (settings: Settings, source: Source): Layer.Layer<never> =>
  Layer.mergeAll(
    ProcessMetrics.layer(source.role),
    Option.match(settings.otlp, {
      onNone: () => Layer.merge(logLayer(settings, source), Layer.succeed(References.TracerEnabled, false)),
      onSome: (otlp) => otlpLayer(otlp, source).pipe(Layer.provideMerge(logLayer(settings, source)))
    })
  )

const otlpLayer = (
  { attributes, endpoint, genAiVersion, headers, sampler, serviceName }: OtlpSettings,
  { role, worker }: Source
) => {
  const exporter = Otlp.layer({
    baseUrl: endpoint,
    headers: Redacted.value(headers),
    resource: {
      serviceName: Option.getOrElse(serviceName, () => attributes["service.name"] ?? "svc-runtime"),
      serviceVersion: attributes["service.version"] ?? version,
      // The instance id keeps the counters of different processes apart.
      attributes: {
        "service.instance.id": `${hostname()}:${process.pid}`,
        "svc.role": role,
        ...(worker !== undefined && { "svc.worker": worker }),
        ...attributes
      }
    },
    loggerMergeWithExisting: true,
    shutdownTimeout: `${shutdownSeconds.telemetry} seconds`
  }).pipe(Layer.provide([OtlpSerialization.layerProtobuf, NodeHttpClient.layerUndici]))
  const sampledTracer = Layer.effect(
    Tracer.Tracer,
    Effect.map(Effect.tracer, (tracer) => Sampler.withSampler(tracer, sampler))
  )
  return Layer.merge(sampledTracer.pipe(Layer.provideMerge(exporter)), Layer.succeed(GenAiConventions, genAiVersion))
}

const logLayer = ({ accessLog, logLevels }: Settings, source: Source) =>
  Layer.unwrap(
    Effect.map(LogLines.toStandardOutput(source), (lines) =>
      Layer.mergeAll(
        Logger.layer([lines.logger]),
        Layer.succeed(AccessLog, accessLog ? Option.some(lines.info("request")) : Option.none()),
        minimumLevel(logLevels.other),
        // Spans hide the values of all URL parameters, because any value may be a credential.
        Layer.succeed(UrlParams.CurrentRedactedNames, [/./])
      )
    )
  )

export const minimumLevel = (minimum: LogLevel.LogLevel) => Layer.succeed(References.MinimumLogLevel, minimum)
