import { Duration, Option } from "effect"
import type { Declarations, Fields } from "../../services/Broker.ts"
import { SettingsError } from "../envelope/Errors.ts"
import type { FailureOptions } from "../failure/FailurePath.ts"
import type { ObservationSink } from "../observe/ObservationSink.ts"
import type { ContractAliasConfig } from "../topology/Aliases.ts"
import { ValidationIssues } from "../topology/Parameters.ts"
import type { Topology } from "../topology/Topology.ts"
import type * as DeliveryLoop from "./DeliveryLoop.ts"

/**
 * What can be said of every consumer. `undefined` counts as left out. A `Duration.Input` is a text such as "10 seconds", a
 * number of milliseconds, or a `Duration`.
 */
export interface ConsumerOptions extends FailureOptions {
  /**
   * How long the queue may be silent, in seconds, before the consumer makes sure that the broker still serves it: more
   * than 0, at most a day. `null`: it never does. Default: 1.
   */
  readonly consumeTimeoutSeconds?: number | null | undefined
  /** The names of top-level members in bodies that arrive. Default: the client's `aliasConfig`. */
  readonly aliasConfig?: ContractAliasConfig | undefined
  /** Told of everything that the consumer does. It must return at once: `queuedObservations` is for slow ones. Default: none. */
  readonly observationSink?: ObservationSink | undefined
  /**
   * How many messages are worked on at once, which is also the prefetch: 1 to 65,535. Default: the topology's
   * `prefetch_count`, which is 1 unless it says otherwise; of a workflow stage its `max_inflight` goes before that.
   */
  readonly concurrency?: number | undefined
  /**
   * How long messages in work may go on when the consumer stops; then their handlers are interrupted, and the messages
   * return to their queue. 0: at once. Default: 10 seconds; of the `AggregationWorkerRuntime` 5 seconds.
   */
  readonly stopWithin?: Duration.Input | undefined
  /** The pause after an error of the consumer itself, in seconds: more than 0, at most a day. Default: 2. */
  readonly idleRetrySeconds?: number | undefined
  /** With no place free and nothing settled for so long, a warning names the messages. Default: 1 minute. */
  readonly stalledAfter?: Duration.Input | undefined
  /** Arguments of the subscription, such as `{ "x-priority": 10 }`. Default: none. */
  readonly consumeArguments?: Fields | undefined
  /**
   * The consumer's name in observations, lineage and the log. Default: `svc-task-consumer`, `svc-workflow-consumer`,
   * `svc-aggregation-consumer`, or `svc-aggregation-worker-<n>` of the `AggregationWorkerRuntime`.
   */
  readonly consumerName?: string | undefined
}

/** What is wrong with them. `handleWithin`: of consumers that have one. */
export const validate = (
  consumer: string,
  options: ConsumerOptions & { readonly handleWithin?: Duration.Input | undefined }
): SettingsError | undefined => {
  const findings = new ValidationIssues()
  findings.checkInteger("concurrency", options.concurrency, 1, 65_535)
  checkSeconds("consumeTimeoutSeconds", options.consumeTimeoutSeconds ?? undefined, findings)
  checkSeconds("idleRetrySeconds", options.idleRetrySeconds, findings)
  checkDuration("stopWithin", options.stopWithin, findings, "zero")
  checkDuration("stalledAfter", options.stalledAfter, findings)
  checkDuration("handleWithin", options.handleWithin, findings)
  checkPriority(options.consumeArguments, findings)
  if (options.consumerName !== undefined) findings.checkKey("consumerName", options.consumerName)
  return findings.mistakes.length > 0 ? SettingsError.of(consumer, findings.mistakes) : undefined
}

/** What of them is the loop's. */
export const loopOptions = (options: ConsumerOptions) =>
  ({
    ...(options.consumeArguments && { arguments: options.consumeArguments }),
    consumeTimeoutSeconds: options.consumeTimeoutSeconds,
    idleRetrySeconds: options.idleRetrySeconds,
    stopWithin: options.stopWithin,
    stalledAfter: options.stalledAfter
  }) satisfies Partial<DeliveryLoop.Options<never>>

/** What a worker declares: its own inbox, also where its client declares no queues, or somebody has deleted it since. */
export const inboxDeclarations = ({ bindings, exchanges, queues }: Topology, inbox: string): Declarations => ({
  exchanges,
  queues: queues.filter(({ name }) => name === inbox),
  bindings: bindings.filter(({ queue }) => queue === inbox)
})

const checkSeconds = (field: string, value: number | undefined, findings: ValidationIssues): void => {
  if (value !== undefined && !(value > 0 && value <= 86_400)) {
    findings.addMistake(field, "must be more than 0 and at most a day, in seconds")
  }
}

/** The broker refuses the subscription for it, again and again. */
export const checkPriority = (consumeArguments: Fields | undefined, findings: ValidationIssues): void => {
  const given = consumeArguments?.["x-priority"]
  if (given !== undefined && !(typeof given === "number" && Number.isInteger(given))) {
    findings.addMistake("consumeArguments.x-priority", "must be an integer")
  }
}

export const checkDuration = (
  field: string,
  given: Duration.Input | undefined,
  findings: ValidationIssues,
  least?: "zero"
): void => {
  if (given === undefined) return
  // Effect takes what is not a number for zero
  const found = Number.isNaN(given) ? Option.none() : Duration.fromInput(given)
  if (Option.isNone(found)) findings.addMistake(field, 'must be a duration, such as "10 seconds"')
  else if (least === undefined && !Duration.isPositive(found.value))
    findings.addMistake(field, "must be more than nothing")
}
