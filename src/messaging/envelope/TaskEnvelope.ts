import { Effect, Result, Schema, SchemaIssue, SchemaTransformation } from "effect"
import {
  encode as encodeEnvelope,
  Identity,
  isIdentity,
  isShortText,
  isWritableObject,
  JsonObject,
  makeReader,
  type NoCamelCaseMembers,
  parse,
  ShortText,
  specVersion
} from "./Envelope.ts"
import type { EnvelopeError } from "./Errors.ts"
import { isCanonical, Timestamp } from "./Timestamp.ts"

/** A priority from 0 to 255. `5.0`, `"5"` and `true` are valid, because producers in other languages send them. */
export const Priority = Schema.Union([Schema.Finite, Schema.String, Schema.Boolean]).pipe(
  Schema.decodeTo(
    Schema.Int,
    SchemaTransformation.transformEffect({
      decode: (input: number | string | boolean, options) => {
        const priority = typeof input === "string" && !/^\s*\d{1,3}(\.0+)?\s*$/.test(input) ? Number.NaN : Number(input)
        return isPriority(priority)
          ? Effect.succeed(priority)
          : Effect.fail(new SchemaIssue.InvalidValue({ expected: "an integer from 0 to 255" }, input, options))
      },
      encode: (priority: number) => Effect.succeed<number | string | boolean>(priority)
    })
  )
)

const isPriority = (value: unknown): value is number =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 255

export const Declared = Schema.Struct({
  task_id: Identity,
  payload: JsonObject,
  created_at: Timestamp,
  service: Schema.optionalKey(Schema.String),
  /** The type of the task. Routed topologies use it as the routing key. */
  task_type: Schema.optionalKey(ShortText),
  /** Publishing sets a missing correlation id to the task id. */
  correlation_id: Schema.optionalKey(ShortText),
  priority: Schema.optionalKey(Priority),
  spec_version: Schema.String,
  meta: Schema.optionalKey(JsonObject)
})

const isExact = (known: JsonObject): known is typeof Declared.Type & JsonObject => {
  const { correlation_id, created_at, meta, payload, priority, service, spec_version, task_id, task_type } = known
  return (
    isIdentity(task_id) &&
    isWritableObject(payload) &&
    isCanonical(created_at) &&
    (service === undefined || typeof service === "string") &&
    (task_type === undefined || isShortText(task_type)) &&
    (correlation_id === undefined || isShortText(correlation_id)) &&
    (priority === undefined || isPriority(priority)) &&
    typeof spec_version === "string" &&
    (meta === undefined || isWritableObject(meta))
  )
}

const decode = makeReader({
  kind: "task",
  schema: Declared,
  nullable: ["service", "task_type", "correlation_id", "priority", "meta"],
  isExact
})

/** A decoded task. Members that the schema does not declare are kept. */
export type TaskEnvelope = typeof Declared.Type & { readonly [extra: string]: unknown }

/** A task to be published. Defaults: `payload` is `{}`, `created_at` is the current time. */
export interface TaskInput extends NoCamelCaseMembers<typeof Declared.fields> {
  readonly task_id: string
  readonly payload?: JsonObject | undefined
  readonly created_at?: Timestamp | undefined
  readonly service?: string | null | undefined
  readonly task_type?: string | null | undefined
  readonly correlation_id?: string | null | undefined
  readonly priority?: number | null | undefined
  readonly spec_version?: string | undefined
  readonly meta?: JsonObject | null | undefined
  readonly [extra: string]: unknown
}

/** Decodes a task with canonical member names. `now` is the default of `created_at`. */
export const read = (input: unknown, now: Timestamp): Result.Result<TaskEnvelope, EnvelopeError> =>
  decode(input, { payload: {}, created_at: now, spec_version: specVersion })

export const fromBytes = (body: Uint8Array, now: Timestamp): Result.Result<TaskEnvelope, EnvelopeError> =>
  Result.flatMap(parse("task", body), ({ ordinary }) => read(ordinary, now))

export const encode = (task: TaskEnvelope): Result.Result<Uint8Array, EnvelopeError> => encodeEnvelope("task", task)

export const correlationId = (task: TaskEnvelope): string => task.correlation_id || task.task_id
