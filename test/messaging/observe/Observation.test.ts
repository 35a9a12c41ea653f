import { assert, describe, it } from "@effect/vitest"
import { Option } from "effect"
import * as Observation from "../../../src/messaging/observe/Observation.ts"

const at = "2026-04-06T10:00:00Z"
const received = Observation.of("TaskMessageReceived", at, {
  task_type: null,
  consumer_name: "svc-task-consumer",
  queue_name: "tasks.queue",
  task_id: "task-123",
  delivery_tag: 1,
  redelivered: false,
  correlation_id: "corr-123",
  retry_attempt: 0
})

describe("an observation", () => {
  it("is written in the golden layout, whatever order its fields were given in", () => {
    assert.strictEqual(
      Observation.encode(received),
      '{"consumer_name":"svc-task-consumer","queue_name":"tasks.queue","task_id":"task-123","delivery_tag":1,' +
        '"redelivered":false,"correlation_id":"corr-123","retry_attempt":0,"task_type":null,' +
        '"timestamp":"2026-04-06T10:00:00+00:00","component":"consumer","event_type":"TaskMessageReceived"}'
    )
  })

  it("is read again as what it was; of an unknown type it is none", () => {
    assert.deepStrictEqual(Observation.decode(Observation.encode(received)), Option.some(received))
    assert.deepStrictEqual(Observation.decode('{"event_type":"TaskTeleported"}'), Option.none())
    assert.deepStrictEqual(Observation.decode("{"), Option.none())
  })

  it.each([
    ["TaskConsumerStarted", "consumer", "consumer_name queue_name"],
    ["TaskMessageAcked", "consumer", "consumer_name queue_name task_id correlation_id retry_attempt task_type"],
    [
      "TaskMessageRejected",
      "consumer",
      "consumer_name queue_name task_id requeue reason correlation_id retry_attempt task_type"
    ],
    [
      "TaskHandlerFailed",
      "consumer",
      "consumer_name queue_name task_id exception_type exception_message requeue correlation_id retry_attempt task_type"
    ],
    [
      "TaskLifecycleStatusPublished",
      "consumer",
      "consumer_name queue_name task_id status correlation_id retry_attempt task_type"
    ],
    ["TaskConsumerLoopError", "consumer", "consumer_name exception_type exception_message retry_delay_seconds"],
    [
      "ConsumerRetryScheduled",
      "consumer",
      "consumer_name task_id queue_name source_queue_name retry_attempt max_retries reason correlation_id task_type"
    ],
    [
      "ConsumerDeadLetterPublished",
      "consumer",
      "consumer_name task_id queue_name source_queue_name retry_attempt max_retries reason correlation_id task_type"
    ],
    [
      "ConsumerDLQRecordPersistFailed",
      "consumer",
      "consumer_name task_id queue_name source_queue_name retry_attempt max_retries reason exception_type exception_message"
    ],
    [
      "AggregationMessageReceived",
      "aggregation",
      "consumer_name queue_name task_id parent_task_id correlation_id retry_attempt delivery_tag redelivered"
    ],
    [
      "AggregationMessageAcked",
      "aggregation",
      "consumer_name queue_name task_id parent_task_id correlation_id retry_attempt"
    ],
    [
      "AggregationHandlerFailed",
      "aggregation",
      "consumer_name queue_name task_id parent_task_id correlation_id retry_attempt exception_type exception_message requeue"
    ],
    [
      "AggregationRetryScheduled",
      "aggregation",
      "consumer_name task_id parent_task_id queue_name source_queue_name correlation_id retry_attempt max_retries reason"
    ],
    [
      "AggregationDeadLetterPublished",
      "aggregation",
      "consumer_name task_id parent_task_id queue_name source_queue_name correlation_id retry_attempt max_retries reason"
    ],
    ["WorkflowStageStarted", "workflow", "consumer_name stage queue_name"],
    [
      "WorkflowMessageReceived",
      "workflow",
      "consumer_name queue_name stage routing_key task_id message_id origin_stage correlation_id delivery_tag redelivered retry_attempt"
    ],
    [
      "WorkflowMessagePublished",
      "workflow",
      "consumer_name queue_name stage routing_key task_id message_id origin_stage correlation_id"
    ],
    [
      "WorkflowStageAcked",
      "workflow",
      "consumer_name queue_name stage routing_key task_id message_id origin_stage correlation_id"
    ],
    [
      "WorkflowStageFailed",
      "workflow",
      "consumer_name queue_name stage routing_key task_id message_id origin_stage correlation_id exception_type exception_message requeue"
    ],
    ["SSELiveEventSent", "sse", "task_id event_id status source"],
    ["SSEStreamEnded", "sse", "task_id terminal_status sent_count"],
    ["StatusHubStoredEvent", "status_hub", "task_id event_id status"],
    ["StatusHubMalformedMessage", "status_hub", "task_id reason"],
    ["StatusHubMembersLeftOut", "status_hub", "task_id event_id members"],
    ["StatusHubLoopError", "status_hub", "exception_type exception_message retry_delay_seconds"]
  ] as const)("%s comes from %s with %s", (type, component, fields) => {
    assert.strictEqual(Observation.componentOf(type), component)
    const always = ["timestamp", "component", "event_type", "trace_id", "span_id"]
    assert.deepStrictEqual(Observation.membersOf(type), [...fields.split(" "), ...always])
  })

  it("knows every event of the specification and the reference, and one of its own", () => {
    assert.strictEqual(Observation.eventTypes.length, 33)
  })
})
