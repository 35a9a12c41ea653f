import { Context, type Effect } from "effect"
import type { Observed } from "../messaging/observe/Observation.ts"
import type { RedisError } from "../services/Redis.ts"

/** An observation in a store. */
export interface StoredObservation {
  /** Position among the observations of its task: from 1, without gaps, in storage order. */
  readonly sequence: number
  /** The observation as `Observation.encode` writes it. */
  readonly json: string
}

/** The stored observations of a task, oldest first. */
export interface ObservationHistory {
  readonly events: ReadonlyArray<StoredObservation>
  /**
   * Sequence of the oldest stored observation, or 0 without any. If it exceeds 1, earlier observations were trimmed.
   */
  readonly oldest: number
}

/** Stores the observations of each task without duplicates, limited in number and age. */
export class ObservationStore extends Context.Service<
  ObservationStore,
  {
    /** `ignored`: the observation belongs to no task. `duplicate`: an equal observation is already stored. */
    readonly store: (observation: Observed) => Effect.Effect<"stored" | "duplicate" | "ignored", RedisError>

    readonly history: (taskId: string) => Effect.Effect<ObservationHistory, RedisError>
  }
>()("svc/ObservationStore") {}
