import { Duration, Option } from "effect"
import type { Declarations, Fields } from "../services/Broker.ts"
import type { ContractAliasConfig } from "./Aliases.ts"
import type { DeadLetterSink } from "./DeadLetter.ts"
import type * as DeliveryLoop from "./DeliveryLoop.ts"
import { SettingsError } from "./Errors.ts"
import type { ObservationSink } from "./ObservationSink.ts"
import { Findings } from "./Parameters.ts"
import type { RetryPolicy } from "./RetryPolicy.ts"
import type { RetryStatusConfig } from "./StatusSettings.ts"
import type { Topology } from "./Topology.ts"

/** What can be said of every consumer. */
export interface ConsumerOptions {
  /** Default: none. What fails is rejected then, to the dead-letter exchange of the queue or to nowhere. */
  readonly retryPolicy?: RetryPolicy
  /** Told of every dead letter, once it is safe in its queue. Without a retry policy there are none. */
  readonly dlqStore?: DeadLetterSink
  /** Default: not enabled. */
  readonly retryStatuses?: RetryStatusConfig
  /**
   * How long the queue may be silent, in seconds, before the consumer makes sure that the broker still serves it. `null`:
   * it never does. Default: 1.
   */
  readonly consumeTimeoutSeconds?: number | null
  /** Default: the client's. */
  readonly aliasConfig?: ContractAliasConfig
  readonly observationSink?: ObservationSink
  /** How many messages are worked on at once: 1 to 65,535. Default: the topology's `prefetch_count`. */
  readonly concurrency?: number
  /** For messages that are worked on when the consumer stops; then they are interrupted and return. Default: 10 seconds. */
  readonly stopWithin?: Duration.Input
  /** The pause after an error of the consumer itself, in seconds. Default: 2. */
  readonly idleRetrySeconds?: number
  /** With no place free and nothing settled for so long, a warning names the messages. Default: 1 minute. */
  readonly stalledAfter?: Duration.Input
  /** Of the subscription, such as `x-priority`. */
  readonly consumeArguments?: Fields
  /** In observations, lineage and the log. */
  readonly consumerName?: string
}

/** What is wrong with them. `handleWithin`: of consumers that have one. */
export const refusal = (
  consumer: string,
  options: ConsumerOptions & { readonly handleWithin?: Duration.Input }
): SettingsError | undefined => {
  const findings = new Findings()
  findings.integer("concurrency", options.concurrency, 1, 65_535)
  seconds("consumeTimeoutSeconds", options.consumeTimeoutSeconds ?? undefined, findings)
  seconds("idleRetrySeconds", options.idleRetrySeconds, findings)
  duration("stopWithin", options.stopWithin, findings, "zero")
  duration("stalledAfter", options.stalledAfter, findings)
  duration("handleWithin", options.handleWithin, findings)
  if (options.consumerName !== undefined) findings.key("consumerName", options.consumerName)
  return findings.mistakes.length > 0 ? SettingsError.of(consumer, findings.mistakes) : undefined
}

/** What of them is the loop's. */
export const ofLoop = (options: ConsumerOptions) =>
  ({
    ...(options.consumeArguments && { arguments: options.consumeArguments }),
    consumeTimeoutSeconds: options.consumeTimeoutSeconds,
    idleRetrySeconds: options.idleRetrySeconds,
    stopWithin: options.stopWithin,
    stalledAfter: options.stalledAfter
  }) satisfies Partial<DeliveryLoop.Options<never>>

/** What a worker declares: its own inbox, also where its client declares no queues, or somebody has deleted it since. */
export const inboxOf = ({ bindings, exchanges, queues }: Topology, inbox: string): Declarations => ({
  exchanges,
  queues: queues.filter(({ name }) => name === inbox),
  bindings: bindings.filter(({ queue }) => queue === inbox)
})

const seconds = (field: string, value: number | undefined, findings: Findings): void => {
  if (value !== undefined && !(value > 0 && value <= 86_400)) {
    findings.mistake(field, "must be more than 0 and at most a day, in seconds")
  }
}

const duration = (field: string, given: Duration.Input | undefined, findings: Findings, least?: "zero"): void => {
  if (given === undefined) return
  // Effect takes what is not a number for zero
  const found = Number.isNaN(given) ? Option.none() : Duration.fromInput(given)
  if (Option.isNone(found)) findings.mistake(field, 'must be a duration, such as "10 seconds"')
  else if (least === undefined && !Duration.isPositive(found.value))
    findings.mistake(field, "must be more than nothing")
}
