import type { Settings } from "../Environment.ts"
import type { WorkerIdentity } from "./WorkerIdentity.ts"

type Place = Pick<WorkerIdentity, "number" | "of">

/** Returns a worker's part of a limit. The parts of all workers add up to the limit, unless it is below their number. */
export const partOf = (total: number, { number, of }: Place): number =>
  Math.max(1, Math.floor(total / of) + (number <= total % of ? 1 : 0))

/** A statement outside of a running transaction needs a second session. */
const minDatabaseSessions = 2

/**
 * Returns the settings of one worker. Limits that each process counts by itself are divided, so that all workers together
 * keep the configured totals. A caller's share is a part of these limits, so it is divided with them.
 */
export const settingsOf = (settings: Settings, place: Place): Settings => {
  const part = (total: number) => partOf(total, place)
  const { connectionLimits, maxBufferedRequests, maxInflightBufferBytes, pools } = settings
  const { connectionsPerOrigin, idleConnections, waitingPerOrigin } = pools.upstream
  return {
    ...settings,
    connectionLimits: { total: part(connectionLimits.total), perAddress: part(connectionLimits.perAddress) },
    maxBufferedRequests: part(maxBufferedRequests),
    maxInflightBufferBytes: part(maxInflightBufferBytes),
    pools: {
      databaseSessions: Math.max(minDatabaseSessions, part(pools.databaseSessions)),
      upstream: {
        connectionsPerOrigin: part(connectionsPerOrigin),
        waitingPerOrigin: part(waitingPerOrigin),
        idleConnections: part(idleConnections)
      }
    }
  }
}
