import type { QueueView } from "../../api/TaskTypes.ts"

/** A queue as the board shows it. */
export interface BoardRow extends QueueView {
  /** The task that runs for the longest time on it, as its workers say. */
  readonly longest: { readonly task_id: string; readonly started_at: string } | undefined
  /** The messages in its dead-letter queue that wait for somebody, and those that were replayed or archived. */
  readonly open: number | null
  readonly settled: number
}
