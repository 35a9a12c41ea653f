import { type Option, Schema } from "effect"
import { type Timestamp, withOffset } from "../envelope/Timestamp.ts"

const S = Schema.String
const N = Schema.NullOr(Schema.String)
const I = Schema.Int
const B = Schema.Boolean
const worker = { consumer_name: S, queue_name: N }
const exception = { exception_type: S, exception_message: N }
const loop = { exception_type: S, exception_message: N, retry_delay_seconds: Schema.Finite }

const attempt = { correlation_id: N, retry_attempt: I, task_type: N }
const child = { task_id: N, parent_task_id: N, correlation_id: N, retry_attempt: I }
const scheduled = {
  consumer_name: S,
  task_id: N,
  queue_name: S,
  source_queue_name: S,
  retry_attempt: I,
  max_retries: I,
  reason: S
}
const childScheduled = {
  consumer_name: S,
  task_id: N,
  parent_task_id: N,
  queue_name: S,
  source_queue_name: S,
  correlation_id: N,
  retry_attempt: I,
  max_retries: I,
  reason: S
}
const message = { task_id: N, message_id: N, origin_stage: N, correlation_id: N }

const event = <const Type extends string, const Component extends string, const F extends Schema.Struct.Fields>(
  type: Type,
  component: Component,
  fields: F
) =>
  Schema.Struct({
    ...fields,
    timestamp: S,
    component: Schema.Literal(component),
    event_type: Schema.Literal(type),
    // Present if the consumer is traced.
    trace_id: Schema.optionalKey(S),
    span_id: Schema.optionalKey(S)
  })

/** The members of each event type, in their order in JSON. No member contains a part of a message body. */
const events = {
  TaskConsumerStarted: event("TaskConsumerStarted", "consumer", { consumer_name: S, queue_name: S }),
  TaskMessageReceived: event("TaskMessageReceived", "consumer", {
    consumer_name: S,
    queue_name: S,
    task_id: N,
    delivery_tag: Schema.NullOr(I),
    redelivered: B,
    correlation_id: N,
    retry_attempt: I,
    task_type: N
  }),
  TaskMessageAcked: event("TaskMessageAcked", "consumer", { ...worker, task_id: N, ...attempt }),
  TaskMessageRejected: event("TaskMessageRejected", "consumer", {
    ...worker,
    task_id: N,
    requeue: B,
    reason: S,
    ...attempt
  }),
  TaskHandlerFailed: event("TaskHandlerFailed", "consumer", {
    ...worker,
    task_id: S,
    ...exception,
    requeue: B,
    ...attempt
  }),
  TaskLifecycleStatusPublished: event("TaskLifecycleStatusPublished", "consumer", {
    ...worker,
    task_id: S,
    status: S,
    ...attempt
  }),
  TaskConsumerLoopError: event("TaskConsumerLoopError", "consumer", { consumer_name: S, ...loop }),
  ConsumerRetryScheduled: event("ConsumerRetryScheduled", "consumer", {
    ...scheduled,
    correlation_id: N,
    task_type: N
  }),
  ConsumerDeadLetterPublished: event("ConsumerDeadLetterPublished", "consumer", {
    ...scheduled,
    correlation_id: N,
    task_type: N
  }),
  ConsumerDLQRecordPersistFailed: event("ConsumerDLQRecordPersistFailed", "consumer", { ...scheduled, ...exception }),
  AggregationMessageReceived: event("AggregationMessageReceived", "aggregation", {
    consumer_name: S,
    queue_name: S,
    ...child,
    delivery_tag: Schema.NullOr(I),
    redelivered: B
  }),
  AggregationMessageAcked: event("AggregationMessageAcked", "aggregation", { ...worker, ...child }),
  AggregationHandlerFailed: event("AggregationHandlerFailed", "aggregation", {
    ...worker,
    ...child,
    task_id: S,
    ...exception,
    requeue: B
  }),
  AggregationRetryScheduled: event("AggregationRetryScheduled", "aggregation", childScheduled),
  AggregationDeadLetterPublished: event("AggregationDeadLetterPublished", "aggregation", childScheduled),
  WorkflowStageStarted: event("WorkflowStageStarted", "workflow", { consumer_name: S, stage: S, queue_name: S }),
  WorkflowMessageReceived: event("WorkflowMessageReceived", "workflow", {
    consumer_name: S,
    queue_name: S,
    stage: S,
    routing_key: N,
    ...message,
    delivery_tag: Schema.NullOr(I),
    redelivered: B,
    // Other implementations omit `retry_attempt` here. Their execution graphs show attempt 0 for every delivery.
    retry_attempt: I
  }),
  WorkflowMessagePublished: event("WorkflowMessagePublished", "workflow", {
    ...worker,
    stage: S,
    routing_key: S,
    ...message,
    task_id: S,
    message_id: S
  }),
  WorkflowStageAcked: event("WorkflowStageAcked", "workflow", {
    consumer_name: S,
    queue_name: S,
    stage: S,
    routing_key: N,
    ...message
  }),
  WorkflowStageFailed: event("WorkflowStageFailed", "workflow", {
    consumer_name: S,
    queue_name: S,
    stage: S,
    routing_key: N,
    ...message,
    ...exception,
    requeue: B
  }),
  SSEStreamStarted: event("SSEStreamStarted", "sse", { task_id: S, resume_requested: B }),
  SSEResumeRequested: event("SSEResumeRequested", "sse", { task_id: S, last_event_id: S, history_match_found: B }),
  SSEHistoryReplayed: event("SSEHistoryReplayed", "sse", { task_id: S, replayed_count: I }),
  SSELiveEventSent: event("SSELiveEventSent", "sse", {
    task_id: S,
    event_id: N,
    status: N,
    source: Schema.Literals(["history", "pubsub"])
  }),
  SSEKeepaliveSent: event("SSEKeepaliveSent", "sse", { task_id: S }),
  SSEMalformedPubsubPayload: event("SSEMalformedPubsubPayload", "sse", { task_id: S }),
  SSEStreamEnded: event("SSEStreamEnded", "sse", { task_id: S, terminal_status: N, sent_count: I }),
  StatusHubStarted: event("StatusHubStarted", "status_hub", { queue_name: S }),
  StatusHubStoredEvent: event("StatusHubStoredEvent", "status_hub", { task_id: S, event_id: N, status: N }),
  StatusHubMalformedMessage: event("StatusHubMalformedMessage", "status_hub", { task_id: N, reason: S }),
  // The specification does not define this event type. `members` contains names separated by commas.
  StatusHubMembersLeftOut: event("StatusHubMembersLeftOut", "status_hub", { task_id: S, event_id: N, members: S }),
  StatusHubStoreWriteFailed: event("StatusHubStoreWriteFailed", "status_hub", { task_id: S, ...exception }),
  StatusHubLoopError: event("StatusHubLoopError", "status_hub", loop)
}

export type EventType = keyof typeof events

/**
 * An event in a consumer or another component, for stores and the log. An observation is a flat JSON object with
 * `timestamp`, `component` and `event_type`. `event_type` determines the other members:
 *
 * - `consumer_name`, `queue_name`: the consumer and its queue. For a retry or a dead letter, `queue_name` is the queue
 *   that the message was published to. `source_queue_name` is then the queue of the consumer.
 * - `retry_attempt`: the number of retries before this delivery. For a scheduled retry, its own number.
 * - `max_retries`: the limit of the retry policy.
 * - `exception_type`, `exception_message`: describe the failure.
 * - `reason`: the value of the header `x-svc-failure-reason`.
 * - `requeue`: whether the message was returned to its queue.
 * - `delivery_tag`: identifies the delivery on its channel. `redelivered`: the broker has delivered the message before.
 */
export const Observation: Schema.Union<ReadonlyArray<(typeof events)[EventType]>> = Schema.Union(Object.values(events))
export type Observation = typeof Observation.Type

/** The members of an event type, without those that all event types share. */
export type FieldsOf<Type extends EventType> = Omit<
  (typeof events)[Type]["Type"],
  "timestamp" | "component" | "event_type" | "trace_id" | "span_id"
>

/** An observation of one of the given types, as `of` creates it. */
export type Observed<Type extends EventType = EventType> = {
  readonly [T in Type]: FieldsOf<T> & {
    readonly timestamp: string
    readonly component: ComponentOf<T>
    readonly event_type: T
    readonly trace_id?: string
    readonly span_id?: string
  }
}[Type]

type ComponentOf<Type extends EventType> = (typeof events)[Type]["fields"]["component"]["literal"]

/** Creates an observation. Its timestamp ends in `+00:00`, whereas timestamps in envelopes end in `Z`. */
export const of = <Type extends EventType>(type: Type, at: Timestamp, fields: FieldsOf<Type>): Observed<Type> => ({
  ...fields,
  timestamp: withOffset(at),
  component: componentOf(type),
  event_type: type
})

export const componentOf = <Type extends EventType>(type: Type): ComponentOf<Type> =>
  events[type].fields.component.literal

export const membersOf = (type: EventType): ReadonlyArray<string> => Object.keys(events[type].fields)

const isEventType = (type: string): type is EventType => Object.hasOwn(events, type)

export const eventTypes: ReadonlyArray<EventType> = Object.keys(events).filter(isEventType)

/** Encodes an observation as JSON. The event type determines the order of members. `null` members are kept. */
export const encode = (observation: { readonly event_type: EventType }): string =>
  JSON.stringify(observation, [...membersOf(observation.event_type)])

/** Decodes the JSON of an observation. Returns `None` for an unknown event type or invalid JSON. */
export const decode: (json: unknown) => Option.Option<Observation> = Schema.decodeUnknownOption(
  Schema.fromJsonString(Observation)
)
