import { Context, Effect, Layer } from "effect"
import * as RunningProcesses from "../../process/RunningProcesses.ts"
import { Redis, type RedisError } from "../../services/Redis.ts"
import { DrainedProcess } from "../api/SystemApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { type Actor, Audit, Snapshots } from "../audit/Audit.ts"
import type { StoreFailure } from "../store/Rows.ts"

/** Asks processes of the installation to end in good order. */
export class ProcessDrains extends Context.Service<
  ProcessDrains,
  {
    readonly drain: (
      id: string,
      reason: string
    ) => Effect.Effect<DrainedProcess, Refused<"not_found" | "invalid_request"> | StoreFailure, Actor>
  }
>()("svc/control/ProcessDrains") {
  static readonly layer = Layer.suspend(() => Layer.effect(ProcessDrains, make))
}

const make = Effect.gen(function* () {
  const redis = yield* Redis
  const audit = yield* Audit

  const find = Effect.fnUntraced(function* (id: string) {
    const processes = yield* RunningProcesses.list.pipe(Effect.provideService(Redis, redis), orUnavailable)
    const found = processes.find((process) => process.id === id)
    if (found === undefined)
      return yield* new ControlError("not_found", "No process that runs has this id.", { param: "id" })
    if (found.drains !== true)
      return yield* new ControlError(
        "invalid_request",
        `This process is of version ${found.version}, which cannot be drained from here. Send it SIGTERM.`,
        { param: "id" }
      )
    return found
  })

  return ProcessDrains.of({
    /** The audit event comes first, because Redis takes no part in a transaction of PostgreSQL. */
    drain: Effect.fn("ProcessDrains.drain")(function* (id, reason) {
      const { host, pid, role, version } = yield* find(id)
      const drained = yield* audit.mutate(function* () {
        const result = { id, role, version, host, pid, reason }
        return {
          result,
          auditAction: { target: "process", action: "system:drain" },
          targetId: id,
          snapshots: yield* snapshots(null, result),
          changes: []
        }
      })
      yield* RunningProcesses.drain(id).pipe(Effect.provideService(Redis, redis), orUnavailable)
      return drained
    })
  })
})

const orUnavailable = <A, R>(work: Effect.Effect<A, RedisError, R>) =>
  work.pipe(
    Effect.tapError((cause) => Effect.logWarning("a process cannot be drained", { cause })),
    Effect.mapError(
      () =>
        new ControlError("store_unavailable", "Redis, by which processes are told, is unavailable; try again later.")
    )
  )

const snapshots = Snapshots.of(DrainedProcess)
