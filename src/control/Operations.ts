import { Effect } from "effect"
import { Lifecycle } from "../gateway/model/Lifecycle.ts"
import { Database } from "../services/Database.ts"
import { Redis } from "../services/Redis.ts"

const pingWithin = "1 second"

/** Whether this process can take work now: it is not draining, and the database and Redis answer in time. */
export const ready: Effect.Effect<boolean, never, Database | Redis | Lifecycle> = Effect.gen(function* () {
  const database = yield* Database
  const redis = yield* Redis
  const answers = yield* Effect.forEach([database.ping, redis.ping], answersInTime, { concurrency: "unbounded" })
  return answers.every((answered) => answered) && (yield* Lifecycle.serving)
})

const answersInTime = (ping: Effect.Effect<void, unknown>): Effect.Effect<boolean> =>
  ping.pipe(
    Effect.timeout(pingWithin),
    Effect.as(true),
    Effect.catch(() => Effect.succeed(false))
  )
