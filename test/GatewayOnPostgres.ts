import { Effect, Redacted } from "effect"
import * as RunningGateway from "./RunningGateway.ts"
import * as TemporaryDatabase from "./TemporaryDatabase.ts"

/**
 * The same program with a database of its own in PostgreSQL, if there is one, for tests that are not about the embedded
 * one: it starts with half the work.
 */
export const start = Effect.fnUntraced(function* (options: RunningGateway.Options) {
  if (TemporaryDatabase.server === null) return yield* RunningGateway.start(options)
  const url = yield* Effect.orDie(TemporaryDatabase.migrated)
  const environment = { DATABASE_URL: Redacted.value(url), ...options.environment }
  return yield* RunningGateway.start({ ...options, environment })
})
