import { assert, describe, it } from "@effect/vitest"
import { Redacted, Result } from "effect"
import { TopologyError } from "../../src/messaging/envelope/Errors.ts"
import * as Aggregation from "../../src/messaging/topology/Aggregation.ts"
import {
  RoutedTasksSharedStatusShardedAggregationTopology,
  RoutedTasksSharedStatusTopology,
  SharedTasksSharedStatusShardedAggregationTopology,
  SharedTasksSharedStatusTopology
} from "../../src/messaging/topology/TaskTopology.ts"
import { declarations, exchangesOnly } from "../../src/messaging/topology/Topology.ts"
import { SharedStatusWorkflowTopology } from "../../src/messaging/topology/WorkflowTopology.ts"

const status = { status_exchange: "status.exchange", status_queue: "status.queue" }
const tasks = { ...status, tasks_exchange: "tasks.exchange", tasks_queue: "tasks.queue" }
const shared = { ...tasks, tasks_routing_key: "tasks" }
const routed = { ...tasks, task_types: ["generate"] }
const planner = {
  name: "planner",
  queue: "planner.queue",
  binding_keys: ["planner.#"],
  publish_routing_key: "planner.in"
}
const workflow = { ...status, workflow_exchange: "workflow.exchange", stages: [planner] }

/** Every field that may be given wrongly here is of some type. */
const make = (given: object) => () => new SharedTasksSharedStatusTopology({ ...shared, ...given })
const makeSharded = (given: object) => () =>
  new SharedTasksSharedStatusShardedAggregationTopology({ ...shared, ...given })
const makeWorkflow = (given: object) => () => new SharedStatusWorkflowTopology({ ...workflow, ...given })

const stream = { "x-queue-type": "stream" }

describe("the five kinds", () => {
  it("bear the names of the execution graph", () => {
    assert.deepStrictEqual(
      [
        new SharedTasksSharedStatusTopology(shared),
        new SharedTasksSharedStatusShardedAggregationTopology(shared),
        new RoutedTasksSharedStatusTopology(routed),
        new RoutedTasksSharedStatusShardedAggregationTopology(routed),
        new SharedStatusWorkflowTopology(workflow)
      ].map(({ kind }) => kind),
      [
        "shared_tasks_shared_status",
        "shared_tasks_shared_status_sharded_aggregation",
        "routed_tasks_shared_status",
        "routed_tasks_shared_status_sharded_aggregation",
        "shared_status_workflow"
      ]
    )
  })

  it("declare a shared task queue: exchanges in their order, the status queue before the task queue", () => {
    const topology = new SharedTasksSharedStatusTopology({ ...shared, dead_letter_exchange: "dead" })
    assert.deepStrictEqual(declarations(topology), {
      exchanges: [
        { name: "dead", kind: "fanout" },
        { name: "tasks.exchange", kind: "direct" },
        { name: "status.exchange", kind: "topic" }
      ],
      queues: [
        { name: "status.queue", arguments: { "x-queue-type": "stream" } },
        { name: "tasks.queue", arguments: { "x-dead-letter-exchange": "dead" } }
      ],
      bindings: [
        { exchange: "status.exchange", queue: "status.queue", routingKey: "#" },
        { exchange: "tasks.exchange", queue: "tasks.queue", routingKey: "tasks" }
      ]
    })
  })

  it("bind a routed task queue once for each task type: trimmed, without blanks and repetitions", () => {
    const topology = new RoutedTasksSharedStatusTopology({ ...routed, task_types: [" b ", "a", "", "b", "  "] })
    assert.deepStrictEqual(
      topology.bindings.map(({ routingKey }) => routingKey),
      ["#", "b", "a"]
    )
  })

  it("declare an inbox of every stage, bound by each of its keys, with the dead letter exchange on all", () => {
    const writer = {
      name: "writer",
      queue: "w",
      binding_keys: ["writer.in", "writer.re.*"],
      publish_routing_key: "writer.in"
    }
    const topology = new SharedStatusWorkflowTopology({
      ...workflow,
      dead_letter_exchange: "dead",
      stages: [planner, writer]
    })
    assert.deepStrictEqual(
      topology.exchanges.map(({ kind, name }) => [name, kind]),
      [
        ["dead", "fanout"],
        ["workflow.exchange", "topic"],
        ["status.exchange", "topic"]
      ]
    )
    assert.deepStrictEqual(topology.queues.slice(1), [
      { name: "planner.queue", arguments: { "x-dead-letter-exchange": "dead" } },
      { name: "w", arguments: { "x-dead-letter-exchange": "dead" } }
    ])
    assert.deepStrictEqual(
      topology.bindings.slice(1).map(({ queue, routingKey }) => [queue, routingKey]),
      [
        ["planner.queue", "planner.#"],
        ["w", "writer.in"],
        ["w", "writer.re.*"]
      ]
    )
  })

  it("do not declare aggregation queues, which belong to who aggregates", () => {
    const topology = new RoutedTasksSharedStatusShardedAggregationTopology({ ...routed, shard_count: 4 })
    assert.deepStrictEqual(
      topology.queues.map(({ name }) => name),
      ["status.queue", "tasks.queue"]
    )
  })

  it.each([
    [{ aggregation_queue_template: "mail.{shard}", tasks_queue: "mail.3" }, "tasks_queue"],
    [{ aggregation_queue_template: "{shard}.mail.{shard}", status_queue: "12.mail.12" }, "status_queue"],
    [{ aggregation_queue_name_prefix: "mail", tasks_queue: "mail.0-1" }, "tasks_queue"]
  ])("do not let tasks, statuses and shards share a queue: %j", (given, field) => {
    assert.deepStrictEqual(
      refused(makeSharded({ shard_count: 16, ...given })).mistakes.map((mistake) => mistake.field),
      [field]
    )
  })

  it("may have queues whose names only look like those of shards", () => {
    const given = { shard_count: 16, aggregation_queue_template: "mail.{shard}", tasks_queue: "mail.16" }
    assert.strictEqual(makeSharded({ ...given, status_queue: "mail.01" })().tasks.queue, "mail.16")
  })

  it("promise no retry that waits for longer than a retry policy can", () => {
    const { mistakes } = refused(makeWorkflow({ stages: [{ ...planner, retry_delay_ms: 4_147_200_001 }] }))
    assert.deepStrictEqual(
      mistakes.map(({ field }) => field),
      ["stages[0].retry_delay_ms"]
    )
  })

  it("have names that can be found again", () => {
    const { mistakes } = refused(make({ tasks_queue: "half \ud83d", tasks_routing_key: "\udfff" }))
    assert.deepStrictEqual(
      mistakes.map(({ field }) => field),
      ["tasks_routing_key", "tasks_queue"]
    )
  })

  it("declare exchanges alone for who only publishes", () => {
    const topology = new RoutedTasksSharedStatusTopology(routed)
    assert.deepStrictEqual(exchangesOnly(topology), { exchanges: topology.exchanges, queues: [], bindings: [] })
  })

  it("take one message at a time unless they say otherwise", () => {
    assert.strictEqual(make({})().prefetchCount, 1)
    assert.strictEqual(make({ prefetch_count: 100 })().prefetchCount, 100)
  })

  it("keep the URL with its password to themselves", () => {
    const topology = make({ rabbitmq_url: "amqp://user:s3cret@host:5672/" })()
    assert.notInclude(JSON.stringify(topology), "s3cret")
    assert.strictEqual(topology.rabbitmqUrl && Redacted.value(topology.rabbitmqUrl), "amqp://user:s3cret@host:5672/")
    assert.notInclude(refused(make({ rabbitmq_url: "http://user:s3cret@host" })).message, "s3cret")
  })
})

describe("queue arguments", () => {
  it.each([
    ["tasks_message_ttl_ms", 60_000, "x-message-ttl"],
    ["dead_letter_exchange", "dead", "x-dead-letter-exchange"],
    ["task_consumer_timeout_ms", 600_000, "x-consumer-timeout"],
    ["task_single_active_consumer", true, "x-single-active-consumer"],
    ["task_single_active_consumer", false, "x-single-active-consumer"],
    ["task_max_priority", 255, "x-max-priority"],
    ["task_queue_type", "quorum", "x-queue-type"]
  ])("of the task queue: %s = %j is %s", (field, value, argument) => {
    assert.deepStrictEqual(make({ [field]: value })().tasks.family.arguments, { [argument]: value })
  })

  it.each([
    [{}, { "x-queue-type": "stream" }],
    [{ status_use_streams: false }, {}],
    [{ status_use_streams: false, status_queue_ttl_ms: 5 }, { "x-expires": 5 }],
    [{ status_stream_max_length_gb: 2 }, { "x-queue-type": "stream", "x-max-length-bytes": 2_147_483_648 }],
    [
      { status_stream_max_segment_size_mb: 100 },
      { "x-queue-type": "stream", "x-stream-max-segment-size-bytes": 104_857_600 }
    ]
  ])("of the status queue: %j is %j", (given, expected) => {
    assert.deepStrictEqual(make(given)().status.family.arguments, expected)
  })

  it.each([
    ["aggregation_consumer_timeout_ms", 600_000, "x-consumer-timeout"],
    ["aggregation_single_active_consumer", true, "x-single-active-consumer"],
    ["aggregation_max_priority", 1, "x-max-priority"],
    ["aggregation_queue_type", "classic", "x-queue-type"]
  ])("of aggregation queues: %s = %j is %s", (field, value, argument) => {
    assert.deepStrictEqual(makeSharded({ [field]: value })().aggregation.family.arguments, { [argument]: value })
  })

  it.each([
    ["workflow_consumer_timeout_ms", 600_000, "x-consumer-timeout"],
    ["workflow_single_active_consumer", true, "x-single-active-consumer"],
    ["workflow_max_priority", 10, "x-max-priority"],
    ["workflow_queue_type", "quorum", "x-queue-type"]
  ])("of every stage: %s = %j is %s", (field, value, argument) => {
    assert.deepStrictEqual(makeWorkflow({ [field]: value })().stages[0]?.family.arguments, { [argument]: value })
  })

  it("come from the escape hatches too, built-ins first, then overrides, then kwargs", () => {
    const topology = make({
      tasks_message_ttl_ms: 1,
      task_queue_kwargs: { "x-max-length": 3 },
      task_queue_arguments_overrides: { "x-overflow": "reject-publish" }
    })()
    assert.deepStrictEqual(Object.entries(topology.tasks.family.arguments), [
      ["x-message-ttl", 1],
      ["x-overflow", "reject-publish"],
      ["x-max-length", 3]
    ])
  })

  it.each([
    [
      make({
        task_queue_arguments_overrides: { "x-max-length": 1, "x-expires": 2 },
        task_queue_kwargs: { "x-max-length": 1, "x-expires": 2 }
      }),
      "task queue arguments x-expires, x-max-length are set in both task_queue_arguments_overrides and task_queue_kwargs"
    ],
    [
      make({ tasks_message_ttl_ms: 1, task_queue_kwargs: { "x-message-ttl": 1 } }),
      "task queue arguments x-message-ttl are set in both tasks_message_ttl_ms and task_queue_kwargs"
    ],
    [
      make({ status_queue_arguments_overrides: { "x-queue-type": "quorum" } }),
      "status queue arguments x-queue-type are set in both status_use_streams and status_queue_arguments_overrides"
    ],
    [
      makeSharded({ aggregation_queue_type: "quorum", aggregation_queue_kwargs: { "x-queue-type": "quorum" } }),
      "aggregation queue arguments x-queue-type are set in both aggregation_queue_type and aggregation_queue_kwargs"
    ],
    [
      makeWorkflow({
        workflow_queue_kwargs: { "x-max-length": 5 },
        stages: [{ ...planner, queue_kwargs: { "x-max-length": 6 } }]
      }),
      "workflow queue arguments x-max-length are set in both workflow_queue_kwargs and stages[0].queue_kwargs"
    ]
  ])("from two sources are a conflict that names the family, the sources and the sorted keys (%#)", (make, message) => {
    assert.include(refused(make).message, message)
  })

  it.each([
    [make({ task_queue_kwargs: stream }), "task_queue_kwargs.x-queue-type"],
    [make({ task_queue_arguments_overrides: stream }), "task_queue_arguments_overrides.x-queue-type"],
    [makeSharded({ aggregation_queue_kwargs: stream }), "aggregation_queue_kwargs.x-queue-type"],
    [makeWorkflow({ workflow_queue_kwargs: stream }), "workflow_queue_kwargs.x-queue-type"]
  ])("refuse a stream for what is worked on, where an acknowledgement removes nothing (%#)", (make, field) => {
    const { mistakes } = refused(make)
    assert.include(
      mistakes.map((mistake) => mistake.field),
      field
    )
    assert.match(mistakes.map(({ problem }) => problem).join(), /must not be stream/)
  })

  it.each([0, 256, 1.5, -1])("refuse the priority maximum %d, whatever it comes from", (maximum) => {
    const raw = { "x-max-priority": maximum }
    for (const [make, field] of [
      [() => new SharedTasksSharedStatusTopology({ ...shared, task_max_priority: maximum }), "task_max_priority"],
      [() => new SharedTasksSharedStatusTopology({ ...shared, task_queue_kwargs: raw }), "task_max_priority"],
      [makeSharded({ aggregation_max_priority: maximum }), "aggregation_max_priority"],
      [makeSharded({ aggregation_queue_arguments_overrides: raw }), "aggregation_max_priority"],
      [makeWorkflow({ workflow_max_priority: maximum }), "workflow_max_priority"],
      [makeWorkflow({ stages: [{ ...planner, queue_kwargs: raw }] }), "workflow_max_priority"]
    ] as const) {
      const [mistake, ...others] = refused(make).mistakes
      assert.strictEqual(mistake?.field, field)
      assert.include(mistake?.problem, "must be an integer from 1 to 255")
      assert.deepStrictEqual(others, [])
    }
  })

  it("do not send a priority maximum to quorum queues, which refuse it before 4.0 and need none after", () => {
    const topology = make({ task_queue_type: "quorum", task_max_priority: 10 })()
    assert.deepStrictEqual(topology.tasks.family.arguments, { "x-queue-type": "quorum" })
    assert.strictEqual(topology.tasks.family.maxPriority, 10)
    assert.deepStrictEqual(topology.check("4.1.0"), { refusals: [], warnings: [] })
    assert.deepStrictEqual(topology.check("3.13.7").refusals, [
      {
        field: "task_max_priority",
        problem: "requires a classic queue before RabbitMQ 4.0: quorum queues have no priorities (RabbitMQ 3.13.7)"
      }
    ])
  })

  it("refuse what every broker would refuse, in the field that it came from", () => {
    const wrong = make({
      task_queue_type: "quorum",
      task_queue_kwargs: { "x-max-priority": 5, "x-queue-mode": "lazy" }
    })
    assert.deepStrictEqual(
      refused(wrong).mistakes.map(({ field }) => field),
      ["task_queue_kwargs.x-max-priority", "task_queue_kwargs.x-queue-mode"]
    )
    assert.strictEqual(
      refused(make({ status_queue_kwargs: { "x-expires": 5 } })).mistakes[0]?.problem,
      "is not accepted by stream queues: only classic and quorum queues do"
    )
  })

  it("warn about what a broker would ignore: a typo, and a consumer timeout on an old broker", () => {
    const typo = make({ task_queue_kwargs: { "x-mesage-ttl": 5 } })()
    assert.deepStrictEqual(
      typo.warnings.map(({ field }) => field),
      ["task_queue_kwargs.x-mesage-ttl"]
    )
    const timeout = make({ task_consumer_timeout_ms: 600_000 })()
    assert.deepStrictEqual(timeout.warnings, [])
    const warned = (version: string) => timeout.check(version).warnings.map(({ field }) => field)
    assert.deepStrictEqual(warned("3.10.8"), ["task_consumer_timeout_ms"])
    assert.deepStrictEqual(warned("3.12.0"), [])
    assert.deepStrictEqual(warned("4.3.1"), ["task_consumer_timeout_ms"])
    assert.deepStrictEqual(warned("2.1"), ["broker"])
  })
})

describe("a status queue", () => {
  it("cannot be a stream that expires: the broker refuses it, so both fields are named", () => {
    const [mistake] = refused(make({ status_queue_ttl_ms: 5 })).mistakes
    assert.strictEqual(mistake?.field, "status_queue_ttl_ms")
    assert.include(mistake?.problem, "status_use_streams")
  })

  it("says about stream settings without a stream that they do nothing", () => {
    const topology = make({ status_use_streams: false, status_stream_max_length_gb: 1 })()
    assert.deepStrictEqual(topology.status.family.arguments, {})
    assert.deepStrictEqual(
      topology.warnings.map(({ field }) => field),
      ["status_stream_max_length_gb"]
    )
  })

  it.each([["first"], ["last"], ["next"], [0], [17], ["1h"], [new Date(0)]])(
    "begins at %j: an argument of the consumer, not of the queue",
    (offset) => {
      const { status } = make({ status_stream_initial_offset: offset })()
      assert.deepStrictEqual(status.consumerArguments, { "x-stream-offset": offset })
      assert.notProperty(status.family.arguments, "x-stream-offset")
    }
  )

  it("begins at last where nothing is said, and nowhere where it is no stream", () => {
    assert.deepStrictEqual(make({})().status.consumerArguments, { "x-stream-offset": "last" })
    assert.deepStrictEqual(make({ status_use_streams: false })().status.consumerArguments, {})
  })

  it.each([["bogus"], [-1], [1.5], ["1"], [new Date(Number.NaN)]])(
    "refuses the offset %j, which would close the connection",
    (offset) => {
      assert.strictEqual(
        refused(make({ status_stream_initial_offset: offset })).mistakes[0]?.field,
        "status_stream_initial_offset"
      )
    }
  )

  it("refuses segments above the broker's 3,000,000,000 bytes", () => {
    const { mistakes } = refused(make({ status_stream_max_segment_size_mb: 4096 }))
    assert.strictEqual(mistakes[0]?.field, "status_stream_max_segment_size_mb")
  })
})

describe("a constructor", () => {
  it("throws every mistake at once, with the class, the fields and the ways out", () => {
    const error = refused(
      () =>
        new RoutedTasksSharedStatusTopology({
          ...routed,
          task_types: [" "],
          tasks_queue: "status.queue",
          status_exchange: "amq.topic",
          prefetch_count: 0,
          tasks_message_ttl_ms: 0
        })
    )
    assert.strictEqual(error.topology, "RoutedTasksSharedStatusTopology")
    assert.sameMembers(
      error.mistakes.map(({ field }) => field),
      ["task_types", "status_exchange", "prefetch_count", "tasks_message_ttl_ms", "status_queue"]
    )
    assert.include(error.message, "task_types must name at least one task type")
  })

  it.each([
    [makeWorkflow({ stages: [] }), "stages"],
    [makeWorkflow({ stages: [{ ...planner, name: " " }] }), "stages[0].name"],
    [makeWorkflow({ stages: [planner, { ...planner, queue: "other" }] }), "stages[1].name"],
    [makeWorkflow({ stages: [{ ...planner, queue: "" }] }), "stages[0].queue"],
    [makeWorkflow({ stages: [planner, { ...planner, name: "other" }] }), "stages[1].queue"],
    [makeWorkflow({ stages: [{ ...planner, binding_keys: [" "] }] }), "stages[0].binding_keys"],
    [makeWorkflow({ stages: [{ ...planner, publish_routing_key: " " }] }), "stages[0].publish_routing_key"],
    [makeWorkflow({ stages: [{ ...planner, publish_routing_key: "writer.in" }] }), "stages[0].publish_routing_key"],
    [makeWorkflow({ entry_routes: [entry({ name: "" })] }), "entry_routes[0].name"],
    [makeWorkflow({ entry_routes: [entry({}), entry({})] }), "entry_routes[1].name"],
    [makeWorkflow({ entry_routes: [entry({ routing_key: " " })] }), "entry_routes[0].routing_key"],
    [makeWorkflow({ entry_routes: [entry({ target_stage: "nobody" })] }), "entry_routes[0].target_stage"],
    [makeWorkflow({ entry_routes: [entry({ routing_key: "elsewhere" })] }), "entry_routes[0].routing_key"],
    [makeWorkflow({ stages: [{ ...planner, allowed_next_stages: ["nobody"] }] }), "stages[0].allowed_next_stages"],
    [
      makeWorkflow({ stages: [{ ...planner, terminal: true, allowed_next_stages: ["planner"] }] }),
      "stages[0].allowed_next_stages"
    ],
    [makeWorkflow({ stages: [{ ...planner, timeout_seconds: 0 }] }), "stages[0].timeout_seconds"],
    [makeWorkflow({ stages: [{ ...planner, max_inflight: 0 }] }), "stages[0].max_inflight"],
    [makeWorkflow({ stages: [{ ...planner, retry_delay_ms: 0 }] }), "stages[0].retry_delay_ms"],
    [makeWorkflow({ stages: [{ ...planner, dedup_key_fields: ["a", "a"] }] }), "stages[0].dedup_key_fields"],
    [makeWorkflow({ stages: [{ ...planner, accepted_actions: [{ action: "" }] }] }), "stages[0].accepted_actions"],
    [makeSharded({ shard_count: 0 }), "shard_count"],
    [makeSharded({ aggregation_queue_template: "aggregation.queue" }), "aggregation_queue_template"],
    [makeSharded({ aggregation_routing_prefix: "#" }), "aggregation_routing_prefix"],
    [make({ tasks_exchange: "status.exchange" }), "status_exchange"],
    [make({ tasks_queue: "q".repeat(256) }), "tasks_queue"]
  ])("names the field of a mistake (%#)", (make, field) => {
    assert.strictEqual(refused(make).mistakes[0]?.field, field)
  })
})

describe("aggregation queues", () => {
  const topology = makeSharded({ shard_count: 4, aggregation_max_priority: 9 })()

  it.each([
    [[2], "aggregation.queue.2", ["agg.2"]],
    [[3, 1, 3], "aggregation.queue.shards.1-3", ["agg.1", "agg.3"]]
  ])("of the shards %j are named %s", (shards, name, keys) => {
    const queue = Result.getOrThrow(Aggregation.aggregationQueueOf(topology, shards))
    assert.strictEqual(queue.name, name)
    assert.deepStrictEqual(queue.declarations.queues, [{ name, arguments: { "x-max-priority": 9 } }])
    assert.deepStrictEqual(
      queue.declarations.bindings,
      keys.map((routingKey) => ({ exchange: "status.exchange", queue: name, routingKey }))
    )
  })

  it("may bear a name of one's own, bound by their shards nonetheless", () => {
    const queue = Result.getOrThrow(Aggregation.aggregationQueueOf(topology, [0], "mine"))
    assert.strictEqual(queue.name, "mine")
    assert.deepStrictEqual(
      queue.declarations.bindings.map(({ routingKey }) => routingKey),
      ["agg.0"]
    )
  })

  it.each([
    [[], "contains no shard"],
    [[4], "shard 4: shards range from 0 to 3"],
    [[-1], "shard -1: shards range from 0 to 3"],
    [[0.5], "shard 0.5"]
  ])("of the shards %j are refused", (shards, message) => {
    const refused = Aggregation.aggregationQueueOf(topology, shards)
    assert.isTrue(Result.isFailure(refused))
    assert.include(Result.isFailure(refused) ? refused.failure.message : "", message)
  })

  it("are not to be had from a topology without shards", () => {
    const refused = Aggregation.aggregationQueueOf(make({})(), [0])
    assert.strictEqual(Result.isFailure(refused) && refused.failure.reason, "no_aggregation")
  })
})

function entry(given: object) {
  return { name: "start", routing_key: "planner.start.in", target_stage: "planner", ...given }
}

function refused(make: () => unknown): TopologyError {
  try {
    make()
  } catch (error) {
    if (error instanceof TopologyError) return error
    throw error
  }
  throw new Error("it was taken")
}
