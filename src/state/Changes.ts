import { Effect, Schema } from "effect"
import type { SqlError } from "effect/sql"
import { Database } from "../services/Database.ts"

/** The channel on which control tells every gateway what changed. */
export const channel = "svc_control_changes"

/**
 * What a gateway must forget. `Configuration`: routes, the wildcard, provider rows, prices. `EncryptionKey`: one key's record.
 * `Project`: the records of all its keys (a credential mapping of the project changed).
 */
export const Change = Schema.TaggedUnion({
  Configuration: {},
  Key: { id: Schema.String },
  Project: { id: Schema.String }
})
export type Change = typeof Change.Type

/** `epoch`: the state's number with this change in it. */
export const ChangeNotice = Schema.fromJsonString(Schema.Struct({ epoch: Schema.Int, change: Change }))
export type ChangeNotice = typeof ChangeNotice.Type
const encodeNotice = Schema.encodeEffect(ChangeNotice)
export const decodeNotice = Schema.decodeUnknownEffect(ChangeNotice)

/** The epoch of a notice whose change only a newer version knows. */
export const decodeEpoch = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ epoch: Schema.Int })))

/** The number of the state: every change raises it. */
export const readEpoch = Effect.gen(function* () {
  const { sql } = yield* Database
  const rows = yield* sql<{ epoch: string }>`SELECT epoch::text AS epoch FROM control_epoch`
  return Number(rows[0]?.epoch ?? 0)
})

/**
 * Publishes a change. Call it inside the transaction that makes it: the notice leaves with the commit, and the epoch
 * tells those who could not hear it.
 */
export const publish = (change: Change): Effect.Effect<void, SqlError.SqlError, Database> =>
  Effect.gen(function* () {
    const { notify, sql } = yield* Database
    const rows = yield* sql<{
      epoch: string
    }>`UPDATE control_epoch SET epoch = epoch + 1 RETURNING epoch::text AS epoch`
    yield* notify(channel, yield* Effect.orDie(encodeNotice({ epoch: Number(rows[0]?.epoch), change })))
  })
