/**
 * The public API of the task-messaging library. Exported names follow the specification. Modules with `make` and
 * `layer` functions are exported as namespaces. `svc-runtime/layers/BrokerAmqp` connects to RabbitMQ, and
 * `svc-runtime/layers/BrokerMemory` is a model of RabbitMQ inside the process.
 */
export {
  Broker,
  BrokerError,
  type Channel,
  type Connection,
  type Delivery,
  type Field,
  type Fields,
  type Outcome,
  type Properties,
  type Publication
} from "../services/Broker.ts"
export { Redis, RedisError } from "../services/Redis.ts"
export * as AggregationConsumer from "./consume/AggregationConsumer.ts"
export type { AggregationContext } from "./consume/AggregationContext.ts"
export * as AggregationHandler from "./consume/AggregationHandler.ts"
export * as AggregationWorkerRuntime from "./consume/AggregationWorkerRuntime.ts"
export type { ConsumerOptions } from "./consume/ConsumerOptions.ts"
export * as Handler from "./consume/Handler.ts"
export type { HandlerContext, StatusDetails } from "./consume/HandlerContext.ts"
export { type Claim, StageDedup } from "./consume/StageDedup.ts"
export * as TaskConsumer from "./consume/TaskConsumer.ts"
export * as WorkflowConsumer from "./consume/WorkflowConsumer.ts"
export type { WorkflowContext } from "./consume/WorkflowContext.ts"
export * as WorkflowHandler from "./consume/WorkflowHandler.ts"
export type { CancelRequest, HandlerReport, Pause, WorkerReport } from "./control/ControlRecords.ts"
export * as ControlStore from "./control/ControlStore.ts"
export type { HandledPayload } from "./control/HandledPayloads.ts"
export * as RedisWorkControl from "./control/RedisWorkControl.ts"
export { DefaultWorkControl, TaskCancelled, type WorkControl } from "./control/WorkControl.ts"
export type { BatchEnvelope } from "./envelope/BatchEnvelope.ts"
export type { JsonObject } from "./envelope/Envelope.ts"
export {
  ContractError,
  EnvelopeError,
  InvalidManualRetry,
  InvalidPublish,
  SettingsError,
  TopologyError
} from "./envelope/Errors.ts"
export type { StatusEvent, StatusInput } from "./envelope/StatusEvent.ts"
export type { TaskEnvelope, TaskInput } from "./envelope/TaskEnvelope.ts"
export { requestHeaders as traceHeaders } from "./envelope/TraceContext.ts"
export type { WorkflowEnvelope, WorkflowInput } from "./envelope/WorkflowEnvelope.ts"
export {
  type DeadLettered,
  DeadLetterRecord,
  type DeadLetterSink,
  DefaultDeadLetterSink,
  recordOf as deadLetterRecordOf
} from "./failure/DeadLetter.ts"
export {
  ExceptionDetails,
  type ExceptionTexts,
  omitted as omittedExceptionDetails
} from "./failure/ExceptionDetails.ts"
export * as Observation from "./observe/Observation.ts"
export {
  DefaultObservationSink,
  type ObservationSink,
  queued as queuedObservations
} from "./observe/ObservationSink.ts"
export {
  type Aliased,
  BrokerClient,
  type ClientOptions,
  type InitializeError,
  type PublishError,
  type PublishOptions
} from "./publish/BrokerClient.ts"
export type { RawOptions } from "./publish/Publications.ts"
export { type ManyTasksOptions, TasksUnpublished } from "./publish/PublishMany.ts"
export { PublishRefused, PublishUnknown, Unroutable } from "./publish/PublishOutcome.ts"
export type { ManualRetryRequest } from "./retry/ManualRetry.ts"
export type { RetryQueues } from "./retry/RetryQueues.ts"
export type { AggregationParameters } from "./topology/Aggregation.ts"
export { type AliasParameters, ContractAliasConfig, ContractAliases } from "./topology/Aliases.ts"
export { type ExponentialBackoff, type RetryParameters, RetryPolicy } from "./topology/RetryPolicy.ts"
export type {
  ActionSchema,
  EntryRouteParameters as WorkflowEntryRoute,
  PayloadSchema,
  StageContract,
  StageParameters as WorkflowStage
} from "./topology/Stage.ts"
export type { StatusParameters, StreamOffset } from "./topology/StatusPlane.ts"
export {
  LifecycleStatusConfig,
  type LifecycleStatusParameters,
  RetryStatusConfig,
  type RetryStatusParameters
} from "./topology/StatusSettings.ts"
export {
  type RoutedParameters,
  RoutedTasksSharedStatusShardedAggregationTopology,
  RoutedTasksSharedStatusTopology,
  type RoutingStrategy,
  type SharedParameters,
  SharedTasksSharedStatusShardedAggregationTopology,
  SharedTasksSharedStatusTopology
} from "./topology/TaskTopology.ts"
export type { Topology } from "./topology/Topology.ts"
export { topologyGraph, topologyMermaid } from "./topology/TopologyGraph.ts"
export * as TopologyPlan from "./topology/TopologyPlan.ts"
export { SharedStatusWorkflowTopology, type WorkflowParameters } from "./topology/WorkflowTopology.ts"
