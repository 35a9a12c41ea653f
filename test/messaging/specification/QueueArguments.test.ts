import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import * as BrokerCapabilities from "../../../src/messaging/topology/BrokerCapabilities.ts"
import * as QueueArguments from "../../../src/messaging/topology/QueueArguments.ts"
import {
  SharedTasksSharedStatusShardedAggregationTopology,
  SharedTasksSharedStatusTopology
} from "../../../src/messaging/topology/TaskTopology.ts"
import { SharedStatusWorkflowTopology } from "../../../src/messaging/topology/WorkflowTopology.ts"
import { Broker, type Field } from "../../../src/services/Broker.ts"
import { clientOf, firstOf, type Named, named, onBothBrokers } from "./OnBothBrokers.ts"

/** The queue argument of a family of queues, and another value of it, which the broker is to tell from the first. */
type NativeArgument = readonly [field: string, value: Field, argument: string, declared: Field, other: Field]

const taskArguments: ReadonlyArray<NativeArgument> = [
  ["tasks_message_ttl_ms", 60_000, "x-message-ttl", 60_000, 60_001],
  ["dead_letter_exchange", "svc-test-dead", "x-dead-letter-exchange", "svc-test-dead", "svc-test-other"],
  ["task_consumer_timeout_ms", 600_000, "x-consumer-timeout", 600_000, 600_001],
  ["task_single_active_consumer", true, "x-single-active-consumer", true, false],
  ["task_max_priority", 9, "x-max-priority", 9, 8],
  ["task_queue_type", "quorum", "x-queue-type", "quorum", "classic"]
]

const statusArguments: ReadonlyArray<NativeArgument> = [
  ["status_use_streams", true, "x-queue-type", "stream", "quorum"],
  ["status_queue_ttl_ms", 600_000, "x-expires", 600_000, 600_001],
  ["status_stream_max_length_gb", 2, "x-max-length-bytes", 2_147_483_648, 2_147_483_647],
  ["status_stream_max_segment_size_mb", 100, "x-stream-max-segment-size-bytes", 104_857_600, 104_857_601]
]

const aggregationArguments: ReadonlyArray<NativeArgument> = [
  ["aggregation_consumer_timeout_ms", 600_000, "x-consumer-timeout", 600_000, 600_001],
  ["aggregation_single_active_consumer", true, "x-single-active-consumer", true, false],
  ["aggregation_max_priority", 9, "x-max-priority", 9, 8],
  ["aggregation_queue_type", "quorum", "x-queue-type", "quorum", "classic"]
]

const workflowArguments: ReadonlyArray<NativeArgument> = [
  ["workflow_consumer_timeout_ms", 600_000, "x-consumer-timeout", 600_000, 600_001],
  ["workflow_max_priority", 9, "x-max-priority", 9, 8],
  ["workflow_queue_type", "quorum", "x-queue-type", "quorum", "classic"]
]

const hatches: ReadonlyArray<readonly [family: Family, hatch: string]> = [
  ["task", "task_queue_arguments_overrides"],
  ["task", "task_queue_kwargs"],
  ["status", "status_queue_arguments_overrides"],
  ["status", "status_queue_kwargs"],
  ["aggregation", "aggregation_queue_arguments_overrides"],
  ["aggregation", "aggregation_queue_kwargs"],
  ["workflow", "workflow_queue_arguments_overrides"],
  ["workflow", "workflow_queue_kwargs"]
]

const families = {
  task: ({ shared }: Named, given: object) => new SharedTasksSharedStatusTopology({ ...shared, ...given }),
  status: ({ shared }: Named, given: object) =>
    new SharedTasksSharedStatusTopology({
      ...shared,
      status_use_streams: !("status_queue_ttl_ms" in given),
      ...given
    }),
  aggregation: ({ shards, shared }: Named, given: object) =>
    new SharedTasksSharedStatusShardedAggregationTopology({ ...shared, ...shards, ...given }),
  workflow: ({ workflow }: Named, given: object) => new SharedStatusWorkflowTopology({ ...workflow, ...given })
}
type Family = keyof typeof families

/** Declares a queue of the family with the argument, and makes sure that the broker has understood it. */
const understood = Effect.fnUntraced(function* (family: Family, given: object, argument: string, other: Field) {
  const here = yield* named
  const broker = yield* Broker
  const topology = families[family](here, given)
  if (topology.deadLetterExchange !== undefined) {
    const exchanges = [topology.deadLetterExchange]
    yield* Effect.addFinalizer(() => Effect.orDie(broker.remove({ exchanges })))
  }
  const client = yield* clientOf(topology)
  const queue = yield* {
    task: Effect.succeed(here.shared.tasks_queue),
    status: Effect.succeed(here.shared.status_queue),
    aggregation: Effect.suspend(() => client.ensureAggregationQueue([0])),
    workflow: Effect.succeed(here.workflow.stages[0]?.queue ?? "")
  }[family]
  if (family === "aggregation") yield* Effect.addFinalizer(() => Effect.orDie(broker.remove({ queues: [queue] })))
  const declared = topology.families.find((one) => one.family === family)?.arguments ?? {}
  const same = yield* broker.examine({ queue: { name: queue, arguments: declared } })
  assert.strictEqual(same._tag, "Same")
  const changed = yield* broker.examine({ queue: { name: queue, arguments: { ...declared, [argument]: other } } })
  const release = BrokerCapabilities.of((yield* broker.server).version)?.release ?? 0
  const isInert = QueueArguments.examineFor(declared, release).some(
    (found) => found.argument === argument && found.standing === "inert"
  )
  // what a release does not know it does not compare either
  assert.strictEqual(changed._tag, isInert ? "Same" : "Differs")
  if (changed._tag === "Differs") assert.include(changed.differs, argument)
  return declared
})

onBothBrokers("native queue arguments", (provided) => {
  for (const [family, rows] of [
    ["task", taskArguments],
    ["status", statusArguments],
    ["aggregation", aggregationArguments],
    ["workflow", workflowArguments]
  ] as const) {
    it.live.each(rows)(`${family}: %s = %j is %s`, ([field, value, argument, sent, other]) =>
      Effect.gen(function* () {
        const declared = yield* understood(family, { [field]: value }, argument, other)
        assert.strictEqual(declared[argument], sent)
      }).pipe(provided)
    )
  }

  it.live.each(hatches)("escape hatches: %s queues take raw arguments by %s", ([family, hatch]) =>
    Effect.gen(function* () {
      const given = { status_use_streams: false, [hatch]: { "x-max-length": 1_000 } }
      const declared = yield* understood(family, given, "x-max-length", 999)
      assert.strictEqual(declared["x-max-length"], 1_000)
    }).pipe(provided)
  )

  it.live.each([
    ["first", "before"],
    ["next", "after"]
  ] as const)("status_stream_initial_offset = %s affects the consumer, not the declaration", ([offset, expected]) =>
    Effect.gen(function* () {
      const { shared } = yield* named
      const streams = { ...shared, status_use_streams: true }
      const topology = new SharedTasksSharedStatusTopology({ ...streams, status_stream_initial_offset: offset })
      const { publishStatus } = yield* clientOf(topology)
      const { examine } = yield* Broker
      const plain = { name: shared.status_queue, arguments: { "x-queue-type": "stream" } }
      assert.deepStrictEqual(yield* examine({ queue: plain }), { _tag: "Same" })
      yield* publishStatus({ task_id: "t1", status: "before" })
      const first = yield* firstOf(topology.status.queue, topology.status.consumerArguments)
      yield* publishStatus({ task_id: "t1", status: "after" })
      assert.strictEqual(Object(yield* first).status, expected)
    }).pipe(provided)
  )
})
