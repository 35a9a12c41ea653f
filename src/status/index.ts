/**
 * What users of the library import to keep, read and follow statuses, and to index and replay dead letters. Names are
 * the specification's; a module with a `make` and a `layer` comes as a whole.
 */
export * as Access from "./Access.ts"
export * as DeadLetterRoutes from "./DeadLetterRoutes.ts"
export { type DeadLetterFilter, DeadLetterStore, type DeadLetterSummary, UnknownCursor } from "./DeadLetterStore.ts"
export * as EventStream from "./EventStream.ts"
export * as History from "./History.ts"
export type { OutputAdapter } from "./PublicEvent.ts"
export * as QueueMetrics from "./QueueMetrics.ts"
export * as RedisDLQStore from "./RedisDLQStore.ts"
export * as RedisStatusStore from "./RedisStatusStore.ts"
export * as Refusals from "./Refusals.ts"
export { ReplayError, type Replayed, replay } from "./Replay.ts"
export * as ReplayClient from "./ReplayClient.ts"
export * as ReplayJobs from "./ReplayJobs.ts"
export * as ReplayWorker from "./ReplayWorker.ts"
export * as StatusHub from "./StatusHub.ts"
export * as StatusRoutes from "./StatusRoutes.ts"
export { type StatusHistory, StatusStore, type StoredStatus } from "./StatusStore.ts"
export { TerminalStatusSet } from "./TerminalStatusSet.ts"
export * as WaitingMessages from "./WaitingMessages.ts"
