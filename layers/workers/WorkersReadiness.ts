import { Option } from "effect"
import type { Phase } from "../../src/process/Lifecycle.ts"
import { listeners, type Report } from "../../src/process/Readiness.ts"

/** What is known of the worker with a number. */
export interface WorkerReport {
  readonly number: number
  /** What the supervisor does about the worker. `serving` says nothing about its dependencies. */
  readonly state: "starting" | "serving" | "restarting" | "crash_loop"
  /** `none` if the worker does not serve, or did not respond in time. */
  readonly report: Option.Option<Report>
}

/** The program is ready while one worker is, and degraded while one worker is not. */
export const merge = (phase: Phase, workers: ReadonlyArray<WorkerReport>): Report => {
  const statuses = workers.map(({ report }) =>
    Option.match(report, { onNone: () => "not_ready", onSome: ({ status }) => status })
  )
  const ready = statuses.filter((status) => status !== "not_ready").length
  const isServing = phase === "serving" && ready > 0
  return {
    status: !isServing ? "not_ready" : statuses.every((status) => status === "ready") ? "ready" : "degraded",
    checks: {
      ...mergeChecks(workers),
      listeners: listeners[phase],
      workers: `${ready} of ${workers.length}`,
      ...Object.fromEntries(workers.map((worker) => [`worker_${worker.number}`, describe(worker)]))
    }
  }
}

const describe = ({ report, state }: WorkerReport): string => {
  if (state !== "serving") return state
  return Option.match(report, { onNone: () => "silent", onSome: ({ status }) => status })
}

/** Where workers differ, the check names them. */
const mergeChecks = (workers: ReadonlyArray<WorkerReport>): Report["checks"] => {
  const valuesByCheck = new Map<string, Array<readonly [number: number, value: string]>>()
  for (const { number, report } of workers) {
    for (const [name, value] of Object.entries(
      Option.match(report, { onNone: () => ({}), onSome: ({ checks }) => checks })
    )) {
      valuesByCheck.set(name, [...(valuesByCheck.get(name) ?? []), [number, value]])
    }
  }
  return Object.fromEntries(
    [...valuesByCheck].map(([name, values]) => {
      const distinct = new Set(values.map(([, value]) => value))
      const differing = values.map(([number, value]) => `worker_${number} ${value}`).join(", ")
      return [name, distinct.size === 1 ? [...distinct].join() : differing]
    })
  )
}
