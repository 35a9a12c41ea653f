import type { SharedStatusWorkflowTopology, Stage } from "./WorkflowTopology.ts"

/** Returns the stages, entry routes and allowed transitions of a workflow as JSON, for routers and documentation. */
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

type TopologyGraph = ReturnType<typeof topologyGraph>

/**
 * Returns the transitions between stages that `allowed_next_stages` lists. A stage without `allowed_next_stages` has no
 * edges here, although it may publish to any stage.
 */
const edgesOf = ({ contract, name }: Stage, stages: ReadonlyArray<Stage>) =>
  (contract.allowed_next_stages ?? []).map((target) => ({
    source: name,
    target,
    routing_key: stages.find((stage) => stage.name === target)?.publishRoutingKey ?? ""
  }))

/**
 * Renders a workflow as Mermaid `flowchart LR` text. Replaces characters that Mermaid does not accept in identifiers.
 * The identifiers stay unique.
 */
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

/** Escapes a label, so that quotes, pipes and line breaks do not end it. */
const label = (text: string): string =>
  text
    .replace(/#/g, "#35;")
    .replace(/"/g, "#quot;")
    .replace(/\|/g, "#124;")
    .replace(/</g, "#lt;")
    .replace(/>/g, "#gt;")
    .replace(/\s+/g, " ")
