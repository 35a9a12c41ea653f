import { Result } from "effect"
import type { Publication } from "../../services/Broker.ts"
import type { BatchEnvelope } from "../envelope/BatchEnvelope.ts"
import type { EnvelopeError } from "../envelope/Errors.ts"
import * as TaskEnvelope from "../envelope/TaskEnvelope.ts"
import * as RetryHeaders from "../retry/RetryHeaders.ts"

interface BatchDelivery {
  /** The messages of the tasks are published directly to this queue. */
  readonly queue: string
  readonly contentType: string | undefined
  readonly priority: number | undefined
}

/** Creates one message per task. Its AMQP priority is that of the batch message, else the priority of the task. */
export const publications = (
  batch: BatchEnvelope,
  { contentType = "application/json", priority, queue }: BatchDelivery
): Result.Result<ReadonlyArray<Publication>, EnvelopeError> =>
  Result.all(
    batch.tasks.map((task, index) => {
      const itsPriority = priority ?? task.priority
      return Result.map(
        TaskEnvelope.encode(task),
        (content): Publication => ({
          purpose: "tasks",
          exchange: "",
          routingKey: queue,
          content,
          properties: {
            contentType,
            persistent: true,
            correlationId: TaskEnvelope.correlationId(task),
            ...(itsPriority !== undefined && { priority: itsPriority }),
            headers: {
              task_id: task.task_id,
              batch_id: batch.batch_id,
              batch_index: index,
              batch_size: batch.tasks.length
            }
          }
        })
      )
    })
  )

/** In a routed topology, a worker processes only one task type. It must refuse a batch with several types. */
export const hasMixedTaskTypes = (batch: BatchEnvelope): boolean =>
  new Set(batch.tasks.map(({ task_type = "" }) => task_type.trim()).filter((taskType) => taskType !== "")).size > 1

export interface BatchPosition {
  readonly batchId: string
  readonly batchIndex: number
  readonly batchSize: number
}

export const positionOf = (headers: Publication["properties"]["headers"] = {}): BatchPosition | undefined => {
  const { batch_id: batchId, batch_index: index, batch_size: size } = headers
  return typeof batchId === "string" && index !== undefined && size !== undefined
    ? { batchId, batchIndex: RetryHeaders.count(index), batchSize: RetryHeaders.count(size) }
    : undefined
}
