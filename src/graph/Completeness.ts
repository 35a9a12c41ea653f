import { Schema } from "effect"

export const IncompleteReason = Schema.Literals([
  /** There is evidence of the task, and no observation: its workers keep none, or they have expired. */
  "observations_missing",
  "observation_history_trimmed",
  "status_history_trimmed",
  /** Entries that are no observation and no status event. */
  "entries_unreadable",
  /** The task has more children than are shown. */
  "children_limit_reached",
  /** The children named are shown without what happened to them: the evidence of all is too much for one graph. */
  "evidence_limit_reached",
  "dead_letter_limit_reached"
])
export type IncompleteReason = typeof IncompleteReason.Type

/** `task_ids`: whose evidence it is, sorted. */
export const Incomplete = Schema.Struct({ reason: IncompleteReason, task_ids: Schema.Array(Schema.String) })
export type Incomplete = typeof Incomplete.Type

/** Gathers why a graph may not show everything. */
export class IncompleteReasons {
  readonly #found = new Map<IncompleteReason, Set<string>>()

  add(reason: IncompleteReason, taskId: string): void {
    const taskIds = this.#found.get(reason) ?? new Set()
    this.#found.set(reason, taskIds.add(taskId))
  }

  reasons(): ReadonlyArray<Incomplete> {
    return IncompleteReason.literals.flatMap((reason) => {
      const taskIds = this.#found.get(reason)
      return taskIds === undefined ? [] : [{ reason, task_ids: [...taskIds].sort() }]
    })
  }
}
