import { Duration, Effect } from "effect"
import type { Broker, BrokerError } from "../../services/Broker.ts"
import * as BrokerCapabilities from "../topology/BrokerCapabilities.ts"
import type { QueueFamily } from "../topology/Parameters.ts"

/** RabbitMQ's own, where a queue names none. */
const brokerDefault = Duration.minutes(30)

/**
 * The broker takes a delivery that is not settled in time for lost: it closes the channel, and delivers everything on it
 * again, for ever if need be. A sentence where the handlers' own timeout does not come first; none where it does, and
 * where nobody has set anything, since most handlers end within half an hour.
 */
export const warning = (
  { arguments: declared, queueType }: Pick<QueueFamily, "arguments" | "queueType">,
  version: string,
  handleWithin: Duration.Duration | undefined
): string | undefined => {
  const configuredMs = declared["x-consumer-timeout"]
  const isEnforced = enforcesTimeout(queueType, BrokerCapabilities.of(version))
  if (handleWithin === undefined) {
    return isEnforced && typeof configuredMs === "number"
      ? `The broker takes deliveries back after ${configuredMs} ms, and nothing ends a handler before: set handleWithin below it.`
      : undefined
  }
  const limit = isEnforced && typeof configuredMs === "number" ? Duration.millis(configuredMs) : brokerDefault
  return Duration.isGreaterThanOrEqualTo(handleWithin, limit)
    ? `Handlers may take ${Duration.format(handleWithin)}, and the broker takes deliveries back after ${Duration.format(limit)}: set handleWithin below it, or the broker's consumer timeout above.`
    : undefined
}

/** Says it once, for the preparation of a consumer. */
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
