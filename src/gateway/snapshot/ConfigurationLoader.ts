import { Effect, Metric } from "effect"
import type { ServedFamilies } from "../../policy/routes/StartupUpstreams.ts"
import * as UpstreamBase from "../../policy/routes/UpstreamBase.ts"
import { vendorOf } from "../../policy/routes/Vendor.ts"
import * as Snapshot from "./Snapshot.ts"

export type ConfigurationCheck = "current" | "behind" | "unreadable_rows"

const loadTimeout = "30 seconds"
const retryDelay = "1 second"

const unreadableRows = Metric.gauge("gateway_unreadable_rows", {
  description: "Configuration rows that this version cannot decode, by table; each disables only itself"
})

type Providers = Snapshot.Snapshot["providers"]

const describeProvider = (providers: Providers, serves: ServedFamilies) => {
  const row = providers.get(serves)
  return row === undefined || row === "unreadable"
    ? row
    : { provider: row.name, base_url: UpstreamBase.addressOf(row.base) }
}

/**
 * Reloads the configuration snapshot after a call of `request`. Calls before a load begins share that load. A failed
 * load is retried until it succeeds. Until then the previous snapshot stays in force.
 */
export const make = Effect.fnUntraced(function* (
  initial: Snapshot.Snapshot,
  /** Called when all configuration changes up to `epoch` are in force. */
  onLoaded: (epoch: number) => void
) {
  let snapshot = initial
  let requested = false
  let requestedEpoch = initial.epoch
  let loading = false
  let failing = false
  let wake: (() => void) | undefined
  let reportedTables: ReadonlyMap<string, number> = new Map()
  let reportedRows: ReadonlySet<string> = new Set()

  /** Logs each undecodable row once, when it first appears. */
  const reportUnreadableRows = Effect.fnUntraced(function* ({ unreadableRows: unreadable }: Snapshot.Snapshot) {
    const counts = new Map([...reportedTables.keys()].map((table) => [table, 0]))
    const names = new Set<string>()
    for (const row of unreadable) {
      const name = `${row.table} ${row.row}`
      names.add(name)
      counts.set(row.table, (counts.get(row.table) ?? 0) + 1)
      if (!reportedRows.has(name))
        yield* Effect.logError("cannot decode a configuration row; this process treats it as disabled", row)
    }
    reportedRows = names
    reportedTables = counts
    for (const [table, count] of counts) {
      yield* Metric.update(Metric.withAttributes(unreadableRows, { table }), count)
    }
  })

  const load = Effect.suspend(() => {
    const epoch = requestedEpoch
    requested = false
    loading = true
    const finishLoad = (failed: boolean) => {
      loading = false
      failing = failed
      requested ||= failed
    }
    return Snapshot.load.pipe(
      Effect.timeout(loadTimeout),
      Effect.tap((loaded) => {
        const previousProviders = snapshot.providers
        snapshot = loaded
        finishLoad(false)
        onLoaded(epoch)
        return Effect.andThen(reportUnreadableRows(loaded), reportUpstreams(previousProviders, loaded))
      }),
      Effect.catchCause((cause) => {
        finishLoad(true)
        return Effect.andThen(
          Effect.logWarning("cannot load the configuration; the previous one stays in force", { cause }),
          Effect.sleep(retryDelay)
        )
      })
    )
  })

  const awaitRequest = Effect.callback<void>((resume) => {
    wake = () => resume(Effect.void)
    if (requested) wake()
  })

  const reportUpstreams = Effect.fnUntraced(function* (previousProviders: Providers, { providers }: Snapshot.Snapshot) {
    for (const serves of ["both", "a", "b"] as const) {
      const [previous, current] = [describeProvider(previousProviders, serves), describeProvider(providers, serves)]
      if (current === "unreadable" || (previous !== "unreadable" && current?.base_url === previous?.base_url)) continue
      const family = serves === "both" ? "openai and anthropic" : vendorOf(serves)
      yield* current === undefined
        ? Effect.logInfo(
            "no provider row defines the upstream any more: requests go to the upstream of the startup settings",
            { family }
          )
        : Effect.logInfo("a provider row defines the upstream and replaces the upstream of the startup settings", {
            family,
            ...current
          })
    }
  })

  yield* reportUnreadableRows(initial)
  yield* reportUpstreams(new Map(), initial)
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(awaitRequest, load)))

  return {
    snapshot: () => snapshot,
    /** Requests a load that includes all changes up to `epoch`. */
    request: (epoch: number): void => {
      requested = true
      requestedEpoch = Math.max(requestedEpoch, epoch)
      wake?.()
    },
    idle: () => !requested && !loading,
    check: (): ConfigurationCheck =>
      failing ? "behind" : snapshot.unreadableRows.length > 0 ? "unreadable_rows" : "current"
  }
})
