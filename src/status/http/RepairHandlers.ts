import { Array as Arr, Effect, Option } from "effect"
import type * as BodyMemory from "../../http/BodyMemory.ts"
import * as ExactJson from "../../messaging/envelope/ExactJson.ts"
import { ofMillis, withOffset } from "../../messaging/envelope/Timestamp.ts"
import type { ContractAliasConfig } from "../../messaging/topology/Aliases.ts"
import type { RedisError } from "../../services/Redis.ts"
import type { ArchiveSweeper } from "../dead-letters/ArchiveSweeper.ts"
import {
  DeadLetterStore,
  type RepairedMany,
  type RepairRefused,
  type RepairResult
} from "../dead-letters/DeadLetterStore.ts"
import { archivedDays } from "../dead-letters/LetterRepairs.ts"
import { idsOf } from "../dead-letters/Selection.ts"
import type * as PayloadCheck from "../payload/PayloadCheck.ts"
import { notCompared } from "../payload/PayloadFit.ts"
import * as LetterEdit from "../replay/LetterEdit.ts"
import * as Parameters from "./DeadLetterParameters.ts"
import {
  bodyText,
  failWith,
  maxBody,
  ok,
  operationReason,
  orInvalid,
  parameter,
  parseOrUndefined
} from "./DeadLetterResponses.ts"

/**
 * Says whether an edit would be accepted, and whether its payload fits the schema of its handler. One that does not fit
 * is accepted as well, because the schema may have changed meanwhile. Nothing is changed.
 */
export const checkEdit = (
  aliases: ContractAliasConfig,
  { withReservation }: BodyMemory.BodyMemory["Service"],
  payloads: Option.Option<PayloadCheck.PayloadCheck["Service"]>
) =>
  withReservation(Number(maxBody))(
    Effect.gen(function* () {
      const dlqId = yield* parameter("dlq_id")
      const change = yield* requestedEdit
      const record = yield* LetterEdit.check(dlqId, change, aliases)
      const root = "body" in change ? "body.payload" : "payload"
      const fit = yield* fitOf(payloads, { record, aliases, root })
      return ok({
        dlq_id: dlqId,
        valid: true,
        task_id: record.task_id,
        target_queue_name: record.source_queue_name,
        ...fit
      })
    })
  )

/** Compares a payload with the schema of its handler. */
export const fitOf = (payloads: Option.Option<PayloadCheck.PayloadCheck["Service"]>, given: PayloadCheck.Given) =>
  Option.isSome(payloads)
    ? payloads.value.check(given)
    : Effect.succeed(notCompared("This server does not read the schemas of workers."))

const requestedEdit = Effect.flatMap(bodyText(maxBody), (text) =>
  orInvalid(Parameters.edit(parseOrUndefined(text, ExactJson.parse)))
)

/** Edits a dead letter and replays it as a new one. */
export const edit = (aliases: ContractAliasConfig, { withReservation }: BodyMemory.BodyMemory["Service"]) =>
  withReservation(Number(maxBody))(
    Effect.gen(function* () {
      const dlqId = yield* parameter("dlq_id")
      const change = yield* requestedEdit
      const { problem, replayed, ...edited } = yield* LetterEdit.edit(dlqId, change, aliases)
      return ok(
        {
          ...edited,
          state: replayed?.state ?? "dead_lettered",
          target_queue_name: replayed?.target_queue_name ?? null,
          replayed_at: replayed?.replayed_at ?? null,
          problem: problem ?? null
        },
        replayed === undefined ? 202 : 201
      )
    })
  )

/** Takes a dead letter out of all lists. The sweeper then removes its message from the queue. */
export const archive = (sweeper: ArchiveSweeper["Service"]) =>
  Effect.gen(function* () {
    const dlqId = yield* parameter("dlq_id")
    const why = yield* operationReason
    const store = yield* DeadLetterStore
    const result = yield* store.archive(dlqId, why)
    if (result._tag !== "Done") return yield* refuse(dlqId, result)
    sweeper.wake()
    return ok(yield* stateOf(dlqId))
  })

export const unarchive = Effect.gen(function* () {
  const dlqId = yield* parameter("dlq_id")
  const result = yield* (yield* DeadLetterStore).unarchive(dlqId)
  if (result._tag !== "Done") return yield* refuse(dlqId, result)
  return ok(yield* stateOf(dlqId))
})

/** So many ids fit into a body. */
const mostAtOnce = 10_000

/** Archives many dead letters. One whose state forbids it does not hold up the others. */
export const archiveMany = (
  sweeper: ArchiveSweeper["Service"],
  aliases: ContractAliasConfig,
  { withReservation }: BodyMemory.BodyMemory["Service"]
) =>
  withReservation(Number(maxBody))(
    Effect.gen(function* () {
      const body = parseOrUndefined(yield* bodyText(maxBody))
      const { selection, why } = yield* orInvalid(Parameters.archiveRequest(body, mostAtOnce, aliases))
      const { ids, truncated } = yield* idsOf(selection, mostAtOnce)
      const store = yield* DeadLetterStore
      const repaired = yield* repairMany(ids, (id) => store.archive(id, why))
      sweeper.wake()
      return ok({ ...repaired, truncated })
    })
  )

/** Takes many dead letters out of the archive. */
export const unarchiveMany = ({ withReservation }: BodyMemory.BodyMemory["Service"]) =>
  withReservation(Number(maxBody))(
    Effect.gen(function* () {
      const body = parseOrUndefined(yield* bodyText(maxBody))
      const ids = yield* orInvalid(Parameters.unarchiveRequest(body, mostAtOnce))
      const store = yield* DeadLetterStore
      return ok(yield* repairMany([...new Set(ids)], store.unarchive))
    })
  )

const sentAtOnce = 64

/** Goes on until Redis fails. What has changed by then is told, so that it can be taken back. */
const repairMany = Effect.fnUntraced(function* (
  all: ReadonlyArray<string>,
  repair: (dlqId: string) => Effect.Effect<RepairResult, RedisError>
) {
  const ids: Array<string> = []
  const refused: Array<RepairedMany["refused"][number]> = []
  const repaired = (problem: string | null): RepairedMany => ({ changed: ids.length, ids, refused, problem })
  for (const some of Arr.chunksOf(all, sentAtOnce)) {
    const results = yield* Effect.forEach(some, (id) => Effect.result(repair(id)), { concurrency: sentAtOnce })
    const failures: Array<RedisError> = []
    for (const [n, result] of results.entries()) {
      const id = some[n] ?? ""
      if (result._tag === "Failure") failures.push(result.failure)
      else if (result.success._tag === "Done") ids.push(id)
      else refused.push({ dlq_id: id, detail: whyRefused(id, result.success).detail })
    }
    const [failure] = failures
    if (failure === undefined) continue
    if (ids.length === 0) return yield* failure
    yield* Effect.logWarning("A repair of many dead letters has stopped", failure.message)
    return repaired(stopped)
  }
  return repaired(null)
})

const stopped = "The index of dead letters has become unavailable. Send the request again for the rest."

const stateOf = Effect.fnUntraced(function* (dlqId: string) {
  const record = yield* (yield* DeadLetterStore).get(dlqId)
  return { dlq_id: dlqId, state: record?.state ?? null, archive: record?.archive ?? null }
})

const refuse = (dlqId: string, why: RepairRefused) => {
  const { detail, status } = whyRefused(dlqId, why)
  return failWith(status, detail)
}

const whyRefused = (dlqId: string, why: RepairRefused): { readonly status: 404 | 409; readonly detail: string } => {
  switch (why._tag) {
    case "Absent":
      return {
        status: 404,
        detail: `There is no dead letter ${dlqId} in the index. An archived one is deleted after ${archivedDays} days.`
      }
    case "InProgress":
      return {
        status: 409,
        detail: `A replay of ${dlqId} is in progress. It ends at ${withOffset(ofMillis(why.until))} at the latest. Try again then.`
      }
    case "Archived":
      return { status: 409, detail: `${dlqId} was archived at ${why.at} already.` }
    default:
      return { status: 409, detail: `${dlqId} is not archived, so it cannot be taken out of the archive.` }
  }
}
