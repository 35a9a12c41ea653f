import { Effect, Schema } from "effect"
import * as HandledPayloads from "../control/HandledPayloads.ts"
import { Mistake } from "../envelope/Errors.ts"
import * as Payload from "../envelope/Payload.ts"
import type { Declared, WorkflowEnvelope } from "../envelope/WorkflowEnvelope.ts"
import type { WorkflowContext } from "./WorkflowContext.ts"

/** A message whose payload was decoded with the handler's schema. */
export type Work<Payload> = Omit<typeof Declared.Type, "payload"> & { readonly payload: Payload }

/**
 * The handler of a workflow stage. Its success value is ignored. A failure or defect fails the message. With a retry
 * policy, the message is then retried, unless the error has `retryable: false`. `R` is the type of the services that
 * the handler needs.
 */
export interface WorkflowHandler<R = never> {
  readonly handle: (message: WorkflowEnvelope, context: WorkflowContext) => Effect.Effect<unknown, unknown, R>
  /** The payloads that the handler decodes. Workers report their schemas to operators. Default: any payload. */
  readonly payloads?: ReadonlyArray<HandledPayloads.HandledPayload> | undefined
}

/** The handler refused the message before it did any work. The message is not retried. */
export class MessageRefused extends Schema.TaggedError<MessageRefused>()("MessageRefused", {
  reason: Schema.Literals(["unsupported_action", "payload_schema_violation"]),
  stage: Schema.String,
  action: Schema.NullOr(Schema.String),
  mistakes: Schema.Array(Mistake),
  message: Schema.String
}) {
  readonly retryable = false
}

/** Creates a handler for all actions. It receives the undecoded payload. */
export const make = <R>(
  handle: (message: WorkflowEnvelope, context: WorkflowContext) => Effect.Effect<unknown, unknown, R>
): WorkflowHandler<R> => ({ handle })

/** Creates a handler that decodes the payload with a schema. Invalid payloads fail with `payload_schema_violation`. */
export const withPayload = <Payload, RD, R>(
  schema: Schema.ConstraintDecoder<Payload, RD>,
  handle: (message: Work<Payload>, context: WorkflowContext) => Effect.Effect<unknown, unknown, R>
): WorkflowHandler<RD | R> => {
  const decode = Payload.decoder(schema)
  return {
    payloads: [{ type: null, schema }],
    handle: (message, context) =>
      Effect.matchEffect(decode(message.payload), {
        onSuccess: (payload): Effect.Effect<unknown, unknown, R> => handle({ ...message, payload }, context),
        onFailure: (mistakes) => Effect.fail(unfit(message, context, mistakes))
      })
  }
}

/** Combines one handler per action. Messages with another action or without one fail with `unsupported_action`. */
export const byAction = <Requirements extends Readonly<Record<string, unknown>>>(
  handlers: {
    readonly [Action in keyof Requirements]: WorkflowHandler<Requirements[Action]>
  }
): WorkflowHandler<Requirements[keyof Requirements]> => {
  const known = new Map<string, WorkflowHandler<Requirements[keyof Requirements]>>(Object.entries(handlers))
  return {
    payloads: HandledPayloads.byType(known),
    handle: (message, context) =>
      known.get(message.action ?? "")?.handle(message, context) ??
      Effect.fail(unsupported(message, context, Array.from(known.keys())))
  }
}

const unfit = (
  { action }: WorkflowEnvelope,
  { stage }: WorkflowContext,
  mistakes: ReadonlyArray<Mistake>
): MessageRefused =>
  new MessageRefused({
    reason: "payload_schema_violation",
    stage,
    action: action ?? null,
    mistakes,
    message: Payload.mismatchMessage(`the schema of stage ${stage}`, mistakes)
  })

const unsupported = (
  { action }: WorkflowEnvelope,
  { stage }: WorkflowContext,
  known: ReadonlyArray<string>
): MessageRefused =>
  new MessageRefused({
    reason: "unsupported_action",
    stage,
    action: action ?? null,
    mistakes: [],
    message: `Stage ${stage} does not accept ${action === undefined ? "a message without an action" : `the action ${action}`}. Publish one of ${known.join(", ")}, or add a handler.`
  })
