/**
 * What users of the library import. Names are the specification's; modules with a `make` and a `layer` come as a whole. A
 * connection comes from `layers/index.ts`: `BrokerAmqp` or, without a server and under virtual time, `BrokerMemory`.
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
export type { AggregationParameters } from "./Aggregation.ts"
export * as AggregationConsumer from "./AggregationConsumer.ts"
export type { AggregationContext } from "./AggregationContext.ts"
export * as AggregationHandler from "./AggregationHandler.ts"
export * as AggregationWorkerRuntime from "./AggregationWorkerRuntime.ts"
export { type AliasParameters, ContractAliasConfig, ContractAliases } from "./Aliases.ts"
export type { BatchEnvelope } from "./BatchEnvelope.ts"
export {
  type Aliased,
  BrokerClient,
  type ClientOptions,
  type InitializeError,
  type PublishError,
  type PublishOptions
} from "./BrokerClient.ts"
export type { ConsumerOptions } from "./ConsumerOptions.ts"
export {
  type DeadLettered,
  DeadLetterRecord,
  type DeadLetterSink,
  recordOf as deadLetterRecordOf
} from "./DeadLetter.ts"
export type { JsonObject } from "./Envelope.ts"
export {
  ContractError,
  EnvelopeError,
  InvalidManualRetry,
  InvalidPublish,
  SettingsError,
  TopologyError
} from "./Errors.ts"
export {
  type Details as ExceptionTexts,
  ExceptionDetails,
  omitted as omittedExceptionDetails
} from "./ExceptionDetails.ts"
export * as Handler from "./Handler.ts"
export type { HandlerContext, StatusDetails } from "./HandlerContext.ts"
export type { ManualRetryRequest } from "./ManualRetry.ts"
export { type ManyTasksOptions, TasksUnpublished } from "./ManyTasks.ts"
export * as Observation from "./Observation.ts"
export { type ObservationSink, queued as queuedObservations } from "./ObservationSink.ts"
export type { RawOptions } from "./Publications.ts"
export { PublishRefused, PublishUnknown, Unroutable } from "./PublishOutcome.ts"
export { type ExponentialBackoff, type RetryParameters, RetryPolicy } from "./RetryPolicy.ts"
export type { RetryQueues } from "./RetryQueues.ts"
export type {
  ActionSchema,
  EntryRouteParameters as WorkflowEntryRoute,
  PayloadSchema,
  StageContract,
  StageParameters as WorkflowStage
} from "./Stage.ts"
export { type Claim, StageDedup } from "./StageDedup.ts"
export type { StatusEvent, StatusInput } from "./StatusEvent.ts"
export type { StatusParameters, StreamOffset } from "./StatusPlane.ts"
export {
  LifecycleStatusConfig,
  type LifecycleStatusParameters,
  RetryStatusConfig,
  type RetryStatusParameters
} from "./StatusSettings.ts"
export * as TaskConsumer from "./TaskConsumer.ts"
export type { TaskEnvelope, TaskInput } from "./TaskEnvelope.ts"
export {
  type RoutedParameters,
  RoutedTasksSharedStatusShardedAggregationTopology,
  RoutedTasksSharedStatusTopology,
  type RoutingStrategy,
  type SharedParameters,
  SharedTasksSharedStatusShardedAggregationTopology,
  SharedTasksSharedStatusTopology
} from "./TaskTopology.ts"
export type { Topology } from "./Topology.ts"
export { topologyGraph, topologyMermaid } from "./TopologyGraph.ts"
export * as TopologyPlan from "./TopologyPlan.ts"
export * as WorkflowConsumer from "./WorkflowConsumer.ts"
export type { WorkflowContext } from "./WorkflowContext.ts"
export type { WorkflowEnvelope, WorkflowInput } from "./WorkflowEnvelope.ts"
export * as WorkflowHandler from "./WorkflowHandler.ts"
export { SharedStatusWorkflowTopology, type WorkflowParameters } from "./WorkflowTopology.ts"
