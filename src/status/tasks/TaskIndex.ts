import { Context, type Effect, Schema } from "effect"
import type { IndexedTask, TaskChange } from "./IndexedTask.ts"

/** The store of the index did not respond, or refused a statement. */
export class TaskIndexError extends Schema.TaggedError<TaskIndexError>()("TaskIndexError", {
  cause: Schema.Defect()
}) {
  override get message() {
    return this.cause instanceof Error ? this.cause.message : String(this.cause)
  }
}

export interface TaskFilter {
  /** A part of the id, of the message or of the error class. Not case-sensitive. */
  readonly q?: string | undefined
  readonly status?: string | undefined
  readonly task_type?: string | undefined
  readonly queue?: string | undefined
  readonly worker?: string | undefined
  readonly parent_id?: string | undefined
  readonly error_class?: string | undefined
  readonly attributes?: Readonly<Record<string, string>> | undefined
  /** False: tasks that have not ended. True: those that have. */
  readonly ended?: boolean | undefined
  /** Limits of the time of the latest status, in microseconds since 1970. `since` is included, `until` is not. */
  readonly since?: number | undefined
  readonly until?: number | undefined
}

/** The last task of a page. Tasks are sorted by the time of their latest status, newest first, then by id. */
export interface TaskPosition {
  readonly micros: number
  readonly id: string
}

/** How far a search looked. A search looks at the newest tasks that its strongest filter selects, up to a bound. */
export interface Looked {
  /** True if no further task can match. */
  readonly complete: boolean
  /** The time of the oldest task that was looked at. `undefined` if there was none. */
  readonly backTo: number | undefined
}

export interface TaskPage {
  readonly tasks: ReadonlyArray<IndexedTask>
  /** The next page starts after it. A search that is not complete continues there. */
  readonly next: TaskPosition | undefined
  readonly looked: Looked
}

export interface StatusCount {
  readonly status: string
  readonly count: number
  /** True if there may be more. */
  readonly at_least: boolean
}

export interface TaskCounts {
  readonly counts: ReadonlyArray<StatusCount>
  readonly looked: Looked
}

/** The bounds of an index. */
export interface Kept {
  readonly store: "postgresql" | "redis"
  /** The maximum number of tasks that one list or count looks at. */
  readonly looksAtMost: number
  /** The maximum number of tasks. `null`: no limit. The tasks without a status for the longest time are removed. */
  readonly tasksAtMost: number | null
  readonly days: number
}

/** A status count is exact up to this number. */
export const exactUpTo = 10_000

/** A position in a source of statuses, which is stored together with the tasks up to it. */
export interface Progress {
  readonly source: string
  readonly position: string
}

/** Finds tasks by what their statuses say. */
export class TaskIndex extends Context.Service<
  TaskIndex,
  {
    readonly kept: Kept
    /** Adds changes of different tasks, and stores the progress with them. Idempotent, in any order. */
    readonly record: (
      changes: ReadonlyArray<TaskChange>,
      progress?: Progress | undefined
    ) => Effect.Effect<void, TaskIndexError>
    readonly progress: (source: string) => Effect.Effect<string | undefined, TaskIndexError>
    readonly get: (taskId: string) => Effect.Effect<IndexedTask | undefined, TaskIndexError>
    readonly list: (
      filter: TaskFilter,
      page: { readonly limit: number; readonly after?: TaskPosition | undefined }
    ) => Effect.Effect<TaskPage, TaskIndexError>
    readonly counts: (filter: TaskFilter) => Effect.Effect<TaskCounts, TaskIndexError>
    /** Removes tasks that the index does not keep any longer. Returns their number. */
    readonly trim: Effect.Effect<number, TaskIndexError>
  }
>()("svc/status/TaskIndex") {}
