/**
 * What users of the library import. Names are the specification's; modules with a `make` and a `layer` come as a whole. A
 * connection is one of `layers/BrokerAmqp.ts` or, without a server and under virtual time, of `layers/BrokerMemory.ts`.
 */
export { Broker, BrokerError, type Delivery, type Fields, type Outcome } from "../services/Broker.ts"
export * as AggregationConsumer from "./AggregationConsumer.ts"
export type { AggregationContext } from "./AggregationContext.ts"
export * as AggregationHandler from "./AggregationHandler.ts"
export * as AggregationWorkerRuntime from "./AggregationWorkerRuntime.ts"
export { type AliasParameters, ContractAliasConfig } from "./Aliases.ts"
export type { BatchEnvelope } from "./BatchEnvelope.ts"
export { BrokerClient, type ClientOptions, type PublishError, type PublishOptions } from "./BrokerClient.ts"
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
export { type ManyTasksOptions, TasksUnpublished } from "./ManyTasks.ts"
export * as Observation from "./Observation.ts"
export { type ObservationSink, queued as queuedObservations } from "./ObservationSink.ts"
export { PublishRefused, PublishUnknown, Unroutable } from "./PublishOutcome.ts"
export { type RetryParameters, RetryPolicy } from "./RetryPolicy.ts"
export type {
  ActionSchema,
  EntryRouteParameters as WorkflowEntryRoute,
  PayloadSchema,
  StageParameters as WorkflowStage
} from "./Stage.ts"
export { StageDedup } from "./StageDedup.ts"
export type { StatusEvent, StatusInput } from "./StatusEvent.ts"
export { LifecycleStatusConfig, RetryStatusConfig } from "./StatusSettings.ts"
export * as TaskConsumer from "./TaskConsumer.ts"
export type { TaskEnvelope, TaskInput } from "./TaskEnvelope.ts"
export {
  RoutedTasksSharedStatusShardedAggregationTopology,
  RoutedTasksSharedStatusTopology,
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
export { SharedStatusWorkflowTopology } from "./WorkflowTopology.ts"
