import type { Field, Fields, Queue } from "../../../src/services/Broker.ts"
import type { Consumer } from "./Consumers.ts"
import type { DeathReason } from "./DeadLetters.ts"
import type { Message } from "./Message.ts"
import type { Entry } from "./ReadyMessages.ts"

export interface QueueHost {
  readonly now: () => number
  /** Calls the queue's `onTimer` at `time`; `undefined` cancels. */
  readonly wakeAt: (queue: LiveQueue, time: number | undefined) => void
  /** Runs after the current change, so that a queue is never entered while it changes. */
  readonly deadLetter: (message: Message, cause: DeathReason, queue: LiveQueue) => void
  /** Called when the queue expires, or loses its last consumer. */
  readonly deleteQueue: (queue: LiveQueue) => void
  /** Adds to the bytes that the broker addHeldBytes; negative when they are released. */
  readonly addHeldBytes: (bytes: number) => void
}

export interface LiveQueue {
  readonly declared: Queue
  readonly messages: number
  readonly consumers: number
  /** Called when the queue is declared again. */
  readonly markUsed: () => void
  readonly enqueue: (message: Message) => boolean
  readonly get: () => Entry | undefined
  readonly checkConsumer: (prefetch: number, streamOffset: Field | undefined) => void
  readonly consume: (consumer: Consumer) => void
  readonly cancel: (consumer: Consumer) => void
  readonly settle: (entry: Entry, how: "ack" | "requeue" | "reject", consumer: Consumer | undefined) => void
  /** Called with the consumers and unsettled deliveries of a closed channel. */
  readonly onChannelClosed: (consumers: ReadonlyArray<Consumer>, unsettled: ReadonlyArray<Entry>) => void
  /** Headers that are added to this delivery only. */
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
