import { assert, describe, it } from "@effect/vitest"
import { Layer } from "effect"
import { SharedTasksSharedStatusTopology } from "../../src/messaging/topology/TaskTopology.ts"
import { defineTasks, isTasks, TasksError } from "../../src/tasks/Tasks.ts"

const topology = (name: string, status = "shop.status") =>
  new SharedTasksSharedStatusTopology({
    tasks_exchange: "shop.tasks",
    tasks_queue: name,
    tasks_routing_key: name,
    status_exchange: status,
    status_queue: status
  })

const mistakesOf = (options: unknown): string => {
  try {
    Reflect.apply(defineTasks, undefined, [options])
    return assert.fail("there was no mistake")
  } catch (error) {
    assert.instanceOf(error, TasksError)
    return error.message
  }
}

describe("the definition of tasks", () => {
  it("has the queues of all topologies, with their dead-letter queues, and the options of the status runtime", () => {
    const tasks = defineTasks({
      topologies: [topology("mails"), topology("letters")],
      workers: Layer.empty,
      terminalStatuses: ["sent"],
      prefixes: { statuses: "shop", deadLetters: "shop-dead" },
      otherQueues: ["sums"],
      runtime: { storeTtlSeconds: 60 }
    })
    assert.isTrue(isTasks(tasks))
    assert.deepStrictEqual(tasks.queues, ["mails", "mails.dlq", "letters", "letters.dlq", "sums", "sums.dlq"])
    const { dlqStorePrefix, observationStorePrefix, sseTerminalStatuses, storePrefix, storeTtlSeconds } = tasks.runtime
    assert.deepStrictEqual(
      [storePrefix, dlqStorePrefix, observationStorePrefix, storeTtlSeconds],
      ["shop", "shop-dead", undefined, 60]
    )
    assert.deepStrictEqual([sseTerminalStatuses?.has("sent"), sseTerminalStatuses?.has("completed")], [true, false])
  })

  it("is not any other value", () => {
    for (const value of [undefined, null, 1, {}, { workers: Layer.empty }]) assert.isFalse(isTasks(value))
  })

  it.each<[string, unknown, RegExp]>([
    ["no topology", { topologies: [], workers: Layer.empty }, /topologies must be a list of at least one topology/],
    ["no list", { topologies: topology("mails"), workers: Layer.empty }, /topologies must be a list/],
    ["another value", { topologies: [topology("a"), {}], workers: Layer.empty }, /topologies\[1\] is no topology/],
    [
      "two status queues",
      { topologies: [topology("a"), topology("b", "other")], workers: Layer.empty },
      /topologies\[1\] has the status exchange other and the status queue other, but topologies\[0\] has shop\.status/
    ],
    [
      "one queue twice",
      { topologies: [topology("a"), topology("a")], workers: Layer.empty },
      /topologies\[0\] and topologies\[1\] both have the queue a/
    ],
    ["no workers", { topologies: [topology("a")], workers: {} }, /workers must be a Layer/],
    [
      "two mistakes",
      { topologies: [topology("a"), topology("a")], workers: 1 },
      /both have the queue a; workers must be a Layer/
    ]
  ])("names its mistakes: %s", (_, options, sentence) => assert.match(mistakesOf(options), sentence))
})
