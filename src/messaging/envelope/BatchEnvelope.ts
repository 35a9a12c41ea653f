import { Result, Schema } from "effect"
import { encode as encodeEnvelope, Identity, JsonObject, makeReader, specVersion } from "./Envelope.ts"
import { EnvelopeError, type Mistake } from "./Errors.ts"
import * as TaskEnvelope from "./TaskEnvelope.ts"
import { Timestamp } from "./Timestamp.ts"

export const Declared = Schema.Struct({
  batch_id: Identity,
  tasks: Schema.Array(Schema.Unknown).check(
    Schema.makeFilter((tasks) => tasks.length > 0, { expected: "an array of at least one task" })
  ),
  meta: JsonObject,
  created_at: Timestamp,
  spec_version: Schema.String
})

const decode = makeReader({ kind: "batch", schema: Declared, nullable: [] })

/** One message that contains many tasks. The consumer replaces it with one message per task. */
export type BatchEnvelope = Omit<typeof Declared.Type, "tasks"> & {
  readonly tasks: readonly [TaskEnvelope.TaskEnvelope, ...ReadonlyArray<TaskEnvelope.TaskEnvelope>]
  readonly [extra: string]: unknown
}

export const isBatch = (json: JsonObject): boolean =>
  typeof json["batch_id"] === "string" && Array.isArray(json["tasks"])

/**
 * Decodes a batch. `prepareItem` runs on each task before decoding, to resolve aliases. One invalid task makes the
 * whole batch invalid. The error names the index of the task.
 */
export const read = (
  input: unknown,
  now: Timestamp,
  prepareItem: (item: unknown) => unknown = (item) => item
): Result.Result<BatchEnvelope, EnvelopeError> =>
  Result.flatMap(decode(input, { meta: {}, created_at: now, spec_version: specVersion }), (batch) => {
    const mistakes: Array<Mistake> = []
    const [first, ...others] = batch.tasks.flatMap((item, index) => {
      const read = TaskEnvelope.read(prepareItem(item), now)
      if (Result.isSuccess(read)) return [read.success]
      mistakes.push(...read.failure.mistakes.map((mistake) => mistakeInItem(index, mistake)))
      return []
    })
    return first === undefined || mistakes.length > 0
      ? Result.fail(EnvelopeError.invalid("batch", mistakes))
      : Result.succeed({ ...batch, tasks: [first, ...others] as const })
  })

export const encode = (batch: BatchEnvelope): Result.Result<Uint8Array, EnvelopeError> => encodeEnvelope("batch", batch)

export const mistakeInItem = (index: number, { field, problem }: Mistake): Mistake => ({
  field: `tasks[${index}]${field === "" ? "" : `.${field}`}`,
  problem
})
