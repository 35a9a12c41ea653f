import type { Field, Fields, Queue } from "../../../src/services/Broker.ts"
import type { Change } from "./Changes.ts"
import type { Consumer } from "./Consumers.ts"
import type { DeathReason } from "./DeadLetters.ts"
import type { Message } from "./Message.ts"
import type { Entry } from "./ReadyMessages.ts"

export interface QueueHost {
  readonly now: () => number
  /** Calls `queue.onTimer()` at `time`. `undefined` cancels the call. */
  readonly wakeAt: (queue: LiveQueue, time: number | undefined) => void
  /** Publishes the dead letter after the current change, because the target may be the queue that is changing. */
  readonly deadLetter: (message: Message, cause: DeathReason, queue: LiveQueue) => void
  readonly deleteQueue: (queue: LiveQueue) => void
  /** Reports that messages take more memory, or less if `bytes` is negative. */
  readonly addHeldBytes: (bytes: number) => void
  /** Keeps a change for the next start. `undefined` if this broker loses everything at exit. */
  readonly record: ((change: Change) => void) | undefined
}

export interface LiveQueue {
  readonly declared: Queue
  readonly messages: number
  readonly consumers: number
  /** Postpones the expiry of an unused queue. A repeated declaration counts as a use. */
  readonly markUsed: () => void
  readonly enqueue: (message: Message) => boolean
  readonly get: () => Entry | undefined
  readonly checkConsumer: (prefetch: number, streamOffset: Field | undefined) => void
  readonly consume: (consumer: Consumer) => void
  readonly cancel: (consumer: Consumer) => void
  readonly settle: (entry: Entry, how: "ack" | "requeue" | "reject", consumer: Consumer | undefined) => void
  readonly onChannelClosed: (consumers: ReadonlyArray<Consumer>, unsettled: ReadonlyArray<Entry>) => void
  /** Headers that a delivery adds to those of the message. */
  readonly deliveryHeaders: (entry: Entry, how: "get" | "deliver") => Fields | undefined
  readonly onTimer: () => void
  readonly restart: () => void
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
