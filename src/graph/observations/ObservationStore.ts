import { Context, type Effect } from "effect"
import type { Observed } from "../../messaging/observe/Observation.ts"
import type { RedisError } from "../../services/Redis.ts"

export interface StoredObservation {
  /** The position among the observations of its task. It starts at 1 and has no gaps. */
  readonly sequence: number
  /** The JSON of the observation, as `Observation.encode` writes it. */
  readonly json: string
}

/** The stored observations of a task, oldest first. */
export interface ObservationHistory {
  readonly events: ReadonlyArray<StoredObservation>
  /** The sequence number of the oldest stored observation. 0: none is stored. Above 1: older ones were removed. */
  readonly oldest: number
}

/** Stores the latest observations of each task, without duplicates. */
export class ObservationStore extends Context.Service<
  ObservationStore,
  {
    /** Stores an observation. `ignored`: it has no task id. `duplicate`: an equal observation is already stored. */
    readonly store: (observation: Observed) => Effect.Effect<"stored" | "duplicate" | "ignored", RedisError>

    readonly history: (taskId: string) => Effect.Effect<ObservationHistory, RedisError>
  }
>()("svc/ObservationStore") {}
