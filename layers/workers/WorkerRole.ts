import { Cause, Console, Data, Effect, Layer, Result, Runtime } from "effect"
import type { Doors } from "../Doors.ts"
import type { Settings } from "../Environment.ts"
import * as OwnListeners from "../http/OwnListeners.ts"
import * as Observability from "../Observability.ts"
import * as GatewayRoles from "../roles/GatewayRoles.ts"
import * as Startup from "../Startup.ts"
import * as SupervisorLink from "./SupervisorLink.ts"
import type { WorkerIdentity } from "./WorkerIdentity.ts"

/** The worker has failed, and the supervisor knows the reason. */
class WorkerFailed extends Data.TaggedError("WorkerFailed")<{ readonly code: number }> {
  override readonly [Runtime.errorReported] = false
  override get [Runtime.errorExitCode]() {
    return this.code
  }
}

/** One of the processes that share the proxy listener. Its limits are those of `settings`. */
export const run = Effect.fnUntraced(function* (doors: Doors, settings: Settings, identity: WorkerIdentity) {
  for (const port of identity.supervisorPorts) OwnListeners.addPortElsewhere(port)
  const gateway = yield* GatewayRoles.layer(doors, "gateway", settings, SupervisorLink.responder)
  const ready = Layer.effectDiscard(SupervisorLink.send({ _tag: "Ready" })).pipe(Layer.provide(gateway))
  const program = Layer.launch(
    ready.pipe(Layer.provide(Observability.layer(settings, { role: doors.role, worker: identity.number })))
  )
  yield* SupervisorLink.connected(Effect.catchCause(program, fail)).pipe(
    Effect.provideService(Console.Console, SupervisorLink.announcing)
  )
})

const fail = (cause: Cause.Cause<unknown>) => {
  if (Cause.hasInterruptsOnly(cause)) return Effect.failCause(Cause.map(cause, () => new WorkerFailed({ code: 1 })))
  const error = Cause.findError(cause)
  const sentence = Result.isSuccess(error) ? Startup.describeFailure(error.success) : Cause.pretty(cause)
  const code = Runtime.getErrorExitCode(Cause.squash(cause))
  return Effect.andThen(SupervisorLink.send({ _tag: "Failed", sentence }), Effect.fail(new WorkerFailed({ code })))
}
