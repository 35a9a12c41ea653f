import { TaskTopology } from "../messaging/topology/TaskTopology.ts"
import type { Topology } from "../messaging/topology/Topology.ts"
import { SharedStatusWorkflowTopology } from "../messaging/topology/WorkflowTopology.ts"

export class TaskQueues {
  readonly #tasks: ReadonlyArray<TaskTopology>
  readonly #workflows: ReadonlyArray<SharedStatusWorkflowTopology>

  constructor(topologies: ReadonlyArray<Topology>) {
    this.#tasks = topologies.filter((topology) => topology instanceof TaskTopology)
    this.#workflows = topologies.filter((topology) => topology instanceof SharedStatusWorkflowTopology)
  }

  get all(): ReadonlyArray<string> {
    return [
      ...new Set([
        ...this.#tasks.map(({ tasks: { queue } }) => queue),
        ...this.#workflows.flatMap(({ stages }) => stages.map(({ queue }) => queue))
      ])
    ]
  }

  ofTask(taskType: string | undefined): string | undefined {
    return onlyQueue(
      this.#tasks.flatMap(({ tasks: { queue, routing } }) =>
        routing._tag === "Shared" || (taskType !== undefined && routing.taskTypes.includes(taskType)) ? [queue] : []
      )
    )
  }

  /**
   * Returns the queue of a stage. `publisher` is the queue of the publishing stage. It selects the workflow if two
   * workflows have stages with the same name.
   */
  ofStage(stage: string, publisher: string | null): string | undefined {
    const own = this.#workflows.filter(({ stages }) => stages.some(({ queue }) => queue === publisher))
    return onlyQueue(
      (own.length > 0 ? own : this.#workflows).flatMap(({ stages }) =>
        stages.flatMap(({ name, queue }) => (name === stage ? [queue] : []))
      )
    )
  }
}

const onlyQueue = (queues: ReadonlyArray<string>): string | undefined =>
  new Set(queues).size === 1 ? queues[0] : undefined
