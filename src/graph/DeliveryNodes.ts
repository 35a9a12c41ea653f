import { type Attempt, Attempts } from "./Attempts.ts"
import type { RecordedObservation } from "./Evidence.ts"
import type { GraphBuilder } from "./GraphBuilder.ts"

/** A task whose deliveries are part of the graph. */
export interface TaskNodes {
  readonly taskId: string
  /** The id of the task's own node. */
  readonly node: string
  readonly attempts: Attempts
}

/**
 * Adds the deliveries of a task and the messages of its workflow. A message is connected to the stage attempt that
 * published it. A message without a known publisher came from outside and is connected to the task.
 */
export const addNodes = (
  drawing: GraphBuilder,
  taskId: string,
  node: string,
  observations: ReadonlyArray<RecordedObservation>,
  queueOfStage: (stage: string) => string | null
): TaskNodes => {
  // Attempts are counted per task, so that an id does not change when another child of the parent reports something.
  const attemptsByStage = new Map<string, number>()
  const received: Array<readonly [Attempt, RecordedObservation]> = []
  for (const seen of observations) {
    const place = received.length + 1
    if (receiptEvents.has(seen.type)) {
      const attempt = addTaskAttempt(drawing, taskId, place, seen)
      drawing.addEdge(node, "received_by", attempt.id, seen)
      received.push([attempt, seen])
    } else if (seen.type === "WorkflowMessageReceived") {
      const stage = seen.text("stage") ?? "unknown"
      const number = (attemptsByStage.get(stage) ?? 0) + 1
      attemptsByStage.set(stage, number)
      received.push([
        addStageAttempt(drawing, taskId, place, { stage, number, inbox: queueOfStage(stage) }, seen),
        seen
      ])
    }
  }
  const attempts = new Attempts(received.map(([attempt]) => attempt))
  const drawn = { taskId, node, attempts }
  addMessages(drawing, drawn, observations, received)
  return drawn
}

const addMessages = (
  drawing: GraphBuilder,
  { attempts, node, taskId }: TaskNodes,
  observations: ReadonlyArray<RecordedObservation>,
  received: ReadonlyArray<readonly [Attempt, RecordedObservation]>
): void => {
  const known = new Map<string, string>()
  const messageOf = (messageId: string, seen: RecordedObservation, from: (message: string) => void): string => {
    const found = known.get(messageId)
    if (found !== undefined) return found
    const message = addWorkflowMessage(drawing, taskId, messageId, seen)
    known.set(messageId, message)
    from(message)
    return message
  }
  for (const seen of observations) {
    const messageId = seen.text("message_id")
    if (seen.type !== "WorkflowMessagePublished" || messageId === null) continue
    messageOf(messageId, seen, (message) => {
      const origin = seen.text("origin_stage")
      const by = origin === null ? undefined : attempts.ofStage(origin).latestAt(seen.at)
      if (by === undefined) drawing.addEdge(node, "received_by", message, seen)
      else drawing.addEdge(by.id, "stage_transitioned_to", message, seen)
    })
  }
  for (const [attempt, seen] of received) {
    if (attempt.stage === null) continue
    const messageId = seen.text("message_id")
    if (messageId === null) {
      drawing.addEdge(node, "received_by", attempt.id, seen)
    } else {
      const message = messageOf(messageId, seen, (message) => drawing.addEdge(node, "received_by", message, seen))
      drawing.addEdge(message, "entered_stage", attempt.id, seen)
    }
  }
}

const receiptEvents: ReadonlySet<string> = new Set(["TaskMessageReceived", "AggregationMessageReceived"])

const addTaskAttempt = (drawing: GraphBuilder, taskId: string, place: number, seen: RecordedObservation): Attempt => {
  const retryAttempt = seen.count("retry_attempt")
  const annotations = {
    queue_name: seen.text("queue_name"),
    correlation_id: seen.text("correlation_id"),
    retry_attempt: retryAttempt ?? 0,
    task_type: seen.text("task_type"),
    parent_task_id: seen.text("parent_task_id"),
    consumer_name: seen.text("consumer_name")
  }
  const label = `${taskId} attempt ${place}`
  return {
    id: drawing.addNode(`task-attempt:${taskId}:${place}`, "task_attempt", taskId, seen, { label, annotations }),
    position: place,
    at: seen.at,
    timestamp: seen.timestamp,
    queue: annotations.queue_name,
    retryAttempt,
    stage: null,
    messageId: null,
    consumerName: annotations.consumer_name,
    taskType: annotations.task_type
  }
}

const addStageAttempt = (
  drawing: GraphBuilder,
  taskId: string,
  place: number,
  { inbox, number, stage }: { readonly stage: string; readonly number: number; readonly inbox: string | null },
  seen: RecordedObservation
): Attempt => {
  const retryAttempt = seen.count("retry_attempt")
  const annotations = {
    stage,
    message_id: seen.text("message_id"),
    origin_stage: seen.text("origin_stage"),
    queue_name: seen.text("queue_name") ?? inbox,
    correlation_id: seen.text("correlation_id"),
    retry_attempt: retryAttempt ?? 0,
    consumer_name: seen.text("consumer_name")
  }
  const id = `stage-attempt:${taskId}:${stage}:${number}`
  const label = `${stage} attempt ${number}`
  return {
    id: drawing.addNode(id, "stage_attempt", taskId, seen, { label, annotations }),
    position: place,
    at: seen.at,
    timestamp: seen.timestamp,
    queue: annotations.queue_name,
    retryAttempt,
    stage,
    messageId: annotations.message_id,
    consumerName: annotations.consumer_name,
    taskType: null
  }
}

const addWorkflowMessage = (
  drawing: GraphBuilder,
  taskId: string,
  messageId: string,
  seen: RecordedObservation
): string => {
  const annotations = {
    message_id: messageId,
    stage: seen.text("stage"),
    origin_stage: seen.text("origin_stage"),
    routing_key: seen.text("routing_key"),
    queue_name: seen.text("queue_name"),
    correlation_id: seen.text("correlation_id")
  }
  const label = annotations.stage ?? messageId
  return drawing.addNode(`workflow-message:${messageId}`, "workflow_message", taskId, seen, { label, annotations })
}
