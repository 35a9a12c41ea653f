import { type Attempt, Attempts } from "./Attempts.ts"
import type { RecordedObservation } from "./Evidence.ts"
import type { GraphBuilder } from "./GraphBuilder.ts"

export interface TaskNodes {
  readonly taskId: string
  readonly node: string
  readonly attempts: Attempts
}

/**
 * Adds a node for each delivery and each workflow message. An edge leads to the message from the stage attempt that
 * published it. If the publisher is unknown, the edge starts at the task.
 */
export const addNodes = (
  builder: GraphBuilder,
  taskId: string,
  node: string,
  observations: ReadonlyArray<RecordedObservation>,
  queueOfStage: (stage: string) => string | null
): TaskNodes => {
  // Attempts are numbered per task, so that new attempts of one task do not change the node ids of another task.
  const attemptsByStage = new Map<string, number>()
  const received: Array<readonly [Attempt, RecordedObservation]> = []
  for (const observation of observations) {
    const place = received.length + 1
    if (receiptEvents.has(observation.type)) {
      const attempt = addTaskAttempt(builder, taskId, place, observation)
      builder.addEdge(node, "received_by", attempt.id, observation)
      received.push([attempt, observation])
    } else if (observation.type === "WorkflowMessageReceived") {
      const stage = observation.text("stage") ?? "unknown"
      const number = (attemptsByStage.get(stage) ?? 0) + 1
      attemptsByStage.set(stage, number)
      received.push([
        addStageAttempt(builder, taskId, place, { stage, number, inbox: queueOfStage(stage) }, observation),
        observation
      ])
    }
  }
  const attempts = new Attempts(received.map(([attempt]) => attempt))
  const taskNodes = { taskId, node, attempts }
  addMessages(builder, taskNodes, observations, received)
  return taskNodes
}

const addMessages = (
  builder: GraphBuilder,
  { attempts, node, taskId }: TaskNodes,
  observations: ReadonlyArray<RecordedObservation>,
  received: ReadonlyArray<readonly [Attempt, RecordedObservation]>
): void => {
  const known = new Map<string, string>()
  const messageOf = (messageId: string, observation: RecordedObservation, from: (message: string) => void): string => {
    const found = known.get(messageId)
    if (found !== undefined) return found
    const message = addWorkflowMessage(builder, taskId, messageId, observation)
    known.set(messageId, message)
    from(message)
    return message
  }
  for (const observation of observations) {
    const messageId = observation.text("message_id")
    if (observation.type !== "WorkflowMessagePublished" || messageId === null) continue
    messageOf(messageId, observation, (message) => {
      const origin = observation.text("origin_stage")
      const by = origin === null ? undefined : attempts.ofStage(origin).latestAt(observation.at)
      if (by === undefined) builder.addEdge(node, "received_by", message, observation)
      else builder.addEdge(by.id, "stage_transitioned_to", message, observation)
    })
  }
  for (const [attempt, observation] of received) {
    if (attempt.stage === null) continue
    const messageId = observation.text("message_id")
    if (messageId === null) {
      builder.addEdge(node, "received_by", attempt.id, observation)
    } else {
      const message = messageOf(messageId, observation, (message) =>
        builder.addEdge(node, "received_by", message, observation)
      )
      builder.addEdge(message, "entered_stage", attempt.id, observation)
    }
  }
}

const receiptEvents: ReadonlySet<string> = new Set(["TaskMessageReceived", "AggregationMessageReceived"])

const addTaskAttempt = (
  builder: GraphBuilder,
  taskId: string,
  place: number,
  observation: RecordedObservation
): Attempt => {
  const retryAttempt = observation.count("retry_attempt")
  const annotations = {
    queue_name: observation.text("queue_name"),
    correlation_id: observation.text("correlation_id"),
    retry_attempt: retryAttempt ?? 0,
    task_type: observation.text("task_type"),
    parent_task_id: observation.text("parent_task_id"),
    consumer_name: observation.text("consumer_name")
  }
  const label = `${taskId} attempt ${place}`
  return {
    id: builder.addNode(`task-attempt:${taskId}:${place}`, "task_attempt", taskId, observation, { label, annotations }),
    position: place,
    at: observation.at,
    timestamp: observation.timestamp,
    queue: annotations.queue_name,
    retryAttempt,
    stage: null,
    messageId: null,
    consumerName: annotations.consumer_name,
    taskType: annotations.task_type
  }
}

const addStageAttempt = (
  builder: GraphBuilder,
  taskId: string,
  place: number,
  { inbox, number, stage }: { readonly stage: string; readonly number: number; readonly inbox: string | null },
  observation: RecordedObservation
): Attempt => {
  const retryAttempt = observation.count("retry_attempt")
  const annotations = {
    stage,
    message_id: observation.text("message_id"),
    origin_stage: observation.text("origin_stage"),
    queue_name: observation.text("queue_name") ?? inbox,
    correlation_id: observation.text("correlation_id"),
    retry_attempt: retryAttempt ?? 0,
    consumer_name: observation.text("consumer_name")
  }
  const id = `stage-attempt:${taskId}:${stage}:${number}`
  const label = `${stage} attempt ${number}`
  return {
    id: builder.addNode(id, "stage_attempt", taskId, observation, { label, annotations }),
    position: place,
    at: observation.at,
    timestamp: observation.timestamp,
    queue: annotations.queue_name,
    retryAttempt,
    stage,
    messageId: annotations.message_id,
    consumerName: annotations.consumer_name,
    taskType: null
  }
}

const addWorkflowMessage = (
  builder: GraphBuilder,
  taskId: string,
  messageId: string,
  observation: RecordedObservation
): string => {
  const annotations = {
    message_id: messageId,
    stage: observation.text("stage"),
    origin_stage: observation.text("origin_stage"),
    routing_key: observation.text("routing_key"),
    queue_name: observation.text("queue_name"),
    correlation_id: observation.text("correlation_id")
  }
  const label = annotations.stage ?? messageId
  return builder.addNode(`workflow-message:${messageId}`, "workflow_message", taskId, observation, {
    label,
    annotations
  })
}
