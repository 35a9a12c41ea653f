import type { SharedStatusWorkflowTopology, Stage } from "./WorkflowTopology.ts"

/** A workflow as it is meant, without anything that ran: for routers and people. */
export const topologyGraph = ({ entryRoutes, stages, status, workflowExchange }: SharedStatusWorkflowTopology) => ({
  workflow_exchange: workflowExchange,
  status_queue: status.queue,
  stages: stages.map((stage) => ({
    id: stage.name,
    name: stage.name,
    queue: stage.queue,
    binding_keys: stage.bindingKeys,
    publish_routing_key: stage.publishRoutingKey,
    queue_arguments: stage.family.arguments,
    ...stage.contract
  })),
  entry_routes: entryRoutes.map(({ name, routingKey, targetStage }) => ({
    name,
    routing_key: routingKey,
    target_stage: targetStage
  })),
  edges: stages.flatMap((stage) => edgesOf(stage, stages))
})

export type TopologyGraph = ReturnType<typeof topologyGraph>

/**
 * The hand-overs that contracts allow. A stage whose contract names none has no edge: anything is allowed there, and
 * what its binding keys match says who reaches it, not whom it reaches.
 */
const edgesOf = ({ contract, name }: Stage, stages: ReadonlyArray<Stage>) =>
  (contract.allowed_next_stages ?? []).map((target) => ({
    source: name,
    target,
    routing_key: stages.find((stage) => stage.name === target)?.publishRoutingKey ?? ""
  }))

/** `flowchart LR` text. Identifiers are made of what Mermaid takes, and made different where that made them equal. */
export const topologyMermaid = (graph: TopologyGraph): string => {
  const identify = identifiers()
  const ids = new Map(graph.stages.map(({ id }) => [id, identify(`stage_${id}`)]))
  return [
    "flowchart LR",
    ...graph.stages.map(({ id, name, queue }) => `    ${ids.get(id)}["${label(name)}\\n${label(queue)}"]`),
    ...graph.entry_routes.map(
      ({ name, routing_key, target_stage }) =>
        `    ${identify(`entry_${name}`)}["${label(name)}\\n${label(routing_key)}"] --> ${ids.get(target_stage)}`
    ),
    ...graph.edges.map(
      ({ routing_key, source, target }) => `    ${ids.get(source)} -->|${label(routing_key)}| ${ids.get(target)}`
    )
  ].join("\n")
}

const identifiers = () => {
  const taken = new Set<string>()
  return (name: string): string => {
    const plain = name.replace(/[^0-9A-Za-z_]/g, "_")
    let id = plain
    for (let number = 2; taken.has(id); number++) id = `${plain}_${number}`
    taken.add(id)
    return id
  }
}

/** Inside quotes and between bars: Mermaid's own entities, and one line. */
const label = (text: string): string =>
  text
    .replace(/#/g, "#35;")
    .replace(/"/g, "#quot;")
    .replace(/\|/g, "#124;")
    .replace(/</g, "#lt;")
    .replace(/>/g, "#gt;")
    .replace(/\s+/g, " ")
