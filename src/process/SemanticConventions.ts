import { Context } from "effect"

/**
 * A version of OpenTelemetry's conventions for calls of models. `v1.36.0` is the last one that instrumentations emit
 * unless an operator opts in to a later one. `v1.41.1` is the latest release.
 */
export type GenAiVersion = "v1.36.0" | "v1.41.1"

/** The version of the names on spans and metrics of calls of models. */
export const GenAiConventions = Context.Reference<GenAiVersion>("svc/process/GenAiConventions", {
  defaultValue: () => "v1.36.0"
})

/**
 * Reads `OTEL_SEMCONV_STABILITY_OPT_IN`, a list of values of all kinds of conventions. The values of other kinds, such as
 * `http`, name conventions that the gateway does not emit in two versions.
 */
export const genAiVersionOf = (optIn: string): GenAiVersion =>
  optIn.split(",").some((value) => value.trim() === "gen_ai_latest_experimental") ? "v1.41.1" : "v1.36.0"
