import { Schema } from "effect"

/** What a contender's process is asked to do, and what it answers. */

/** Of the queues; a contender without RabbitMQ has one kind of its own, and does not look. */
export const kinds = ["classic", "quorum"] as const
export type Kind = (typeof kinds)[number]
const Kind = Schema.Literals(kinds)

/**
 * - `Publish`: no-op tasks, `window` of them unanswered at any time, for `ms`.
 * - `Consume`: the `messages` that wait in the queue.
 * - `RoundTrip`: no-op tasks, of which somebody waits for the end of each, `window` at any time, for `ms`.
 * - `Empty`: what waits in the queue is dropped.
 */
export const Work = Schema.Union([
  Schema.TaggedStruct("Publish", { kind: Kind, window: Schema.Int, ms: Schema.Int }),
  Schema.TaggedStruct("Consume", { kind: Kind, messages: Schema.Int }),
  Schema.TaggedStruct("RoundTrip", { window: Schema.Int, ms: Schema.Int }),
  Schema.TaggedStruct("Empty", { kind: Kind })
])
export type Work = typeof Work.Type
export type WorkOf<Tag extends Work["_tag"]> = Extract<Work, { readonly _tag: Tag }>

export const Done = Schema.Struct({
  messages: Schema.Int,
  elapsedMs: Schema.Finite,
  /** Milliseconds; of each message, where it has a beginning and an end. */
  p50: Schema.optionalKey(Schema.Finite),
  p99: Schema.optionalKey(Schema.Finite),
  failed: Schema.Int,
  /** The first reason of a failure. */
  problem: Schema.optionalKey(Schema.String)
})
export type Done = typeof Done.Type

export const nothing: Done = { messages: 0, elapsedMs: 0, failed: 0 }

/** Of every consumer. */
export const prefetch = 100

/** How long a consumer may take for all that it is given. */
export const consumesWithinMs = 60_000

/** A task of 512 bytes, as it travels. */
export const taskOf = (taskId: string) => ({
  task_id: taskId,
  payload: { text: "It waits for its turn. ".repeat(16).slice(0, payloadBytes) },
  created_at: "2026-11-21T12:00:00.123000Z",
  task_type: "noop",
  spec_version: "1.0"
})

const payloadBytes = 357

/** What a contender may declare on RabbitMQ. */
export const placesOf = (prefix: string, kind: Kind) => ({
  exchange: `${prefix}${kind}.tasks`,
  queue: `${prefix}${kind}.tasks`,
  statusExchange: `${prefix}${kind}.status`,
  statusQueue: `${prefix}${kind}.status`
})

/** As its environment tells a contender. */
export const environment = {
  rabbitmq: process.env["RABBITMQ_URL"] ?? "amqp://guest:guest@127.0.0.1:5672",
  redis: process.env["REDIS_URL"] ?? "redis://127.0.0.1:6379",
  prefix: process.env["BENCH_PREFIX"] ?? "svc-bench:",
  /** Of bare amqplib: the same bytes every time, or a message like this library's. */
  alike: process.env["BENCH_MESSAGE"] === "alike"
}
