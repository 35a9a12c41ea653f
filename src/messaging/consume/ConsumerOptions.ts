import { Duration, Option } from "effect"
import type { Declarations, Fields } from "../../services/Broker.ts"
import type { ConsumerControl, WorkControl } from "../control/WorkControl.ts"
import { SettingsError } from "../envelope/Errors.ts"
import type { FailureOptions } from "../failure/FailurePath.ts"
import type { ObservationSink } from "../observe/ObservationSink.ts"
import type { ContractAliasConfig } from "../topology/Aliases.ts"
import { ValidationIssues } from "../topology/Parameters.ts"
import type { Topology } from "../topology/Topology.ts"
import type * as DeliveryLoop from "./DeliveryLoop.ts"

/**
 * Options of all consumers. An option that is `undefined` has its default. A `Duration.Input` is a number of
 * milliseconds, a `Duration`, or a text such as "10 seconds".
 */
export interface ConsumerOptions extends FailureOptions {
  /**
   * After this many seconds without a message, the consumer checks that the broker still has its subscription. More
   * than 0 and at most 86,400. `null` disables the check. Default: 1.
   */
  readonly consumeTimeoutSeconds?: number | null | undefined
  /** Aliases of the top-level members of message bodies. Default: the client's `aliasConfig`. */
  readonly aliasConfig?: ContractAliasConfig | undefined
  /** Receives every observation synchronously. For a slow sink, use `queuedObservations`. Default:
   * `DefaultObservationSink`. */
  readonly observationSink?: ObservationSink | undefined
  /** Lets operators see, pause and cancel the work of this consumer. Default: `DefaultWorkControl`. */
  readonly workControl?: WorkControl | undefined
  /**
   * The maximum number of messages in progress, from 1 to 65,535. It is also the AMQP prefetch count. Default: the
   * `max_inflight` of a workflow stage, else the topology's `prefetch_count`, which defaults to 1.
   */
  readonly concurrency?: number | undefined
  /**
   * The time limit of running handlers after the consumer is stopped. Handlers that exceed the limit are interrupted,
   * and their messages return to the queue. 0 interrupts at once. Default: 10 seconds, or 5 seconds in an
   * `AggregationWorkerRuntime`.
   */
  readonly stopWithin?: Duration.Input | undefined
  /** The pause after an error outside the handler, in seconds. More than 0 and at most 86,400. Default: 2. */
  readonly idleRetrySeconds?: number | undefined
  /** If `concurrency` messages are in progress and none ends for this long, a warning names them. Default: 1 minute. */
  readonly stalledAfter?: Duration.Input | undefined
  /** Arguments of the AMQP subscription, such as `{ "x-priority": 10 }`. Default: none. */
  readonly consumeArguments?: Fields | undefined
  /**
   * The name of the consumer in observations, `meta.manual_retry` and the log. Default: `svc-task-consumer`,
   * `svc-workflow-consumer`, `svc-aggregation-consumer`, or `svc-aggregation-worker-<n>` in an
   * `AggregationWorkerRuntime`.
   */
  readonly consumerName?: string | undefined
}

export const validate = (
  consumer: string,
  options: ConsumerOptions & { readonly handleWithin?: Duration.Input | undefined }
): SettingsError | undefined => {
  const issues = new ValidationIssues()
  issues.checkInteger("concurrency", options.concurrency, 1, 65_535)
  checkSeconds("consumeTimeoutSeconds", options.consumeTimeoutSeconds ?? undefined, issues)
  checkSeconds("idleRetrySeconds", options.idleRetrySeconds, issues)
  checkDuration("stopWithin", options.stopWithin, issues, "zero")
  checkDuration("stalledAfter", options.stalledAfter, issues)
  checkDuration("handleWithin", options.handleWithin, issues)
  checkPriority(options.consumeArguments, issues)
  if (options.consumerName !== undefined) issues.checkKey("consumerName", options.consumerName)
  return issues.mistakes.length > 0 ? SettingsError.of(consumer, issues.mistakes) : undefined
}

export const loopOptions = (options: ConsumerOptions, control: ConsumerControl | undefined) =>
  ({
    ...(control !== undefined && { gate: control.gate, onSettled: control.onSettled }),
    ...(options.consumeArguments && { arguments: options.consumeArguments }),
    consumeTimeoutSeconds: options.consumeTimeoutSeconds,
    idleRetrySeconds: options.idleRetrySeconds,
    stopWithin: options.stopWithin,
    stalledAfter: options.stalledAfter
  }) satisfies Partial<DeliveryLoop.Options<never>>

/** Returns the declarations of the worker's own queue. A `publishOnly` client does not declare this queue. */
export const inboxDeclarations = ({ bindings, exchanges, queues }: Topology, inbox: string): Declarations => ({
  exchanges,
  queues: queues.filter(({ name }) => name === inbox),
  bindings: bindings.filter(({ queue }) => queue === inbox)
})

const checkSeconds = (field: string, value: number | undefined, issues: ValidationIssues): void => {
  if (value !== undefined && !(value > 0 && value <= 86_400)) {
    issues.addMistake(field, "must be more than 0 and at most 86400 seconds (one day)")
  }
}

/** RabbitMQ rejects a subscription with a non-integer `x-priority`. The consumer would then retry for ever. */
export const checkPriority = (consumeArguments: Fields | undefined, issues: ValidationIssues): void => {
  const given = consumeArguments?.["x-priority"]
  if (given !== undefined && !(typeof given === "number" && Number.isInteger(given))) {
    issues.addMistake("consumeArguments.x-priority", "must be an integer")
  }
}

export const checkDuration = (
  field: string,
  given: Duration.Input | undefined,
  issues: ValidationIssues,
  least?: "zero"
): void => {
  if (given === undefined) return
  const found = Number.isNaN(given) ? Option.none() : Duration.fromInput(given)
  if (Option.isNone(found)) issues.addMistake(field, 'must be a duration, such as "10 seconds"')
  else if (least === undefined && !Duration.isPositive(found.value)) issues.addMistake(field, "must be longer than 0")
}
