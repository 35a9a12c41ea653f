import { Effect } from "effect"
import type * as BodyMemory from "../../http/BodyMemory.ts"
import * as ExactJson from "../../messaging/envelope/ExactJson.ts"
import { ofMillis, withOffset } from "../../messaging/envelope/Timestamp.ts"
import type { ContractAliasConfig } from "../../messaging/topology/Aliases.ts"
import type { ArchiveSweeper } from "../dead-letters/ArchiveSweeper.ts"
import { DeadLetterStore, type RepairRefused } from "../dead-letters/DeadLetterStore.ts"
import { archivedDays } from "../dead-letters/LetterRepairs.ts"
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

/** Says whether an edit would be accepted. Nothing is changed. */
export const checkEdit = (aliases: ContractAliasConfig, { withReservation }: BodyMemory.BodyMemory["Service"]) =>
  withReservation(Number(maxBody))(
    Effect.gen(function* () {
      const dlqId = yield* parameter("dlq_id")
      const change = yield* requestedEdit
      const { source_queue_name, task_id } = yield* LetterEdit.check(dlqId, change, aliases)
      return ok({ dlq_id: dlqId, valid: true, task_id, target_queue_name: source_queue_name })
    })
  )

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

const stateOf = Effect.fnUntraced(function* (dlqId: string) {
  const record = yield* (yield* DeadLetterStore).get(dlqId)
  return { dlq_id: dlqId, state: record?.state ?? null, archive: record?.archive ?? null }
})

const refuse = (dlqId: string, why: RepairRefused) => {
  switch (why._tag) {
    case "Absent":
      return failWith(
        404,
        `There is no dead letter ${dlqId} in the index. An archived one is deleted after ${archivedDays} days.`
      )
    case "InProgress":
      return failWith(
        409,
        `A replay of ${dlqId} is in progress. It ends at ${withOffset(ofMillis(why.until))} at the latest. Try again then.`
      )
    case "Archived":
      return failWith(409, `${dlqId} was archived at ${why.at} already.`)
    default:
      return failWith(409, `${dlqId} is not archived, so it cannot be taken out of the archive.`)
  }
}
