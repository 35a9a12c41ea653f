import { Schema } from "effect"

export const IncompleteReason = Schema.Literals([
  /** The task is known, but has no observations. Its workers store none, or the observations have expired. */
  "observations_missing",
  "observation_history_trimmed",
  "status_history_trimmed",
  /** Some stored entries are neither observations nor status events. */
  "entries_unreadable",
  /** The task has more children than are shown. */
  "children_limit_reached",
  /** Some children are shown without their events, because the graph would otherwise be too large. */
  "evidence_limit_reached",
  "dead_letter_limit_reached"
])
export type IncompleteReason = typeof IncompleteReason.Type

/** A reason why a graph may be incomplete, and the sorted ids of the affected tasks. */
export const Incomplete = Schema.Struct({ reason: IncompleteReason, task_ids: Schema.Array(Schema.String) })
export type Incomplete = typeof Incomplete.Type

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
