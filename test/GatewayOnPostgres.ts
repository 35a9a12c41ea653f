import { Effect, Redacted } from "effect"
import * as RunningGateway from "./RunningGateway.ts"
import * as TemporaryDatabase from "./TemporaryDatabase.ts"

/**
 * Starts the program of `RunningGateway` with a database of its own in PostgreSQL, if there is one. That takes half the
 * work of a start with an embedded database, which a test that is about that database needs.
 */
export const start = Effect.fnUntraced(function* (options: RunningGateway.Options) {
  if (TemporaryDatabase.server === null) return yield* RunningGateway.start(options)
  const url = yield* Effect.orDie(TemporaryDatabase.migrated)
  const environment = { DATABASE_URL: Redacted.value(url), ...options.environment }
  return yield* RunningGateway.start({ ...options, environment })
})
