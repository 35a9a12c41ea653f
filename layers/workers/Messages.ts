import { Schema } from "effect"

/** What a worker sends to its supervisor, over the channel that Node opens between the two processes. */
export const FromWorker = Schema.TaggedUnion({
  /** All listeners of the worker are open. */
  Ready: {},
  /** A line for the operator, such as the address of a listener. All workers may send the same line. */
  Announced: { line: Schema.String },
  /** The worker cannot start or continue, and ends. */
  Failed: { sentence: Schema.String },
  /** The worker runs: it sends this at its start, and in response to the question of this name. */
  Alive: {},
  /** The responses to the questions of the same names. */
  Readiness: {
    status: Schema.Literals(["ready", "degraded", "not_ready"]),
    checks: Schema.Record(Schema.String, Schema.String)
  },
  Metrics: { page: Schema.String }
})
export type FromWorker = typeof FromWorker.Type

/** What the supervisor sends to a worker. It sends a question again only after the response. */
export const ToWorker = Schema.TaggedUnion({
  Alive: {},
  /** Workers answer this and the next question once all their listeners are open. */
  Readiness: {},
  Metrics: {},
  /** Another worker serves new connections from now on. */
  Retire: {}
})
export type ToWorker = typeof ToWorker.Type
