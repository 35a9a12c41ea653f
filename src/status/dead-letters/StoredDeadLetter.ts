import { Schema, Struct } from "effect"
import { bodyOf, DeadLetterRecord } from "../../messaging/failure/DeadLetter.ts"
import * as ReplayOrigin from "../../messaging/retry/ReplayOrigin.ts"
import * as RetryHeaders from "../../messaging/retry/RetryHeaders.ts"
import type { Reply } from "../../services/Redis.ts"
import * as Index from "./DeadLetterIndex.ts"
import type { DeadLetterSummary } from "./DeadLetterStore.ts"

/** Returns the fields and values of a record's hash in Redis. The body is stored only as bytes. */
export const hashFieldsOf = (record: DeadLetterRecord): ReadonlyArray<string | number> => {
  const summary = Schema.encodeSync(SummaryJson)(record)
  const content = Schema.encodeSync(ContentJson)(record)
  const origin = originOf(record.headers)
  const known = {
    stack_line: stackLineOf(record.exception_stack),
    version: record.worker_version,
    edited_from: record.edited_from,
    replay_of: origin?.dlq_id,
    replay_of_at: origin?.replayed_at,
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

/** The message of a replay names the dead letter that was replayed in its headers. */
export const originOf = (headers: DeadLetterRecord["headers"]): ReplayOrigin.ReplayOrigin | undefined => {
  const { [RetryHeaders.replayedLetter]: letter, [RetryHeaders.replayedAt]: at } = headers
  return typeof letter === "string" && typeof at === "string"
    ? ReplayOrigin.ofHeaders({ [RetryHeaders.replayedLetter]: letter, [RetryHeaders.replayedAt]: at })
    : undefined
}

/** Returns the first line that says where an exception was thrown, or else the first line. */
export const stackLineOf = (stack: string | null | undefined): string | undefined => {
  const lines = (stack ?? "").slice(0, maxStackLooked).split("\n", maxStackLines)
  const line = (lines.find((line) => /^\s{0,16}at /.test(line)) ?? lines[0] ?? "").trim()
  return line === "" ? undefined : shortened(line)
}

/** Returns the beginning of the exception message of a stored summary. */
export const shortMessageOf = (summary: string): string | null => {
  const { exception_message: message } = Schema.decodeSync(SummaryJson)(summary)
  return message ? shortened(message) : null
}

const shortened = (text: string): string =>
  text.length > maxShown ? `${text.slice(0, maxShown - 1).toWellFormed()}…` : text.toWellFormed()

const maxStackLooked = 4_096
const maxStackLines = 20
/** The maximum length of a text in the row of a group. */
const maxShown = 300

export const summaryOf = (values: ReadonlyArray<Reply>): DeadLetterSummary => {
  const [summary, storedState, count, replayedAt, target, unknownAt, unknownBy, , ...repairs] = values
  const [replacedBy, replacedAt, editedFrom, ...rest] = repairs
  const [archivedAt, archivedBy, archivedReason, , archivedUntil, ...outcome] = rest
  const state = shownState(storedState, archivedAt, replacedBy)
  const changing = MutableFields.make({
    state,
    replay_count: Number(count),
    replayed_at: text(replayedAt),
    replay_target_queue_name: text(target)
  })
  return {
    ...Schema.decodeSync(SummaryJson)(String(summary)),
    ...changing,
    ...(state === "replay_unknown" && { replay_unknown_at: text(unknownAt), replay_unknown_by: text(unknownBy) }),
    ...(state === "replayed" && { replay_outcome: outcomeOf(replayedAt, outcome) }),
    ...(typeof editedFrom === "string" && { edited_from: editedFrom }),
    ...(typeof replacedBy === "string" && { replaced_by: replacedBy, replaced_at: text(replacedAt) }),
    ...(state === "archived" && {
      archive: {
        reason: text(archivedReason) ?? "",
        by: text(archivedBy),
        archived_at: text(archivedAt) ?? "",
        until: text(archivedUntil) ?? ""
      }
    })
  }
}

const shownState = (state: Reply | undefined, archivedAt: Reply | undefined, replacedBy: Reply | undefined) => {
  if (typeof archivedAt === "string") return "archived"
  if (typeof replacedBy === "string") return "replaced"
  return isState(state) ? state : "dead_lettered"
}

const outcomeOf = (
  replayedAt: Reply | undefined,
  [outcome, of, knownAt, failedAs]: ReadonlyArray<Reply>
): NonNullable<DeadLetterRecord["replay_outcome"]> =>
  of === replayedAt && (outcome === "handled" || outcome === "failed_again")
    ? { outcome, known_at: text(knownAt), failed_again_as: text(failedAs) || null }
    : { outcome: "published", known_at: null, failed_again_as: null }

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
      "replay_unknown_by",
      "replay_outcome",
      "edited_from",
      "replaced_by",
      "replaced_at",
      "archive"
    ])
  )
)

const ContentJson = Schema.fromJsonString(
  DeadLetterRecord.mapFields(Struct.pick(["exception_stack", "headers", "raw_body_b64", "properties"]))
)

const text = (reply: Reply | undefined): string | null => (typeof reply === "string" ? reply : null)

const isState = Schema.is(DeadLetterRecord.fields.state)
