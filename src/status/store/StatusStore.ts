import { Context, type Effect, type Option, type Scope, type Stream } from "effect"
import type { PublishedStatus } from "../../messaging/envelope/StatusEvent.ts"
import type { RedisError } from "../../services/Redis.ts"
import type { StatusFacts } from "./TaskEnd.ts"

/** A status event as it is kept. */
export interface StoredStatus extends StatusFacts {
  /** Its place among the events of its task: from 1, without a gap, in the order of storing. */
  readonly sequence: number
  readonly eventId: string
  /** The event itself, with canonical names. */
  readonly json: string
}

/** What is kept of a task, oldest first. */
export interface StatusHistory {
  readonly events: ReadonlyArray<StoredStatus>
  /** Of the newest event that was ever stored; 0 without any. */
  readonly newest: number
  /** Of the oldest event that is still kept; 0 without any. Events before it are gone. */
  readonly oldest: number
}

export interface HistoryOptions {
  /** Only events behind this sequence. */
  readonly after?: number
  /** Only the newest so many. */
  readonly limit?: number
  /** Of these, only so many of the oldest, and none behind those that have so many bytes; but two however large. */
  readonly atMost?: { readonly events: number; readonly bytes: number }
}

/** Every task's recent status events, each once, in one order that all readers share. */
export class StatusStore extends Context.Service<
  StatusStore,
  {
    /** `duplicate`: an event of this task with this id was stored before; nothing was changed, and nobody is told. */
    readonly store: (event: PublishedStatus) => Effect.Effect<"stored" | "duplicate", RedisError>

    /** The last that was stored, if any is kept. */
    readonly latest: (taskId: string) => Effect.Effect<StoredStatus | undefined, RedisError>

    /** Default: all that is kept. */
    readonly history: (taskId: string, options?: HistoryOptions) => Effect.Effect<StatusHistory, RedisError>

    /** The tasks whose events named this one as `meta.parent_task_id`, sorted. */
    readonly childTaskIds: (
      parentTaskId: string,
      options?: { readonly limit?: number }
    ) => Effect.Effect<ReadonlyArray<string>, RedisError>

    /**
     * Events from now on: listening when the effect succeeds. The stream fails when it may have missed one. None: somebody
     * published there what is no event.
     */
    readonly live: (
      taskId: string
    ) => Effect.Effect<Stream.Stream<Option.Option<StoredStatus>, RedisError>, RedisError, Scope.Scope>
  }
>()("svc/StatusStore") {}
