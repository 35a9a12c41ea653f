import type { Field, Fields, Queue } from "../../../src/services/Broker.ts"
import type { Consumer } from "./Consumers.ts"
import type { DeathReason } from "./DeadLetters.ts"
import type { Message } from "./Message.ts"
import type { Entry } from "./ReadyMessages.ts"

export interface QueueHost {
  readonly now: () => number
  /** Calls `onTimer` of the queue at `time`; `undefined` cancels the call. */
  readonly wakeAt: (queue: LiveQueue, time: number | undefined) => void
  /** The message is published after the current change, because the target may be a queue that is changing now. */
  readonly deadLetter: (message: Message, cause: DeathReason, queue: LiveQueue) => void
  readonly deleteQueue: (queue: LiveQueue) => void
  /** Reports that the messages of the queue take more bytes now, or fewer if the number is negative. */
  readonly addHeldBytes: (bytes: number) => void
}

export interface LiveQueue {
  readonly declared: Queue
  readonly messages: number
  readonly consumers: number
  /** A declaration of an existing queue counts as a use. */
  readonly markUsed: () => void
  readonly enqueue: (message: Message) => boolean
  readonly get: () => Entry | undefined
  readonly checkConsumer: (prefetch: number, streamOffset: Field | undefined) => void
  readonly consume: (consumer: Consumer) => void
  readonly cancel: (consumer: Consumer) => void
  readonly settle: (entry: Entry, how: "ack" | "requeue" | "reject", consumer: Consumer | undefined) => void
  readonly onChannelClosed: (consumers: ReadonlyArray<Consumer>, unsettled: ReadonlyArray<Entry>) => void
  /** Headers that this delivery has in addition to those of the message. */
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
