import { Result, Schema } from "effect"
import {
  encode as encodeEnvelope,
  Identity,
  JsonObject,
  makeReader,
  type NoCamelCaseMembers,
  parse,
  ShortText,
  specVersion
} from "./Envelope.ts"
import type { EnvelopeError } from "./Errors.ts"
import { Priority } from "./TaskEnvelope.ts"

export const Declared = Schema.Struct({
  task_id: Identity,
  /** The id of this message. Retries of the message keep it. */
  message_id: Schema.String,
  /** Publishing sets a missing correlation id to the task id. */
  correlation_id: Schema.optionalKey(ShortText),
  stage: Schema.String,
  /** The stage whose handler published the message. */
  origin_stage: Schema.optionalKey(Schema.String),
  action: Schema.optionalKey(Schema.String),
  payload: JsonObject,
  meta: JsonObject,
  priority: Schema.optionalKey(Priority),
  spec_version: Schema.String
})

const decode = makeReader({
  kind: "workflow",
  schema: Declared,
  nullable: ["correlation_id", "origin_stage", "action", "priority"]
})

/** A decoded workflow message. Members that the schema does not declare are kept. */
export type WorkflowEnvelope = typeof Declared.Type & { readonly [extra: string]: unknown }

/** A workflow message to be published. Defaults: `payload` and `meta` are `{}`, `message_id` is a new id. */
export interface WorkflowInput extends NoCamelCaseMembers<typeof Declared.fields> {
  readonly task_id: string
  /** Ignored. Publishing replaces it with the target stage. */
  readonly stage?: string | undefined
  readonly message_id?: string | undefined
  readonly correlation_id?: string | null | undefined
  readonly origin_stage?: string | null | undefined
  readonly action?: string | null | undefined
  readonly payload?: JsonObject | undefined
  readonly meta?: JsonObject | undefined
  readonly priority?: number | null | undefined
  readonly spec_version?: string | undefined
  readonly [extra: string]: unknown
}

/** Decodes a workflow message. `messageId` is the default of its `message_id`. */
export const read = (input: unknown, messageId: string): Result.Result<WorkflowEnvelope, EnvelopeError> =>
  decode(input, { message_id: messageId, payload: {}, meta: {}, spec_version: specVersion })

export const fromBytes = (body: Uint8Array, messageId: string): Result.Result<WorkflowEnvelope, EnvelopeError> =>
  Result.flatMap(parse("workflow", body), ({ ordinary }) => read(ordinary, messageId))

export const encode = (envelope: WorkflowEnvelope): Result.Result<Uint8Array, EnvelopeError> =>
  encodeEnvelope("workflow", envelope)

export const correlationId = (envelope: WorkflowEnvelope): string => envelope.correlation_id || envelope.task_id
