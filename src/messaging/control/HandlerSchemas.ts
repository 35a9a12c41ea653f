import { hash } from "node:crypto"
import { Clock, Effect, Option, Result, Schema } from "effect"
import type { Redis } from "../../services/Redis.ts"
import { fitsShortString } from "../envelope/Envelope.ts"
import * as PayloadJsonSchema from "../envelope/PayloadJsonSchema.ts"
import { HandlerReport, type HandlerSchema } from "./ControlRecords.ts"
import type { HandledPayload } from "./HandledPayloads.ts"

/** The maximum size of a JSON Schema. A larger one is not reported. */
export const maxSchemaBytes = 65_536
/** The maximum number of types per queue. Further ones are only counted. */
export const maxTypes = 100

/** A report outlives its workers this long, because dead letters do. */
const reportTtlMs = 7 * 86_400_000
/** Workers report once a minute. One that was not heard of for this long leaves its place to workers that started before. */
const replacedAfterMs = 180_000

/** The report of a consumer about its handlers: the types, and the JSON Schemas by their SHA-256. */
export interface WrittenSchemas {
  readonly handlers: ReadonlyArray<HandlerSchema>
  readonly leftOut: number
  readonly texts: ReadonlyMap<string, string>
}

/** Writes the schemas of handlers as JSON Schemas, one after the other, so that none holds up the consumers for long. */
export const written = Effect.fnUntraced(function* (payloads: ReadonlyArray<HandledPayload>) {
  const listed = payloads.filter(({ type }) => type === null || fitsShortString(type)).slice(0, maxTypes)
  const texts = new Map<string, string>()
  const handlers: Array<HandlerSchema> = []
  for (const { schema, type } of listed) {
    yield* Effect.yieldNow
    handlers.push({ type, ...writtenSchema(schema, texts) })
  }
  return { handlers, leftOut: payloads.length - listed.length, texts } satisfies WrittenSchemas
})

const writtenSchema = (
  schema: HandledPayload["schema"],
  texts: Map<string, string>
): Pick<HandlerSchema, "known" | "schema"> => {
  if (schema === null) return { known: "none", schema: null }
  const text = PayloadJsonSchema.ofSchema(schema)
  if (Result.isFailure(text)) return { known: "not_representable", schema: null }
  if (Buffer.byteLength(text.success) > maxSchemaBytes) return { known: "too_large", schema: null }
  const name = hash("sha256", text.success, "hex")
  texts.set(name, text.success)
  return { known: "reported", schema: name }
}

const decodeReport = Schema.decodeUnknownOption(Schema.fromJsonString(HandlerReport))

/** The reports of handlers in Redis: one for each queue. Equal schemas are stored once. */
export const make = (redis: Redis["Service"], key: (name: string) => string) => {
  const reportKey = (queue: string) => key(`handlers:${queue}`)
  const schemaKey = (name: string) => key(`schema:${name}`)

  const handlersOf = (queue: string) =>
    Effect.map(redis.command("GET", reportKey(queue)), (reply) =>
      Option.flatMap(Option.fromNullishOr(reply), decodeReport)
    )

  const writeText = ([name, text]: readonly [string, string]) =>
    Effect.flatMap(redis.command("PEXPIRE", schemaKey(name), reportTtlMs), (exists) =>
      Number(exists) === 1 ? Effect.succeed(exists) : redis.command("SET", schemaKey(name), text, "PX", reportTtlMs)
    )

  return {
    announceHandlers: Effect.fnUntraced(function* (report: HandlerReport, texts: WrittenSchemas["texts"]) {
      const before = yield* handlersOf(report.queue)
      const now = yield* Clock.currentTimeMillis
      if (Option.exists(before, (known) => isAhead(known, report, now))) return
      // A report never names a schema that is not stored.
      yield* Effect.forEach(texts, writeText, { concurrency: 8, discard: true })
      yield* redis.command("SET", reportKey(report.queue), JSON.stringify(report), "PX", reportTtlMs)
    }),
    handlersOf,
    payloadSchema: (name: string) =>
      Effect.map(redis.command("GET", schemaKey(name)), (reply) => Option.map(Option.fromNullishOr(reply), String))
  }
}

/** While workers of two versions run, the one that started last speaks for the queue. */
const isAhead = (known: HandlerReport, report: HandlerReport, now: number): boolean =>
  known.worker !== report.worker &&
  known.started_at > report.started_at &&
  Date.parse(known.reported_at) > now - replacedAfterMs
