import { Context, type DateTime, type Effect } from "effect"
import type { FindableKind, Found } from "../api/FindApi.ts"
import type { Scope } from "../api/schema/Security.ts"

/** Finds things of one kind by their exact id. */
export interface FindSource {
  readonly kind: FindableKind
  /** One of the scopes is enough. */
  readonly scopes: ReadonlyArray<Scope>
  readonly find: (id: string) => Effect.Effect<ReadonlyArray<Omit<Found, "kind">>, unknown>
  /** The time of the oldest thing that is kept. `null`: all are kept, or the store does not say. */
  readonly since: Effect.Effect<DateTime.Utc | null, unknown>
}

/** The sources of a process that has tasks. */
export const TaskSources = Context.Reference<ReadonlyArray<FindSource>>("svc/control/TaskSources", {
  defaultValue: () => []
})
