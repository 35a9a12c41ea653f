import { Context, Effect, Layer } from "effect"
import { Lifecycle } from "../gateway/model/Lifecycle.ts"
import { Database } from "../services/Database.ts"
import { Redis } from "../services/Redis.ts"

/** Whether this process can take work now: it is not draining, and the servers that it needs answer in time. */
export class Readiness extends Context.Service<Readiness, Effect.Effect<boolean>>()("svc/control/Readiness") {
  static readonly when = Effect.fnUntraced(function* (pings: ReadonlyArray<Effect.Effect<void, unknown>>) {
    const serving = Effect.provideService(Lifecycle.serving, Lifecycle, yield* Lifecycle)
    return Effect.flatMap(Effect.forEach(pings, answersInTime, { concurrency: "unbounded" }), (answers) =>
      answers.every((answered) => answered) ? serving : Effect.succeed(false)
    )
  })

  /** Of a gateway or its control: the database and Redis. */
  static readonly layer = Layer.effect(
    Readiness,
    Effect.gen(function* () {
      const database = yield* Database
      const redis = yield* Redis
      return yield* Readiness.when([database.ping, redis.ping])
    })
  )
}

const pingWithin = "1 second"

const answersInTime = (ping: Effect.Effect<void, unknown>): Effect.Effect<boolean> =>
  ping.pipe(
    Effect.timeout(pingWithin),
    Effect.as(true),
    Effect.catch(() => Effect.succeed(false))
  )
