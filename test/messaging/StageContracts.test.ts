import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import type { ContractError } from "../../src/messaging/envelope/Errors.ts"
import * as WorkflowEnvelope from "../../src/messaging/envelope/WorkflowEnvelope.ts"
import * as StageContract from "../../src/messaging/topology/StageContract.ts"
import { topologyGraph, topologyMermaid } from "../../src/messaging/topology/TopologyGraph.ts"
import { SharedStatusWorkflowTopology, type Stage } from "../../src/messaging/topology/WorkflowTopology.ts"

const inbox = (name: string) => ({
  name,
  queue: `${name}.queue`,
  binding_keys: [`${name}.#`],
  publish_routing_key: `${name}.in`
})
const topology = new SharedStatusWorkflowTopology({
  status_exchange: "s",
  status_queue: "sq",
  workflow_exchange: "w",
  stages: [
    {
      ...inbox("planner"),
      produced_actions: [
        { action: "write", payload: { name: "Draft", required_fields: ["text"], optional_fields: ["tone"] } }
      ],
      allowed_next_stages: ["writer"],
      dedup_key_fields: ["request_id"]
    },
    { ...inbox("writer"), accepted_actions: [{ action: "write" }, { action: "rewrite" }], terminal: true },
    inbox("free")
  ],
  entry_routes: [{ name: 'the "start"|<#>\n', routing_key: "planner.start", target_stage: "planner" }]
})
const planner = stage("planner")
const writer = stage("writer")
const free = stage("free")

describe("a hand-over", () => {
  it("that both contracts allow is kept", () => {
    assert.strictEqual(broken(planner, writer, { action: "write", payload: { text: "t", tone: "dry" } }), undefined)
    assert.strictEqual(broken(undefined, writer, { action: "rewrite" }), undefined)
    assert.strictEqual(broken(free, free, {}), undefined)
  })

  it("out of a terminal stage is terminal_stage_handoff", () => {
    assert.deepInclude(broken(writer, free, {}), {
      reason: "terminal_stage_handoff",
      stage: "writer",
      sourceStage: "writer",
      targetStage: "free"
    })
  })

  it("to a stage that is not allowed is forbidden_transition", () => {
    assert.deepInclude(broken(planner, free, { action: "write", payload: { text: "t" } }), {
      reason: "forbidden_transition",
      action: "write"
    })
  })

  it.each([[undefined], ["erase"]])("with the action %s, which is not listed, is unsupported_action", (action) => {
    assert.deepInclude(broken(planner, writer, { action }), { reason: "unsupported_action", stage: "planner" })
    assert.deepInclude(broken(undefined, writer, { action }), {
      reason: "unsupported_action",
      stage: "writer",
      message: `The accepted_actions of stage writer are write, rewrite, but the action of the message is ${action ?? "none"}.`
    })
  })

  it.each([
    [{}, "lacks text"],
    [{ text: "t", more: 1 }, "contains more"]
  ])("with the payload %j is payload_schema_violation", (payload, problem) => {
    const error = broken(planner, writer, { action: "write", payload })
    assert.deepInclude(error, { reason: "payload_schema_violation" })
    assert.include(error?.message, problem)
    assert.include(error?.message, "Draft v1")
  })
})

describe("a message that arrives", () => {
  it("must have an action that the stage accepts", () => {
    const refused = StageContract.checkConsume(writer, envelope({ action: "erase" }))
    assert.deepInclude(Result.isFailure(refused) ? refused.failure : {}, {
      reason: "unsupported_action",
      sourceStage: null
    })
    assert.isTrue(Result.isSuccess(StageContract.checkConsume(free, envelope({}))))
  })

  it("has the golden signature of its work", () => {
    const given = { task_id: "task-1", action: "plan", payload: { request_id: "request-1", other: 1 } }
    assert.deepStrictEqual(
      StageContract.dedupSignature(planner, given),
      Result.succeed("8ef5208f7f81e11742c9d11bbe1bd3c0a22da90aa13dd3fae64334f502748580")
    )
    assert.deepStrictEqual(StageContract.dedupSignature(free, given), Result.succeed(undefined))
  })
})

describe("the graph of a workflow", () => {
  it("holds its stages with their contracts, its entries, and the hand-overs that are allowed", () => {
    const graph = topologyGraph(topology)
    assert.deepStrictEqual(graph.stages[2], {
      id: "free",
      name: "free",
      queue: "free.queue",
      binding_keys: ["free.#"],
      publish_routing_key: "free.in",
      queue_arguments: {}
    })
    assert.deepStrictEqual(graph.stages[1]?.terminal, true)
    assert.deepStrictEqual(graph.edges, [{ source: "planner", target: "writer", routing_key: "writer.in" }])
    assert.deepStrictEqual([graph.workflow_exchange, graph.status_queue], ["w", "sq"])
  })

  it("is Mermaid text in which no name can break a line or a quote", () => {
    assert.strictEqual(
      topologyMermaid(topologyGraph(topology)),
      [
        "flowchart LR",
        '    stage_planner["planner\\nplanner.queue"]',
        '    stage_writer["writer\\nwriter.queue"]',
        '    stage_free["free\\nfree.queue"]',
        '    entry_the__start______["the #quot;start#quot;#124;#lt;#35;#gt; \\nplanner.start"] --> stage_planner',
        "    stage_planner -->|writer.in| stage_writer"
      ].join("\n")
    )
  })
})

function stage(name: string): Stage {
  const found = topology.stages.find((stage) => stage.name === name)
  if (found === undefined) throw new Error(`no stage ${name}`)
  return found
}

function envelope(given: object) {
  return Result.getOrThrow(WorkflowEnvelope.read({ task_id: "t", stage: "s", ...given }, "m"))
}

function broken(source: Stage | undefined, target: Stage, given: object): ContractError | undefined {
  const checked = StageContract.checkPublish(source, target, envelope(given))
  return Result.isFailure(checked) ? checked.failure : undefined
}
