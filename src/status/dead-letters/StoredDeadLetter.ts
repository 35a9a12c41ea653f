import { Schema, Struct } from "effect"
import { bodyOf, DeadLetterRecord } from "../../messaging/failure/DeadLetter.ts"
import type { Reply } from "../../services/Redis.ts"
import * as Index from "./DeadLetterIndex.ts"
import type { DeadLetterSummary } from "./DeadLetterStore.ts"

/** Returns the fields and values of a record's hash in Redis. The body is stored only as bytes. */
export const hashFieldsOf = (record: DeadLetterRecord): ReadonlyArray<string | number> => {
  const summary = Schema.encodeSync(SummaryJson)(record)
  const content = Schema.encodeSync(ContentJson)(record)
  const known = {
    ...Object.fromEntries(Index.fields.map((field) => [field, record[field]])),
    replayed_at: record.replayed_at,
    target: record.replay_target_queue_name,
    unknown_at: record.replay_unknown_at,
    unknown_by: record.replay_unknown_by
  }
  const all = {
    summary,
    content,
    state: record.state,
    replay_count: record.replay_count,
    at: record.dead_lettered_at,
    group: groupName(record.queue_name, record.reason, record.exception_type),
    bytes: Buffer.byteLength(summary) + Buffer.byteLength(content),
    ...known
  }
  return Object.entries(all).flatMap(([field, value]) => (value === null || value === undefined ? [] : [field, value]))
}

export const summaryOf = ([summary, state, count, at, target, unknownAt, unknownBy]: ReadonlyArray<Reply>) => {
  const changing = MutableFields.make({
    state: isState(state) ? state : "dead_lettered",
    replay_count: Number(count),
    replayed_at: text(at),
    replay_target_queue_name: text(target)
  })
  const read: DeadLetterSummary = { ...Schema.decodeSync(SummaryJson)(String(summary)), ...changing }
  return read.state === "replay_unknown"
    ? { ...read, replay_unknown_at: text(unknownAt), replay_unknown_by: text(unknownBy) }
    : read
}

/** Returns the time at which the claim of a replay expires, in milliseconds since 1970. Returns 0 without a claim. */
export const claimedUntil = (values: ReadonlyArray<Reply>): number => Number(values[7] ?? 0)

export const contentOf = (content: string) => {
  const read = Schema.decodeSync(ContentJson)(content)
  return { ...read, ...bodyOf(Buffer.from(read.raw_body_b64, "base64")) }
}

export const groupName = (queue: string, reason: string, exceptionType: string | null): string =>
  JSON.stringify([queue, reason, exceptionType])

export const groupOf = (name: string) => {
  const [queue_name, reason, exception_type] = Schema.decodeSync(Group)(name)
  return { queue_name, reason, exception_type }
}

const Group = Schema.fromJsonString(Schema.Tuple([Schema.String, Schema.String, Schema.NullOr(Schema.String)]))

const MutableFields = DeadLetterRecord.mapFields(
  Struct.pick(["state", "replay_count", "replayed_at", "replay_target_queue_name"])
)

const SummaryJson = Schema.fromJsonString(
  DeadLetterRecord.mapFields(
    Struct.omit([
      "exception_stack",
      "headers",
      "body",
      "raw_body_b64",
      "properties",
      "state",
      "replay_count",
      "replayed_at",
      "replay_target_queue_name",
      "replay_unknown_at",
      "replay_unknown_by"
    ])
  )
)

const ContentJson = Schema.fromJsonString(
  DeadLetterRecord.mapFields(Struct.pick(["exception_stack", "headers", "raw_body_b64", "properties"]))
)

const text = (reply: Reply | undefined): string | null => (typeof reply === "string" ? reply : null)

const isState = Schema.is(DeadLetterRecord.fields.state)
