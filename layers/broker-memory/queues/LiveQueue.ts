import type { Field, Fields, Queue } from "../../../src/services/Broker.ts"
import type { Consumer } from "./Consumers.ts"
import type { DeathReason } from "./DeadLetters.ts"
import type { Message } from "./Message.ts"
import type { Entry } from "./ReadyMessages.ts"

/** What a queue needs of the broker around it. */
export interface QueueHost {
  readonly now: () => number
  /** Calls `tick` at that time; `undefined`: not at all. */
  readonly wakeAt: (queue: LiveQueue, time: number | undefined) => void
  /** After the present step, so that a queue never meets itself while it is changing. */
  readonly deadLetter: (message: Message, cause: DeathReason, queue: LiveQueue) => void
  /** It has expired, or was left by its last consumer. */
  readonly deleteQueue: (queue: LiveQueue) => void
  /** Bytes that are held now, or no longer when negative. */
  readonly holds: (bytes: number) => void
}

/** A queue of whatever kind, as channels see it. */
export interface LiveQueue {
  readonly declared: Queue
  /** Ready for a consumer. */
  readonly messages: number
  readonly consumers: number
  /** Declared again. */
  readonly markUsed: () => void
  /** `false`: it does not take the message. */
  readonly enqueue: (message: Message) => boolean
  readonly get: () => Entry | undefined
  readonly checkConsumer: (prefetch: number, streamOffset: Field | undefined) => void
  readonly consume: (consumer: Consumer) => void
  readonly cancel: (consumer: Consumer) => void
  readonly settle: (entry: Entry, how: "ack" | "requeue" | "reject", consumer: Consumer | undefined) => void
  /** A channel is gone with these consumers and with what it had not settled. */
  readonly onChannelClosed: (consumers: ReadonlyArray<Consumer>, unsettled: ReadonlyArray<Entry>) => void
  /** Headers of this delivery alone. */
  readonly deliveryHeaders: (entry: Entry, how: "get" | "deliver") => Fields | undefined
  readonly onTimer: () => void
  /** Without what does not survive the broker's own end. */
  readonly restart: () => void
  /** Deleted: whoever consumes from it is told. */
  readonly close: () => void
}

export const integerArgument = (queue: Queue, name: string): number | undefined => {
  const value = queue.arguments?.[name]
  return typeof value === "number" || typeof value === "bigint" ? Number(value) : undefined
}

export const textArgument = (queue: Queue, name: string): string | undefined => {
  const value = queue.arguments?.[name]
  return typeof value === "string" ? value : undefined
}
