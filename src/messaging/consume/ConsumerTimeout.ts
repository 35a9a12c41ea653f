import { Duration, Effect } from "effect"
import type { Broker, BrokerError } from "../../services/Broker.ts"
import * as BrokerCapabilities from "../topology/BrokerCapabilities.ts"
import type { QueueFamily } from "../topology/Parameters.ts"

const brokerDefault = Duration.minutes(30)

/** Returns a warning if the broker's consumer timeout may redeliver a message whose handler is still running. */
export const warning = (
  { arguments: declared, queueType }: Pick<QueueFamily, "arguments" | "queueType">,
  version: string,
  handleWithin: Duration.Duration | undefined
): string | undefined => {
  const configuredMs = declared["x-consumer-timeout"]
  const isEnforced = enforcesTimeout(queueType, BrokerCapabilities.of(version))
  if (handleWithin === undefined) {
    return isEnforced && typeof configuredMs === "number"
      ? `Handlers have no time limit, but the broker redelivers a message that is not acknowledged within ${configuredMs} ms. Set a shorter time limit (handleWithin or timeout_seconds), or raise x-consumer-timeout of the queue.`
      : undefined
  }
  const limit = isEnforced && typeof configuredMs === "number" ? Duration.millis(configuredMs) : brokerDefault
  return Duration.isGreaterThanOrEqualTo(handleWithin, limit)
    ? `Handlers may take ${Duration.format(handleWithin)}, but the broker redelivers a message that is not acknowledged within ${Duration.format(limit)}. Set a shorter time limit (handleWithin or timeout_seconds), or raise the broker's consumer timeout.`
    : undefined
}

export const warnOnce = (
  broker: Broker["Service"],
  consumerName: string,
  family: Pick<QueueFamily, "arguments" | "queueType">,
  handleWithin: Duration.Duration | undefined
): Effect.Effect<void, BrokerError> => {
  let isWarned = false
  return Effect.gen(function* () {
    if (isWarned) return
    const { version } = yield* broker.server
    isWarned = true
    const sentence = warning(family, version, handleWithin)
    if (sentence !== undefined) yield* Effect.logWarning(`${consumerName}: ${sentence}`)
  })
}

const enforcesTimeout = (
  queueType: QueueFamily["queueType"],
  capabilities: BrokerCapabilities.BrokerCapabilities | undefined
): boolean => {
  switch (capabilities?.consumerTimeout) {
    case "classic_and_quorum":
      return true
    case "quorum":
      return queueType === "quorum"
    default:
      return false
  }
}
