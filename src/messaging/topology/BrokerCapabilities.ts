/** A release of RabbitMQ as major × 100 + minor: 3.10 is 310. */
export type Release = number

/** What differs between the releases that this library works with, 3.10 to 4.x, in the points that it touches. */
export interface BrokerCapabilities {
  readonly version: string
  readonly release: Release
  /**
   * Of quorum queues, which never take `x-max-priority`. `two`: messages from priority 5 on go before the others.
   * `strict32`: 0 to 31, and 4 for messages that name none.
   */
  readonly quorumPriority: "none" | "two" | "strict32"
  /** Which queues act on `x-consumer-timeout`; the others take it and do nothing. */
  readonly consumerTimeout: "none" | "classic_and_quorum" | "quorum"
  /** How often a quorum queue delivers a message again before it dead-letters it; none: for ever. */
  readonly deliveryLimitDefault: number | undefined
  /** Whether there are streams, and quorum queues that dead-letter at least once. */
  readonly streams: "by_feature_flag" | "always"
  /** `x-delayed-retry-*` of quorum queues. */
  readonly delayedRetry: boolean
}

/** Every release whose rules differ from the one before it. */
export const releases: ReadonlyArray<Release> = [310, 311, 312, 313, 400, 401, 402, 403]

/** `undefined` for what is no version, and for releases before 3.10, which this library does not work with. */
export const of = (version: string): BrokerCapabilities | undefined => {
  const found = /^(\d{1,3})\.(\d{1,2})(?:[.+-]|$)/.exec(version.trim())
  const release = found === null ? 0 : Number(found[1]) * 100 + Number(found[2])
  if (release < 310) return undefined
  return {
    version,
    release,
    quorumPriority: release >= 403 ? "strict32" : release >= 400 ? "two" : "none",
    consumerTimeout: release >= 403 ? "quorum" : release >= 312 ? "classic_and_quorum" : "none",
    deliveryLimitDefault: release >= 400 ? 20 : undefined,
    streams: release >= 312 ? "always" : "by_feature_flag",
    delayedRetry: release >= 403
  }
}

/**
 * The AMQP priority for a priority of 0 to `maximum` on a queue of that type. Classic queues take it as it is; quorum
 * queues have fewer steps, and the order of the steps is kept. `undefined`: the queue knows no priorities.
 */
export const amqpPriority = (
  priority: number,
  maximum: number,
  queueType: "classic" | "quorum",
  { quorumPriority }: BrokerCapabilities
): number | undefined => {
  if (queueType === "classic") return priority
  switch (quorumPriority) {
    case "none":
      return undefined
    case "two":
      return priority * 2 > maximum ? 5 : 0
    case "strict32":
      return maximum <= 31 ? priority : Math.floor((priority * 31) / maximum)
  }
}
