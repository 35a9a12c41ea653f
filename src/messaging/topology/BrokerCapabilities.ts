/** A RabbitMQ release as a number: major × 100 + minor. For example, 310 is RabbitMQ 3.10. */
export type Release = number

export interface BrokerCapabilities {
  readonly version: string
  readonly release: Release
  /** The priorities of quorum queues. `two`: normal (0 to 4) and high (5 or more). `strict32`: 0 to 31. */
  readonly quorumPriority: "none" | "two" | "strict32"
  readonly consumerTimeout: "none" | "classic_and_quorum" | "quorum"
  readonly streams: "by_feature_flag" | "always"
}

export const releases: ReadonlyArray<Release> = [310, 311, 312, 313, 400, 401, 402, 403]

/** Returns `undefined` if the version is invalid, or older than 3.10, the oldest supported release. */
export const of = (version: string): BrokerCapabilities | undefined => {
  const found = /^(\d{1,3})\.(\d{1,2})(?:[.+-]|$)/.exec(version.trim())
  const release = found === null ? 0 : Number(found[1]) * 100 + Number(found[2])
  if (release < 310) return undefined
  return {
    version,
    release,
    quorumPriority: release >= 403 ? "strict32" : release >= 400 ? "two" : "none",
    consumerTimeout: release >= 403 ? "quorum" : release >= 312 ? "classic_and_quorum" : "none",
    streams: release >= 312 ? "always" : "by_feature_flag"
  }
}

/** Converts a message priority to one that the queue supports. Returns `undefined` if the queue has no priorities. */
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
