import { Context, DateTime, Effect, Fiber, Layer, Metric, Option, Schedule, SubscriptionRef } from "effect"
import { Database } from "../services/Database.ts"
import { Redis } from "../services/Redis.ts"
import { Conditions } from "./Conditions.ts"
import { Lifecycle } from "./Lifecycle.ts"

/** A server that the process pings. */
export interface DependencyState {
  readonly name: string
  readonly up: boolean
  /** Since when it is up, or down, as far as this process has noticed. */
  readonly since: DateTime.Utc
}

export interface Report {
  /** `degraded`: the process serves requests, but an operator should look at it. */
  readonly status: "ready" | "degraded" | "not_ready"
  readonly checks: Readonly<Record<string, string>>
  /** Absent where a supervisor reports for its workers. */
  readonly dependencies?: ReadonlyArray<DependencyState>
}

interface Dependency {
  readonly name: string
  readonly ping: Effect.Effect<void, unknown>
  readonly statusWithout: "not_ready" | "degraded"
}

/** A process is ready while every listener is open and every dependency that it needs responds. */
export class Readiness extends Context.Service<Readiness, Effect.Effect<Report>>()("svc/control/Readiness") {
  static readonly fromDependencies = Effect.fnUntraced(function* (servers: ReadonlyArray<Dependency>) {
    const lifecycle = yield* Lifecycle
    const conditions = yield* Effect.serviceOption(Conditions)
    const watched = yield* Effect.forEach(servers, watchDependency)
    const report = Effect.gen(function* () {
      const results = yield* Effect.forEach(
        watched,
        (server) => Effect.map(server.isUp, (state) => ({ ...server, ...state })),
        {
          concurrency: "unbounded"
        }
      )
      const phase = yield* SubscriptionRef.get(lifecycle)
      const reported = Option.match(conditions, { onNone: () => [], onSome: ({ current }) => current() })
      const statuses = [
        phase === "serving" || phase === "retiring" ? "ready" : "not_ready",
        ...results.map(({ up, statusWithout }) => (up ? "ready" : statusWithout)),
        ...reported.map(({ ok }) => (ok ? "ready" : "degraded"))
      ]
      const current: Report = {
        status: statuses.includes("not_ready") ? "not_ready" : statuses.includes("degraded") ? "degraded" : "ready",
        checks: {
          ...Object.fromEntries(results.map(({ name, up }) => [name, up ? "up" : "down"])),
          listeners: listeners[phase],
          ...Object.fromEntries(reported.map(({ status, name }) => [name, status]))
        },
        dependencies: results.map(({ name, since, up }) => ({ name, up, since }))
      }
      return current
    })
    const measure = Effect.andThen(Effect.forEach(watched, recordUp), Effect.flatMap(report, recordReady))
    yield* Effect.forkScoped(Effect.repeat(measure, Schedule.spaced(measureInterval)))
    return report
  })

  /** Without the database, a gateway still serves requests from memory. A control API cannot serve requests. */
  static readonly layer = (withoutDatabase: "not_ready" | "degraded") =>
    Layer.effect(
      Readiness,
      Effect.gen(function* () {
        const database = yield* Database
        const redis = yield* Redis
        return yield* Readiness.fromDependencies([
          { name: "database", ping: database.ping, statusWithout: withoutDatabase },
          { name: "redis", ping: redis.ping, statusWithout: "not_ready" }
        ])
      })
    )
}

export const listeners = { starting: "opening", serving: "open", draining: "closing", retiring: "open" } as const

const dependencyUp = Metric.gauge("svc_dependency_up", {
  description: "1 if the dependency answered a ping within a second, 0 otherwise"
})

const ready = Metric.gauge("svc_ready", {
  description: "1 if the process serves requests, also if it is degraded; 0 while it starts, drains or lacks a server"
})

const recordReady = ({ status }: Report) => Metric.update(ready, status === "not_ready" ? 0 : 1)

const measureInterval = "5 seconds"

const recordUp = ({ startPing, name }: WatchedDependency) =>
  Effect.flatMap(Effect.flatMap(startPing, Fiber.join), ({ up }) =>
    Metric.update(Metric.withAttributes(dependencyUp, { dependency: name }), up ? 1 : 0)
  )

type PingResult = Pick<DependencyState, "up" | "since">

interface WatchedDependency extends Dependency {
  /** Pings the dependency. Concurrent callers share one ping. */
  readonly startPing: Effect.Effect<Fiber.Fiber<PingResult>>
  /** Returns the result of the previous ping if the current ping takes longer than `probeTimeout`. */
  readonly isUp: Effect.Effect<PingResult>
}

/** Orchestrators may wait only a second for a probe. A probe must not wait that long for one dependency. */
const probeTimeout = "250 millis"

const watchDependency = Effect.fnUntraced(function* (server: Dependency) {
  const scope = yield* Effect.scope
  let lastResult: PingResult | undefined
  let ping: Fiber.Fiber<PingResult> | undefined
  const pinged = Effect.gen(function* () {
    const up = yield* succeedsInTime(server.ping)
    lastResult = lastResult?.up === up ? lastResult : { up, since: yield* DateTime.now }
    return lastResult
  })
  const startPing = Effect.suspend(() => {
    if (ping !== undefined && ping.pollUnsafe() === undefined) return Effect.succeed(ping)
    return Effect.map(Effect.forkIn(pinged, scope), (fiber) => {
      ping = fiber
      return fiber
    })
  })
  const isUp = Effect.flatMap(startPing, (fiber) => {
    const last = lastResult
    if (last === undefined) return Fiber.join(fiber)
    return Effect.map(
      Effect.timeoutOption(Fiber.join(fiber), probeTimeout),
      Option.getOrElse(() => last)
    )
  })
  const watched: WatchedDependency = { ...server, startPing, isUp }
  return watched
})

const pingTimeout = "1 second"

const succeedsInTime = (ping: Effect.Effect<void, unknown>): Effect.Effect<boolean> =>
  ping.pipe(
    Effect.timeout(pingTimeout),
    Effect.as(true),
    Effect.catchCause(() => Effect.succeed(false))
  )
