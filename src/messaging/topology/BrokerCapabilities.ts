/** A RabbitMQ release as major × 100 + minor: 3.10 is 310. */
export type Release = number

/** The relevant differences between RabbitMQ 3.10 and 4.x. */
export interface BrokerCapabilities {
  readonly version: string
  readonly release: Release
  /**
   * Priorities of quorum queues, which never accept `x-max-priority`. `two`: messages with priority 5 or more precede
   * the others. `strict32`: 0 to 31, and 4 for messages without a priority.
   */
  readonly quorumPriority: "none" | "two" | "strict32"
  /** The queue types that enforce `x-consumer-timeout`. Others accept it without effect. */
  readonly consumerTimeout: "none" | "classic_and_quorum" | "quorum"
  /** How often a quorum queue redelivers a message before it dead-letters it. `undefined`: without limit. */
  readonly deliveryLimitDefault: number | undefined
  /** Streams, and at-least-once dead-lettering of quorum queues. */
  readonly streams: "by_feature_flag" | "always"
  readonly delayedRetry: boolean
}

/** The releases whose rules differ from those of the previous release. */
export const releases: ReadonlyArray<Release> = [310, 311, 312, 313, 400, 401, 402, 403]

/** Returns `undefined` for an invalid version, and for releases before 3.10, which are not supported. */
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
 * Converts a task priority from 0 to `maximum` to an AMQP priority. Classic queues use it as it is. Quorum queues have
 * fewer levels; the order is preserved. Returns `undefined` if the queue has no priorities.
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
