import { Effect, Schema } from "effect"
import { Mistake } from "../envelope/Errors.ts"
import * as Payload from "../envelope/Payload.ts"
import type { Declared, WorkflowEnvelope } from "../envelope/WorkflowEnvelope.ts"
import type { WorkflowContext } from "./WorkflowContext.ts"

/** A message whose payload has met the handler's schema. */
export type Work<Payload> = Omit<typeof Declared.Type, "payload"> & { readonly payload: Payload }

/**
 * What a stage runs. It succeeds with anything; whatever it fails or dies with is a failure of the message, which is tried
 * again unless the error has a member `retryable` that is `false`. `R`: the services that it needs.
 */
export interface WorkflowHandler<R = never> {
  readonly handle: (message: WorkflowEnvelope, context: WorkflowContext) => Effect.Effect<unknown, unknown, R>
}

/** A message that its handler does not take. Nothing has run, and trying again is pointless. */
export class MessageRefused extends Schema.TaggedError<MessageRefused>()("MessageRefused", {
  reason: Schema.Literals(["unsupported_action", "payload_schema_violation"]),
  stage: Schema.String,
  action: Schema.NullOr(Schema.String),
  /** Of the payload. */
  mistakes: Schema.Array(Mistake),
  message: Schema.String
}) {
  readonly retryable = false
}

/** For all actions, with the payload as it came. */
export const make = <R>(
  handle: (message: WorkflowEnvelope, context: WorkflowContext) => Effect.Effect<unknown, unknown, R>
): WorkflowHandler<R> => ({ handle })

/** For payloads of one schema: what does not meet it is refused as `payload_schema_violation`. */
export const withPayload = <Payload, RD, R>(
  schema: Schema.ConstraintDecoder<Payload, RD>,
  handle: (message: Work<Payload>, context: WorkflowContext) => Effect.Effect<unknown, unknown, R>
): WorkflowHandler<RD | R> => {
  const decode = Payload.decoder(schema)
  return {
    handle: (message, context) =>
      Effect.matchEffect(decode(message.payload), {
        onSuccess: (payload): Effect.Effect<unknown, unknown, R> => handle({ ...message, payload }, context),
        onFailure: (mistakes) => Effect.fail(unfit(message, context, mistakes))
      })
  }
}

/** A handler for each action; others, and messages without one, are refused as `unsupported_action`. */
export const byAction = <Requirements extends Readonly<Record<string, unknown>>>(
  handlers: {
    readonly [Action in keyof Requirements]: WorkflowHandler<Requirements[Action]>
  }
): WorkflowHandler<Requirements[keyof Requirements]> => {
  const known = new Map<string, WorkflowHandler<Requirements[keyof Requirements]>>(Object.entries(handlers))
  return {
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
    message: `Stage ${stage} does not take ${action === undefined ? "a message without an action" : `the action ${action}`}, only ${known.join(", ")}.`
  })
