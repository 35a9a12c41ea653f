import { createHash } from "node:crypto"
import { Clock, Effect, Option, Record, Result, Schema, Struct } from "effect"
import * as BatchEnvelope from "../../messaging/envelope/BatchEnvelope.ts"
import { encode, isJsonObject, type JsonObject, parse } from "../../messaging/envelope/Envelope.ts"
import type { EnvelopeError, Mistake } from "../../messaging/envelope/Errors.ts"
import { type ExactAndOrdinary, readBoth } from "../../messaging/envelope/ExactJson.ts"
import * as TaskEnvelope from "../../messaging/envelope/TaskEnvelope.ts"
import * as Timestamp from "../../messaging/envelope/Timestamp.ts"
import * as WorkflowEnvelope from "../../messaging/envelope/WorkflowEnvelope.ts"
import { bodyOf, type DeadLetterRecord } from "../../messaging/failure/DeadLetter.ts"
import * as RetryHeaders from "../../messaging/retry/RetryHeaders.ts"
import type { ContractAliasConfig } from "../../messaging/topology/Aliases.ts"
import { Broker } from "../../services/Broker.ts"
import { DeadLetterStore, type RepairRefused } from "../dead-letters/DeadLetterStore.ts"
import { changedPaths } from "./ChangedPaths.ts"
import { ReplayError, type Replayed, replay } from "./Replay.ts"

/** The content of a letter after the edit: another payload in its envelope, or another envelope. */
export type Edit = { readonly payload: JsonObject } | { readonly body: JsonObject }

/** The edited message is no valid envelope. Nothing was changed. */
export class InvalidEdit extends Schema.TaggedError<InvalidEdit>()("InvalidEdit", {
  mistakes: Schema.Array(Schema.Struct({ field: Schema.String, problem: Schema.String }))
}) {}

/** The letter cannot be edited now. Nothing was changed. */
export class EditRefused extends Schema.TaggedError<EditRefused>()("EditRefused", {
  reason: Schema.Literals(["absent", "conflict", "unavailable"]),
  message: Schema.String
}) {}

export interface Edited {
  /** The new record. */
  readonly dlq_id: string
  readonly edited_from: string
  readonly task_id: string | null
  /** The places at which the new message differs from the old one. Logs name them, and none of the values. */
  readonly changed: ReadonlyArray<string>
  /** `undefined` if the new record was stored, and its replay failed. It can be replayed like any other record. */
  readonly replayed: Replayed | undefined
  readonly problem: string | undefined
}

/** Returns the record that an edit would make, and changes nothing. Fails as the edit would. */
export const check = Effect.fn("LetterEdit.check")(function* (
  dlqId: string,
  change: Edit,
  aliases: ContractAliasConfig
) {
  const record = yield* (yield* DeadLetterStore).get(dlqId)
  if (record === undefined) return yield* refused(dlqId, { _tag: "Absent" })
  if (record.state === "replaced") return yield* refused(dlqId, { _tag: "Replaced", by: record.replaced_by ?? "" })
  if (record.state === "archived") {
    return yield* refused(dlqId, { _tag: "Archived", at: record.archive?.archived_at ?? "" })
  }
  if (record.state !== "dead_lettered") return yield* refused(dlqId, { _tag: "Changed", state: record.state })
  const now = Timestamp.ofMillis(yield* Clock.currentTimeMillis)
  const edited = yield* Effect.mapError(
    Effect.fromResult(editedRecord(record, change, aliases, now)),
    (mistakes) => new InvalidEdit({ mistakes })
  )
  yield* requireQueue(record.source_queue_name)
  return edited
})

/**
 * Replaces a dead letter with an edited one, and replays that. The replacement is one step in Redis: after a crash, either
 * nothing has changed, or the new record is there and can be replayed.
 */
export const edit = Effect.fn("LetterEdit.edit")(function* (dlqId: string, change: Edit, aliases: ContractAliasConfig) {
  const store = yield* DeadLetterStore
  const before = yield* store.get(dlqId)
  const edited = yield* check(dlqId, change, aliases)
  const replaced = yield* store.replace(dlqId, edited)
  if (replaced._tag !== "Done") return yield* refused(dlqId, replaced)
  const replayed = yield* Effect.result(replay(edited.dlq_id))
  const stored = {
    dlq_id: edited.dlq_id,
    edited_from: dlqId,
    task_id: edited.task_id,
    changed: changedPaths(bodyIn(before), bodyIn(edited))
  }
  return Result.match(replayed, {
    onSuccess: (replayed): Edited => ({ ...stored, replayed, problem: undefined }),
    onFailure: (error): Edited => ({ ...stored, replayed: undefined, problem: error.message })
  })
}, Effect.uninterruptible)

/** `undefined` if the message is no JSON. */
const bodyIn = (record: DeadLetterRecord | undefined): unknown => {
  try {
    return record && JSON.parse(Buffer.from(record.raw_body_b64, "base64").toString())
  } catch {
    return undefined
  }
}

/** A message that no queue would take is refused before anything is changed. */
const requireQueue = Effect.fnUntraced(function* (queue: string) {
  const found = yield* Effect.mapError(
    (yield* Broker).inspect(queue),
    ({ message }) =>
      new EditRefused({
        reason: "unavailable",
        message: `The broker does not respond, so nothing was changed: ${message}`
      })
  )
  if (Option.isSome(found)) return
  return yield* new ReplayError({
    reason: "no_queue",
    message: `The queue ${queue} does not exist any more, so nothing was changed. Start the worker that declares the queue, then edit again.`
  })
})

const refused = (dlqId: string, why: RepairRefused) => {
  const [reason, message] = refusalOf(dlqId, why)
  return new EditRefused({ reason, message })
}

const refusalOf = (dlqId: string, why: RepairRefused): readonly [EditRefused["reason"], string] => {
  switch (why._tag) {
    case "Absent":
      return ["absent", `There is no dead letter ${dlqId} in the index.`]
    case "InProgress":
      return [
        "conflict",
        `A replay of ${dlqId} is in progress. It ends at ${Timestamp.withOffset(Timestamp.ofMillis(why.until))} at the latest. Look at the record then.`
      ]
    case "Replaced":
      return ["conflict", `${dlqId} was edited already: ${why.by} has the edited message. Edit that, if it has failed.`]
    case "Archived":
      return ["conflict", `${dlqId} was archived at ${why.at}. Take it out of the archive before you edit it.`]
    case "Changed":
      return [
        "conflict",
        why.state === "replay_unknown"
          ? `It is unknown whether a replay of ${dlqId} was published, so an edited message could be the second one. Check whether the task ran.`
          : `${dlqId} was replayed already, so it cannot be edited. If its message has failed again, edit the new dead letter.`
      ]
  }
}

const editedRecord = (
  record: DeadLetterRecord,
  change: Edit,
  aliases: ContractAliasConfig,
  now: Timestamp.Timestamp
): Result.Result<DeadLetterRecord, ReadonlyArray<Mistake>> =>
  Result.gen(function* () {
    const [at, envelope] = yield* envelopeOf(record, change, aliases)
    const content = yield* Result.mapError(encode("task", envelope), (error) => mistakesOf(at, error))
    const { taskId } = yield* Result.mapError(validate(content, aliases, now), (error) => mistakesOf(at, error))
    return recordOf(record, content, taskId)
  })

/** Returns the member of the request that the mistakes are in, and the envelope. */
const envelopeOf = (
  record: DeadLetterRecord,
  change: Edit,
  aliases: ContractAliasConfig
): Result.Result<readonly [string, JsonObject], ReadonlyArray<Mistake>> => {
  if ("body" in change) return Result.map(canonical(aliases, change.body), (body) => ["body", body] as const)
  const known = aliases.read("task", Buffer.from(record.raw_body_b64, "base64"))
  if (Result.isFailure(known)) {
    const problem =
      "needs an envelope, but the body of this dead letter is no JSON object: give body, the whole envelope"
    return Result.fail([{ field: "payload", problem }])
  }
  if (BatchEnvelope.isBatch(known.success.exact)) {
    return Result.fail([{ field: "payload", problem: "cannot be that of a batch: give body, the whole envelope" }])
  }
  return Result.succeed(["payload", { ...known.success.exact, payload: change.payload }])
}

const canonical = (
  aliases: ContractAliasConfig,
  body: JsonObject
): Result.Result<JsonObject, ReadonlyArray<Mistake>> => {
  const read = aliases.inbound(body)
  return isJsonObject(read) ? Result.succeed(read) : Result.fail([{ field: "body", problem: "must be a JSON object" }])
}

interface Validated {
  /** `null` for a batch. */
  readonly taskId: string | null
}

const validate = (
  content: Uint8Array,
  aliases: ContractAliasConfig,
  now: Timestamp.Timestamp
): Result.Result<Validated, EnvelopeError> =>
  Result.flatMap(parse("task", content), (message): Result.Result<Validated, EnvelopeError> => {
    const { exact, ordinary } = message
    if (BatchEnvelope.isBatch(ordinary)) {
      return Result.map(
        BatchEnvelope.read(exact, now, (item) => aliases.inbound(item)),
        () => ({ taskId: null })
      )
    }
    return typeof ordinary["stage"] === "string"
      ? taskIdOf(readBoth(message, (one) => WorkflowEnvelope.read(one, "")))
      : taskIdOf(readBoth(message, (one) => TaskEnvelope.read(one, now)))
  })

const taskIdOf = <A extends { readonly task_id: string }>(read: Result.Result<ExactAndOrdinary<A>, EnvelopeError>) =>
  Result.map(read, ({ ordinary }) => ({ taskId: ordinary.task_id }))

const mistakesOf = (at: string, { message, mistakes }: EnvelopeError): ReadonlyArray<Mistake> =>
  mistakes.length === 0
    ? [{ field: at, problem: message }]
    : mistakes.map(({ field, problem }) => ({ field: fieldIn(at, field), problem }))

/** A mistake that is not in the payload is in the envelope around it, which only `body` can change. */
const fieldIn = (at: string, field: string): string => {
  if (at === "payload" && field.startsWith("payload")) return field
  return field === "" ? at : `body.${field}`
}

const recordOf = (record: DeadLetterRecord, content: Uint8Array, taskId: string | null): DeadLetterRecord => {
  const headers = Record.filter(record.headers, (_, name) => !ofReplays.has(name))
  return {
    ...Struct.omit(record, ["archive", "replaced_at", "replaced_by", "replay_outcome"]),
    dlq_id: createHash("sha256").update(`${record.dlq_id} edited `).update(content).digest("hex"),
    edited_from: record.dlq_id,
    task_id: taskId ?? record.task_id,
    headers: headers["task_id"] === undefined || taskId === null ? headers : { ...headers, task_id: taskId },
    content_type: "application/json",
    ...bodyOf(content),
    raw_body_b64: Buffer.from(content).toString("base64"),
    replay_count: 0,
    replayed_at: null,
    replay_target_queue_name: null,
    properties: Struct.omit(record.properties ?? {}, ["content_encoding"])
  }
}

const ofReplays: ReadonlySet<string> = new Set([
  RetryHeaders.replayedFromDlq,
  RetryHeaders.replayedLetter,
  RetryHeaders.replayedAt
])
