import type { Schema } from "effect"

/** The payloads of one type of message. */
export interface HandledPayload {
  /** `null`: all types that have no entry of their own. */
  readonly type: string | null
  /** `null` if the handler takes the payload undecoded. */
  readonly schema: Schema.Constraint | null
}

/** The types of messages that the handlers of a consumer take, with their schemas. */
export interface HandledPayloads {
  /** The member of a message that names its type. */
  readonly typedBy: "task_type" | "action"
  readonly payloads: ReadonlyArray<HandledPayload>
}

interface Handler {
  readonly payloads?: ReadonlyArray<HandledPayload> | undefined
}

/** Returns what a consumer with this handler takes. */
export const of = (typedBy: HandledPayloads["typedBy"], { payloads = anyPayload }: Handler): HandledPayloads => ({
  typedBy,
  payloads
})

/** Returns the payloads of handlers that are combined by type. Each of them receives messages of its own type alone. */
export const byType = (handlers: ReadonlyMap<string, Handler>): ReadonlyArray<HandledPayload> =>
  Array.from(handlers, ([type, { payloads = anyPayload }]) => ({
    type,
    schema: (payloads.find((one) => one.type === type) ?? payloads.find((one) => one.type === null))?.schema ?? null
  }))

const anyPayload: ReadonlyArray<HandledPayload> = [{ type: null, schema: null }]
