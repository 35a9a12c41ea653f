/**
 * The public API of the status library. The library stores and streams task statuses. It also indexes and replays dead
 * letters. A module with a `make` or a `layer` is exported as a namespace.
 */

export * as Cancellations from "./cancellations/Cancellations.ts"
export * as CancellationWorker from "./cancellations/CancellationWorker.ts"
export * as ArchiveSweeper from "./dead-letters/ArchiveSweeper.ts"
export {
  type DeadLetterFilter,
  DeadLetterStore,
  type DeadLetterSummary,
  UnknownCursor
} from "./dead-letters/DeadLetterStore.ts"
export * as QueueMetrics from "./dead-letters/QueueMetrics.ts"
export * as RedisDLQStore from "./dead-letters/RedisDLQStore.ts"
export * as History from "./history/History.ts"
export * as WaitingMessages from "./history/WaitingMessages.ts"
export * as BearerToken from "./http/BearerToken.ts"
export * as CancellationRoutes from "./http/CancellationRoutes.ts"
export * as DeadLetterRoutes from "./http/DeadLetterRoutes.ts"
export * as ErrorResponses from "./http/ErrorResponses.ts"
export * as QueueRoutes from "./http/QueueRoutes.ts"
export * as StatusRoutes from "./http/StatusRoutes.ts"
export * as TaskRoutes from "./http/TaskRoutes.ts"
export * as StatusHub from "./hub/StatusHub.ts"
export * as PayloadCheck from "./payload/PayloadCheck.ts"
export * as QueueBoard from "./queues/QueueBoard.ts"
export * as TaskCancellation from "./queues/TaskCancellation.ts"
export * as TopologyMap from "./queues/TopologyMap.ts"
export { ReplayError, type Replayed, replay } from "./replay/Replay.ts"
export * as ReplayClient from "./replay/ReplayClient.ts"
export * as ReplayJobs from "./replay/ReplayJobs.ts"
export * as ReplayOutcomes from "./replay/ReplayOutcomes.ts"
export * as ReplayWorker from "./replay/ReplayWorker.ts"
export * as RedisStatusStore from "./store/RedisStatusStore.ts"
export { type StatusHistory, StatusStore, type StoredStatus } from "./store/StatusStore.ts"
export { TerminalStatusSet } from "./store/TerminalStatusSet.ts"
export * as EventStream from "./stream/EventStream.ts"
export type { OutputAdapter } from "./stream/PublicEvent.ts"
export * as PostgresTaskIndex from "./tasks/PostgresTaskIndex.ts"
export * as RedisTaskIndex from "./tasks/RedisTaskIndex.ts"
export { TaskIndex, TaskIndexError } from "./tasks/TaskIndex.ts"
export * as TaskIndexer from "./tasks/TaskIndexer.ts"
