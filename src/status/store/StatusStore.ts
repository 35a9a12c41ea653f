import { Context, type Effect, type Option, type Scope, type Stream } from "effect"
import type { PublishedStatus } from "../../messaging/envelope/StatusEvent.ts"
import type { RedisError } from "../../services/Redis.ts"
import type { StatusFacts } from "./TaskEnd.ts"

/** A stored status event. */
export interface StoredStatus extends StatusFacts {
  /** Position among the task's events: starts at 1, has no gaps, and follows the order of storing. */
  readonly sequence: number
  readonly eventId: string
  /** The event as JSON, with canonical field names. */
  readonly json: string
}

/** The stored events of a task, oldest first. */
export interface StatusHistory {
  readonly events: ReadonlyArray<StoredStatus>
  /** Sequence of the newest event ever stored; 0 if there is none. */
  readonly newest: number
  /** Sequence of the oldest event still stored; 0 if there is none. Earlier events were trimmed. */
  readonly oldest: number
}

export interface HistoryOptions {
  /** Returns only events after this sequence. */
  readonly after?: number
  /** Returns only this many of the newest events. */
  readonly limit?: number
  /**
   * Returns only the oldest of the selected events: up to `events` of them, and none after their sizes exceed `bytes`.
   * The first two are returned whatever their size.
   */
  readonly atMost?: { readonly events: number; readonly bytes: number }
}

/** Recent status events of every task. Each event is stored once, in one order that all readers share. */
export class StatusStore extends Context.Service<
  StatusStore,
  {
    /**
     * Stores an event. Returns `duplicate`, and changes and publishes nothing, if an event of this task with this id
     * was stored before.
     */
    readonly store: (event: PublishedStatus) => Effect.Effect<"stored" | "duplicate", RedisError>

    /** The newest stored event of a task, if any. */
    readonly latest: (taskId: string) => Effect.Effect<StoredStatus | undefined, RedisError>

    /** The stored events of a task. Default: all of them. */
    readonly history: (taskId: string, options?: HistoryOptions) => Effect.Effect<StatusHistory, RedisError>

    /** Ids of the tasks whose events have this task as `meta.parent_task_id`, sorted. */
    readonly childTaskIds: (
      parentTaskId: string,
      options?: { readonly limit?: number }
    ) => Effect.Effect<ReadonlyArray<string>, RedisError>

    /**
     * Subscribes to the events of a task. Once the effect succeeds, no later event is missed: the stream fails if one
     * may have been. `None` stands for a message on the channel that is not an event.
     */
    readonly live: (
      taskId: string
    ) => Effect.Effect<Stream.Stream<Option.Option<StoredStatus>, RedisError>, RedisError, Scope.Scope>
  }
>()("svc/StatusStore") {}
