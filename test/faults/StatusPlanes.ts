import { Schema } from "effect"
import { shared } from "../messaging/SampleTopologies.ts"

/** What the replicas of a run with faults, their publishers and their judge agree upon. */

export const Plane = Schema.Literals(["stream", "classic", "quorum"])
export type Plane = typeof Plane.Type

export const ReplicaOptions = Schema.Struct({
  rabbitmq: Schema.String,
  redis: Schema.String,
  port: Schema.Int,
  plane: Plane,
  /** The store's `history_maxlen`. */
  kept: Schema.Int
})
export type ReplicaOptions = typeof ReplicaOptions.Type

export const prefix = "svc-test:"

export const topologyOf = (plane: Plane) =>
  shared({
    status_use_streams: plane === "stream",
    ...(plane === "quorum" && { status_queue_arguments_overrides: { "x-queue-type": "quorum" } })
  })
