import { Context, type Effect } from "effect"
import type { Observed } from "../messaging/observe/Observation.ts"
import type { RedisError } from "../services/Redis.ts"

/** An observation as it is kept. */
export interface StoredObservation {
  /** Its place among the observations of its task: from 1, without a gap, in the order of storing. */
  readonly sequence: number
  /** The observation itself, as `Observation.encode` writes it. */
  readonly json: string
}

/** What is kept of a task, oldest first. */
export interface ObservationHistory {
  readonly events: ReadonlyArray<StoredObservation>
  /** Of the oldest that is still kept; 0 without any. More than 1: those before it were trimmed. */
  readonly oldest: number
}

/** What workers observed of each task, each once, bounded in number and age. */
export class ObservationStore extends Context.Service<
  ObservationStore,
  {
    /** `ignored`: it belongs to no task. `duplicate`: the very same is kept already. */
    readonly store: (observation: Observed) => Effect.Effect<"stored" | "duplicate" | "ignored", RedisError>

    readonly history: (taskId: string) => Effect.Effect<ObservationHistory, RedisError>
  }
>()("svc/ObservationStore") {}
