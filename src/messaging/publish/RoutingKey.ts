import { Result } from "effect"
import { fitsShortString, isWellFormed, maxShortBytes, textExpected } from "../envelope/Envelope.ts"
import { InvalidPublish } from "../envelope/Errors.ts"
import { parentTaskId, type StatusEvent } from "../envelope/StatusEvent.ts"
import type { TaskEnvelope } from "../envelope/TaskEnvelope.ts"
import * as HandlerFailure from "../retry/HandlerFailure.ts"
import * as Aggregation from "../topology/Aggregation.ts"
import * as Shards from "../topology/Shards.ts"
import { TaskTopology } from "../topology/TaskTopology.ts"
import * as TopicPattern from "../topology/TopicPattern.ts"
import type { Topology } from "../topology/Topology.ts"
import { type EntryRoute, SharedStatusWorkflowTopology, type Stage } from "../topology/WorkflowTopology.ts"

export const ofTask = (topology: Topology, task: TaskEnvelope): Result.Result<string, InvalidPublish> => {
  if (!(topology instanceof TaskTopology)) {
    return refused(
      "only_workflow",
      "topology",
      "A workflow topology has no task queue: publish to a stage (publishToStage) or an entry route (publishToEntry)."
    )
  }
  const { aggregation, tasks } = topology
  if (aggregation !== undefined && Aggregation.isRoutingKey(aggregation, task.task_id)) {
    return refused("task_id", "task_id", shardKeyProblem(aggregation))
  }
  if (tasks.routing._tag === "Shared") {
    const { routingKey, strategy } = tasks.routing
    return strategy === undefined ? Result.succeed(routingKey) : keyFromStrategy(() => strategy.taskRoutingKey(task))
  }
  const key = task.task_type?.trim() ?? ""
  return key === ""
    ? refused(
        "task_type_required",
        "task_type",
        "The task needs a task_type, which is its routing key in a routed topology."
      )
    : Result.succeed(key)
}

/** Returns the routing key of a status. It is the task id unless the topology has a routing strategy. */
export const ofStatus = (topology: Topology, event: StatusEvent): Result.Result<string, InvalidPublish> => {
  if (!(topology instanceof TaskTopology)) return Result.succeed(event.task_id)
  const { aggregation, tasks } = topology
  if (aggregation !== undefined && Aggregation.isRoutingKey(aggregation, event.task_id)) {
    return refused("task_id", "task_id", shardKeyProblem(aggregation))
  }
  const strategy = tasks.routing._tag === "Shared" ? tasks.routing.strategy : undefined
  return strategy === undefined
    ? Result.succeed(event.task_id)
    : keyFromStrategy(() => strategy.statusRoutingKey(event))
}

export const ofAggregation = (
  topology: Topology,
  event: StatusEvent
): Result.Result<{ readonly shard: number; readonly routingKey: string }, InvalidPublish> => {
  const aggregation = topology instanceof TaskTopology ? topology.aggregation : undefined
  if (aggregation === undefined) return Result.fail(Aggregation.noAggregationError())
  const parent = parentTaskId(event)
  if (parent === undefined) {
    return refused(
      "parent_task_id_required",
      "meta.parent_task_id",
      "An aggregation event needs meta.parent_task_id, which determines its shard."
    )
  }
  const shard = Shards.shardOf(parent, aggregation.shardCount)
  return Result.succeed({ shard, routingKey: Aggregation.routingKey(aggregation, shard) })
}

export const findStage = (topology: Topology, name: string, field = "stage"): Result.Result<Stage, InvalidPublish> => {
  if (!(topology instanceof SharedStatusWorkflowTopology)) return noWorkflow()
  const found = topology.stages.find((stage) => stage.name === name)
  if (found !== undefined) return Result.succeed(found)
  const known = topology.stages.map(({ name }) => name).join(", ")
  return refused("unknown_stage", field, `The workflow has no stage ${name}. Its stages are ${known}.`)
}

export const findEntryRoute = (topology: Topology, name: string): Result.Result<EntryRoute, InvalidPublish> => {
  if (!(topology instanceof SharedStatusWorkflowTopology)) return noWorkflow()
  const found = topology.entryRoutes.find((entry) => entry.name === name)
  if (found !== undefined) return Result.succeed(found)
  const known = topology.entryRoutes.map(({ name }) => name).join(", ") || "none"
  return refused("unknown_entry", "route", `The workflow has no entry route ${name}. Its entry routes are: ${known}.`)
}

export const stageOfQueue = (topology: Topology, queue: string): Result.Result<Stage, InvalidPublish> => {
  if (!(topology instanceof SharedStatusWorkflowTopology)) return noWorkflow()
  const found = topology.stages.find((stage) => stage.queue === queue)
  return found === undefined
    ? refused(
        "unknown_stage",
        "queue",
        `No stage of the workflow has the queue ${queue}. Pass the queue or the name of a stage.`
      )
    : Result.succeed(found)
}

/** Returns the stage that is bound to a routing key. Exact keys take precedence over entry routes and patterns. */
export const stageOfKey = (topology: Topology, routingKey: string): Result.Result<Stage, InvalidPublish> => {
  if (!(topology instanceof SharedStatusWorkflowTopology)) return noWorkflow()
  const { entryRoutes, stages } = topology
  const target = () => entryRoutes.find((entry) => entry.routingKey === routingKey)?.targetStage
  const found =
    stages.find(({ publishRoutingKey }) => publishRoutingKey === routingKey) ??
    stages.find(({ bindingKeys }) => bindingKeys.includes(routingKey)) ??
    stages.find(({ name }) => name === target()) ??
    stages.find(({ bindingKeys }) => bindingKeys.some((pattern) => TopicPattern.matches(pattern, routingKey)))
  return found === undefined
    ? refused(
        "unroutable_key",
        "routing_key",
        `No stage of the workflow is bound to the routing key ${routingKey}: use a binding key of a stage or an entry route.`
      )
    : Result.succeed(found)
}

const refused = (reason: InvalidPublish["reason"], field: string, message: string) =>
  Result.fail(new InvalidPublish({ reason, field, message }))

const noWorkflow = () =>
  refused(
    "not_a_workflow",
    "topology",
    "This topology has no stages or entry routes: use a SharedStatusWorkflowTopology."
  )

const shardKeyProblem = ({ routingPrefix }: Aggregation.AggregationPlane): string =>
  `task_id must not be ${routingPrefix}. followed by a number. Statuses are routed by task id, but this task id is the routing key of an aggregation shard.`

/** Calls the strategy and returns its exceptions as `InvalidPublish`. A defect would be retried like a broker error. */
const keyFromStrategy = (choose: () => unknown): Result.Result<string, InvalidPublish> => {
  let key: unknown
  try {
    key = choose()
  } catch (error) {
    return refused("routing_key", "routing_strategy", `The routing strategy threw: ${HandlerFailure.of(error).text}`)
  }
  if (typeof key === "string" && fitsShortString(key) && isWellFormed(key)) return Result.succeed(key)
  const problem = `The routing strategy must return ${textExpected}, of at most ${maxShortBytes} bytes.`
  return refused("routing_key", "routing_strategy", problem)
}
