import { Effect, Layer, Queue } from "effect"
import { MetricsPage } from "../../src/process/MetricsPage.ts"
import { Readiness } from "../../src/process/Readiness.ts"
import { shutdownSeconds } from "../../src/process/ShutdownTimeouts.ts"
import type { Doors } from "../Doors.ts"
import type { Settings } from "../Environment.ts"
import * as Observability from "../Observability.ts"
import { probes } from "../roles/ControlListener.ts"
import { lifecycle } from "../roles/ServingLifecycle.ts"
import * as ClusterWorkers from "./ClusterWorkers.ts"
import { Supervisor } from "./Supervisor.ts"
import * as SupervisorLink from "./SupervisorLink.ts"

/** The process that starts the workers, gives them connections, and serves health, readiness and metrics for all of them. */
export const run = ({ role, workers }: Doors, settings: Settings) =>
  Effect.flatMap(Supervisor, (supervisor) => supervisor.run).pipe(
    Effect.provide(
      probes(settings).pipe(
        Layer.provide(endpoints),
        Layer.provideMerge(Layer.unwrap(Effect.map(hangups, (restarts) => Supervisor.layer({ workers, restarts })))),
        Layer.provide([ClusterWorkers.layer({ workers, endTimeout: endTimeout(settings) }), lifecycle]),
        Layer.provideMerge(Observability.layer(settings, { role }))
      )
    )
  )

const endpoints = Layer.mergeAll(
  Layer.effect(
    Readiness,
    Effect.map(Supervisor, ({ readiness }) => readiness)
  ),
  Layer.effect(
    MetricsPage,
    Effect.map(Supervisor, ({ metrics }) => metrics)
  )
)

/** Each SIGHUP is an item. Signals during a restart ask for one more restart. */
const hangups = Effect.gen(function* () {
  const restarts = yield* Queue.sliding<void>(1)
  const onHangup = () => Queue.offerUnsafe(restarts, undefined)
  yield* Effect.acquireRelease(
    Effect.sync(() => process.on("SIGHUP", onHangup)),
    () => Effect.sync(() => process.off("SIGHUP", onHangup))
  )
  return restarts
})

/** A worker has no listener for operators. */
const endTimeout = ({ drainDelaySeconds, drainSeconds }: Settings) => {
  const { settlement, telemetry, usageLog, usageWriter } = shutdownSeconds
  const afterDrain = settlement + usageLog + usageWriter + telemetry + SupervisorLink.leaveSeconds
  return `${drainDelaySeconds + drainSeconds + afterDrain} seconds` as const
}
