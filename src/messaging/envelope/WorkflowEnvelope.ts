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

/** The declared fields, in the order of the wire. */
export const Declared = Schema.Struct({
  task_id: Identity,
  /** Of this hand-over. A retry keeps the body, and so the id. */
  message_id: Schema.String,
  /** Default on the way: the task id. */
  correlation_id: Schema.optionalKey(ShortText),
  stage: Schema.String,
  /** Which stage handed over. */
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

/** Work for one stage of a workflow. Fields that the specification does not know are kept beside the others. */
export type WorkflowEnvelope = typeof Declared.Type & { readonly [extra: string]: unknown }

/** As a program publishes it: `payload` and `meta` default to `{}`, `message_id` to a new one. */
export interface WorkflowInput extends NoCamelCaseMembers<typeof Declared.fields> {
  readonly task_id: string
  /** The target of the publish takes its place. */
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

/** `messageId`: for an envelope without one, 32 random hexadecimal digits. */
export const read = (input: unknown, messageId: string): Result.Result<WorkflowEnvelope, EnvelopeError> =>
  decode(input, { message_id: messageId, payload: {}, meta: {}, spec_version: specVersion })

export const fromBytes = (body: Uint8Array, messageId: string): Result.Result<WorkflowEnvelope, EnvelopeError> =>
  Result.flatMap(parse("workflow", body), ({ ordinary }) => read(ordinary, messageId))

export const encode = (envelope: WorkflowEnvelope): Result.Result<Uint8Array, EnvelopeError> =>
  encodeEnvelope("workflow", envelope)

/** Of the message: the envelope's own, else the id of its task. */
export const correlationId = (envelope: WorkflowEnvelope): string => envelope.correlation_id || envelope.task_id
