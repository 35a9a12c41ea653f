import { Context, type Effect, type Option, type Scope, type Stream } from "effect"
import type { PublishedStatus } from "../../messaging/envelope/StatusEvent.ts"
import type { RedisError } from "../../services/Redis.ts"
import type { StatusFacts } from "./TaskEnd.ts"

/** A stored status event. */
export interface StoredStatus extends StatusFacts {
  /** The position in the task's history, in the order of storing. The first position is 1. There are no gaps. */
  readonly sequence: number
  readonly eventId: string
  /** The JSON of the event, with canonical field names. */
  readonly json: string
}

/** The stored events of a task, oldest first. */
export interface StatusHistory {
  readonly events: ReadonlyArray<StoredStatus>
  /** The sequence number of the newest event that was ever stored. 0 if there is none. */
  readonly newest: number
  /** The sequence number of the oldest event that is still stored. 0 if there is none. */
  readonly oldest: number
}

export interface HistoryOptions {
  /** Returns only events with a higher sequence number. */
  readonly after?: number
  /** Returns only this many of the newest events. */
  readonly limit?: number
  /**
   * Returns only the oldest of the selected events: at most `events`, until their JSON exceeds `bytes`. The first two
   * events are always returned.
   */
  readonly atMost?: { readonly events: number; readonly bytes: number }
}

/** Stores the latest status events of every task. All readers see the same events in the same order. */
export class StatusStore extends Context.Service<
  StatusStore,
  {
    /** Stores an event. Returns `duplicate`, and changes nothing, if the task has an event with this id already. */
    readonly store: (event: PublishedStatus) => Effect.Effect<"stored" | "duplicate", RedisError>

    /** Returns the newest stored event of a task, if any. */
    readonly latest: (taskId: string) => Effect.Effect<StoredStatus | undefined, RedisError>

    /** Returns the stored events of a task. Default: all of them. */
    readonly history: (taskId: string, options?: HistoryOptions) => Effect.Effect<StatusHistory, RedisError>

    /** Returns the sorted ids of the child tasks. A child has an event whose `meta.parent_task_id` is the parent. */
    readonly childTaskIds: (
      parentTaskId: string,
      options?: { readonly limit?: number }
    ) => Effect.Effect<ReadonlyArray<string>, RedisError>

    /**
     * Subscribes to the events of a task. The stream contains every event that is stored after this effect has
     * succeeded. It fails if an event may be missing. `None` stands for a message on the channel that is not an event.
     */
    readonly live: (
      taskId: string
    ) => Effect.Effect<Stream.Stream<Option.Option<StoredStatus>, RedisError>, RedisError, Scope.Scope>
  }
>()("svc/StatusStore") {}
