import { Context, Effect, Fiber, Layer, Metric, Option, Schedule, SubscriptionRef } from "effect"
import { Database } from "../services/Database.ts"
import { Redis } from "../services/Redis.ts"
import { Conditions } from "./Conditions.ts"
import { Lifecycle } from "./Lifecycle.ts"

/** Whether the process can take work now, and why not. */
export interface Report {
  /** `degraded`: it serves, and an operator should look. */
  readonly status: "ready" | "degraded" | "not_ready"
  /** What was looked at, each in one word. */
  readonly checks: Readonly<Record<string, string>>
}

/** A server that the process works with. */
export interface Server {
  readonly name: string
  readonly ping: Effect.Effect<void, unknown>
  /** What the process is without it. */
  readonly without: "not_ready" | "degraded"
}

/** Not ready are a process that has a listener still to open, one that drains, and one without a server that it needs. */
export class Readiness extends Context.Service<Readiness, Effect.Effect<Report>>()("svc/control/Readiness") {
  static readonly when = Effect.fnUntraced(function* (servers: ReadonlyArray<Server>) {
    const lifecycle = yield* Lifecycle
    const conditions = yield* Effect.serviceOption(Conditions)
    const watched = yield* Effect.forEach(servers, watch)
    yield* Effect.forkScoped(Effect.repeat(Effect.forEach(watched, measured), Schedule.spaced(measuredEvery)))
    return Effect.gen(function* () {
      const answers = yield* Effect.forEach(
        watched,
        (server) => Effect.map(server.lookedAt, (up) => ({ ...server, up })),
        { concurrency: "unbounded" }
      )
      const phase = yield* SubscriptionRef.get(lifecycle)
      const reported = Option.match(conditions, { onNone: () => [], onSome: ({ current }) => current() })
      const worst = [
        phase === "serving" ? "ready" : "not_ready",
        ...answers.map(({ up, without }) => (up ? "ready" : without)),
        ...reported.map(({ ok }) => (ok ? "ready" : "degraded"))
      ]
      const report: Report = {
        status: worst.includes("not_ready") ? "not_ready" : worst.includes("degraded") ? "degraded" : "ready",
        checks: {
          ...Object.fromEntries(answers.map(({ name, up }) => [name, up ? "up" : "down"])),
          listeners: listeners[phase],
          ...Object.fromEntries(reported.map(({ is, name }) => [name, is]))
        }
      }
      return report
    })
  })

  /**
   * Of a process that operators decide about. Without the database a gateway goes on serving what it knows, so a load
   * balancer must not take it away; the operator API cannot do anything.
   */
  static readonly layer = (withoutDatabase: "not_ready" | "degraded") =>
    Layer.effect(
      Readiness,
      Effect.gen(function* () {
        const database = yield* Database
        const redis = yield* Redis
        return yield* Readiness.when([
          { name: "database", ping: database.ping, without: withoutDatabase },
          { name: "redis", ping: redis.ping, without: "not_ready" }
        ])
      })
    )
}

const listeners = { starting: "opening", serving: "open", draining: "closing" } as const

const isUp = Metric.gauge("svc_dependency_up", {
  description: "1 where a server that this process works with answered within a second, 0 where it did not"
})

const measuredEvery = "5 seconds"

const measured = ({ look, name }: Watched) =>
  Effect.flatMap(Effect.flatMap(look, Fiber.join), (up) =>
    Metric.update(Metric.withAttributes(isUp, { dependency: name }), up ? 1 : 0)
  )

/** A server, and whether it answers. */
interface Watched extends Server {
  /** A ping under way, which all who ask meanwhile share. */
  readonly look: Effect.Effect<Fiber.Fiber<boolean>>
  /** Whether the server answers. A ping that takes longer than `answerWithin` leaves it at what the last one found. */
  readonly lookedAt: Effect.Effect<boolean>
}

/**
 * A load balancer gives a probe a second or less. A server that has fallen silent must not use that time up, since a
 * process that serves without it would be taken out of rotation.
 */
const answerWithin = "250 millis"

const watch = Effect.fnUntraced(function* (server: Server) {
  const scope = yield* Effect.scope
  let found: boolean | undefined
  let ping: Fiber.Fiber<boolean> | undefined
  const pinged = Effect.map(answersInTime(server.ping), (up) => {
    found = up
    return up
  })
  const look = Effect.suspend(() => {
    if (ping !== undefined && ping.pollUnsafe() === undefined) return Effect.succeed(ping)
    return Effect.map(Effect.forkIn(pinged, scope), (fiber) => {
      ping = fiber
      return fiber
    })
  })
  const lookedAt = Effect.flatMap(look, (fiber) => {
    const last = found
    if (last === undefined) return Fiber.join(fiber)
    return Effect.map(
      Effect.timeoutOption(Fiber.join(fiber), answerWithin),
      Option.getOrElse(() => last)
    )
  })
  const watched: Watched = { ...server, look, lookedAt }
  return watched
})

const pingWithin = "1 second"

const answersInTime = (ping: Effect.Effect<void, unknown>): Effect.Effect<boolean> =>
  ping.pipe(
    Effect.timeout(pingWithin),
    Effect.as(true),
    Effect.catchCause(() => Effect.succeed(false))
  )
