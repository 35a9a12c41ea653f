import type { Binding, Exchange, Queue } from "../../../src/services/Broker.ts"
import type { DeathReason } from "./DeadLetters.ts"
import type { Message } from "./Message.ts"
import type { Entry } from "./ReadyMessages.ts"

/** A message of a classic or quorum queue. */
export interface StoredEntry extends Readonly<Entry> {
  /** Whether a consumer has it. After a crash it returns to its queue. */
  readonly isDelivered: boolean
}

/** A message of a stream. */
export interface StoredOffset {
  readonly offset: number
  readonly time: number
  readonly message: Message
}

/** A dead letter that its target queues have not stored yet. */
export interface HeldDeadLetter {
  readonly id: number
  readonly cause: DeathReason
  readonly message: Message
}

/** A change of what survives a restart of the broker: durable exchanges, queues and bindings, and stored messages. */
export type Change =
  | readonly ["exchange", exchange: Exchange]
  | readonly ["exchange-deleted", name: string]
  | readonly ["queue", queue: Queue]
  | readonly ["queue-deleted", name: string]
  | readonly ["bound", binding: Binding]
  | readonly ["added", queue: string, entry: StoredEntry]
  | readonly ["delivered", queue: string, position: number]
  | readonly ["returned", queue: string, position: number, returnCount: number]
  | readonly ["removed", queue: string, position: number]
  | readonly ["appended", queue: string, stored: StoredOffset]
  | readonly ["trimmed", queue: string, firstOffset: number]
  | readonly ["held", queue: string, deadLetter: HeldDeadLetter]
  | readonly ["forwarded", queue: string, id: number]

/** The broker deletes exclusive queues when their connection ends, so they do not survive either. */
export const survivesRestart = ({ durable, exclusive }: Queue): boolean => durable !== false && exclusive !== true
