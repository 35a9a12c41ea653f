import { type Attempt, Attempts } from "./Attempts.ts"
import type { Drawing } from "./Drawing.ts"
import type { Seen } from "./Evidence.ts"

/** A task as far as it is drawn. */
export interface Drawn {
  readonly taskId: string
  /** Of its own node. */
  readonly node: string
  readonly attempts: Attempts
}

/**
 * Draws the receipts of a task and the messages of its workflow. A message hangs on the stage attempt that published it;
 * one that nobody was seen to publish came from outside, and hangs on the task.
 */
export const draw = (
  drawing: Drawing,
  taskId: string,
  node: string,
  observations: ReadonlyArray<Seen>,
  queueOfStage: (stage: string) => string | null
): Drawn => {
  // The original counts the attempts of a stage over all tasks of the graph: the first try of a second child would be
  // `write attempt 2`, and get another id whenever a child before it makes itself heard.
  const inStage = new Map<string, number>()
  const received: Array<readonly [Attempt, Seen]> = []
  for (const seen of observations) {
    const place = received.length + 1
    if (receipts.has(seen.type)) {
      const attempt = taskAttempt(drawing, taskId, place, seen)
      drawing.edge(node, "received_by", attempt.id, seen)
      received.push([attempt, seen])
    } else if (seen.type === "WorkflowMessageReceived") {
      const stage = seen.text("stage") ?? "unknown"
      const number = (inStage.get(stage) ?? 0) + 1
      inStage.set(stage, number)
      received.push([stageAttempt(drawing, taskId, place, { stage, number, inbox: queueOfStage(stage) }, seen), seen])
    }
  }
  const attempts = new Attempts(received.map(([attempt]) => attempt))
  const drawn = { taskId, node, attempts }
  messages(drawing, drawn, observations, received)
  return drawn
}

const messages = (
  drawing: Drawing,
  { attempts, node, taskId }: Drawn,
  observations: ReadonlyArray<Seen>,
  received: ReadonlyArray<readonly [Attempt, Seen]>
): void => {
  const known = new Map<string, string>()
  const messageOf = (messageId: string, seen: Seen, from: (message: string) => void): string => {
    const found = known.get(messageId)
    if (found !== undefined) return found
    const message = workflowMessage(drawing, taskId, messageId, seen)
    known.set(messageId, message)
    from(message)
    return message
  }
  for (const seen of observations) {
    const messageId = seen.text("message_id")
    if (seen.type !== "WorkflowMessagePublished" || messageId === null) continue
    messageOf(messageId, seen, (message) => {
      const origin = seen.text("origin_stage")
      const by = origin === null ? undefined : attempts.ofStage(origin).latest(seen.at)
      if (by === undefined) drawing.edge(node, "received_by", message, seen)
      else drawing.edge(by.id, "stage_transitioned_to", message, seen)
    })
  }
  for (const [attempt, seen] of received) {
    if (attempt.stage === null) continue
    const messageId = seen.text("message_id")
    if (messageId === null) {
      drawing.edge(node, "received_by", attempt.id, seen)
    } else {
      const message = messageOf(messageId, seen, (message) => drawing.edge(node, "received_by", message, seen))
      drawing.edge(message, "entered_stage", attempt.id, seen)
    }
  }
}

const receipts: ReadonlySet<string> = new Set(["TaskMessageReceived", "AggregationMessageReceived"])

const taskAttempt = (drawing: Drawing, taskId: string, place: number, seen: Seen): Attempt => {
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
    id: drawing.node(`task-attempt:${taskId}:${place}`, "task_attempt", taskId, seen, { label, annotations }),
    place,
    at: seen.at,
    timestamp: seen.timestamp,
    queue: annotations.queue_name,
    retryAttempt,
    stage: null,
    message: null,
    consumer: annotations.consumer_name,
    taskType: annotations.task_type
  }
}

const stageAttempt = (
  drawing: Drawing,
  taskId: string,
  place: number,
  { inbox, number, stage }: { readonly stage: string; readonly number: number; readonly inbox: string | null },
  seen: Seen
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
    id: drawing.node(id, "stage_attempt", taskId, seen, { label, annotations }),
    place,
    at: seen.at,
    timestamp: seen.timestamp,
    queue: annotations.queue_name,
    retryAttempt,
    stage,
    message: annotations.message_id,
    consumer: annotations.consumer_name,
    taskType: null
  }
}

const workflowMessage = (drawing: Drawing, taskId: string, messageId: string, seen: Seen): string => {
  const annotations = {
    message_id: messageId,
    stage: seen.text("stage"),
    origin_stage: seen.text("origin_stage"),
    routing_key: seen.text("routing_key"),
    queue_name: seen.text("queue_name"),
    correlation_id: seen.text("correlation_id")
  }
  const label = annotations.stage ?? messageId
  return drawing.node(`workflow-message:${messageId}`, "workflow_message", taskId, seen, { label, annotations })
}
