import { Effect, Metric } from "effect"
import type { ServedFamilies } from "../../policy/routes/StartupUpstreams.ts"
import * as UpstreamBase from "../../policy/routes/UpstreamBase.ts"
import { vendorOf } from "../../policy/routes/Vendor.ts"
import * as Snapshot from "./Snapshot.ts"

/** What is known of the configuration that is in force, for readiness. */
export type ConfigurationCheck = "current" | "behind" | "unreadable_rows"

/** A database that takes longer for a whole snapshot is as good as gone. */
const loadTimeout = "30 seconds"
const retryDelay = "1 second"

const unreadableRows = Metric.gauge("gateway_unreadable_rows", {
  description: "Rows of the configuration that this version cannot decode, by table; each switches off itself only"
})

type Providers = Snapshot.Snapshot["providers"]

/** Which row, and its address. */
const describeProvider = (providers: Providers, serves: ServedFamilies) => {
  const row = providers.get(serves)
  return row === undefined || row === "unreadable"
    ? row
    : { provider: row.name, base_url: UpstreamBase.addressOf(row.base) }
}

/**
 * Keeps the snapshot up to date. However many changes there are, one load at a time answers all that were requested when
 * it began. A load that fails is repeated until it succeeds; meanwhile the snapshot before it stays in force.
 */
export const make = Effect.fnUntraced(function* (
  first: Snapshot.Snapshot,
  /** Called when every change of the configuration up to `epoch` is in force. */
  onLoaded: (epoch: number) => void
) {
  let snapshot = first
  let requested = false
  let requestedEpoch = first.epoch
  let loading = false
  let failing = false
  let wake: (() => void) | undefined
  let reportedTables: ReadonlyMap<string, number> = new Map()
  let reportedRows: ReadonlySet<string> = new Set()

  /** Logs each row once, when it first turns up. */
  const reportUnreadableRows = Effect.fnUntraced(function* ({ unreadableRows: unreadable }: Snapshot.Snapshot) {
    const counts = new Map([...reportedTables.keys()].map((table) => [table, 0]))
    const names = new Set<string>()
    for (const row of unreadable) {
      const name = `${row.table} ${row.row}`
      names.add(name)
      counts.set(row.table, (counts.get(row.table) ?? 0) + 1)
      if (!reportedRows.has(name)) yield* Effect.logError("this version cannot decode a row of the configuration", row)
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
        const before = snapshot.providers
        snapshot = loaded
        finishLoad(false)
        onLoaded(epoch)
        return Effect.andThen(reportUnreadableRows(loaded), reportUpstreams(before, loaded))
      }),
      Effect.catchCause((cause) => {
        finishLoad(true)
        return Effect.andThen(
          Effect.logWarning("the configuration cannot be loaded; the one before stays in force", { cause }),
          Effect.sleep(retryDelay)
        )
      })
    )
  })

  const awaitRequest = Effect.callback<void>((resume) => {
    wake = () => resume(Effect.void)
    if (requested) wake()
  })

  /** Logs where the requests of a family go from now on, when a provider row comes, goes or changes its address. */
  const reportUpstreams = Effect.fnUntraced(function* (before: Providers, { providers }: Snapshot.Snapshot) {
    for (const serves of ["both", "a", "b"] as const) {
      const [was, is] = [describeProvider(before, serves), describeProvider(providers, serves)]
      if (is === "unreadable" || (was !== "unreadable" && is?.base_url === was?.base_url)) continue
      const family = serves === "both" ? "openai and anthropic" : vendorOf(serves)
      yield* is === undefined
        ? Effect.logInfo("no provider row is the upstream any more: requests go where the start said", { family })
        : Effect.logInfo("a provider row is the upstream, in the place of the simulator or the environment's", {
            family,
            ...is
          })
    }
  })

  yield* reportUnreadableRows(first)
  yield* reportUpstreams(new Map(), first)
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(awaitRequest, load)))

  return {
    snapshot: () => snapshot,
    /** Asks for a load that has everything up to `epoch` in it. */
    request: (epoch: number): void => {
      requested = true
      requestedEpoch = Math.max(requestedEpoch, epoch)
      wake?.()
    },
    /** Every load that was requested is in force. */
    idle: () => !requested && !loading,
    check: (): ConfigurationCheck =>
      failing ? "behind" : snapshot.unreadableRows.length > 0 ? "unreadable_rows" : "current"
  }
})
