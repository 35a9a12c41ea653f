import { Effect, Schema } from "effect"
import type { SqlError } from "effect/sql"
import { Database } from "../services/Database.ts"

export const channel = "svc_control_changes"

/** The data that gateways must reload after a change: the configuration, one key, or all keys of one project. */
export const Change = Schema.TaggedUnion({
  Configuration: {},
  Key: { id: Schema.String },
  Project: { id: Schema.String }
})
export type Change = typeof Change.Type

/** `epoch` is the sequence number of the change. */
export const ChangeNotice = Schema.fromJsonString(Schema.Struct({ epoch: Schema.Int, change: Change }))
export type ChangeNotice = typeof ChangeNotice.Type
const encodeNotice = Schema.encodeEffect(ChangeNotice)
export const decodeNotice = Schema.decodeUnknownEffect(ChangeNotice)

/** Decodes only `epoch`. A newer version may send a notice whose `change` this version cannot decode. */
export const decodeEpoch = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ epoch: Schema.Int })))

/** Returns the number of the latest change. */
export const readEpoch = Effect.gen(function* () {
  const { sql } = yield* Database
  const rows = yield* sql<{ epoch: string }>`SELECT epoch::text AS epoch FROM control_epoch`
  return Number(rows[0]?.epoch ?? 0)
})

/** Call this inside the transaction of the change. Gateways also poll the epoch, in case they miss the notice. */
export const publish = (change: Change): Effect.Effect<void, SqlError.SqlError, Database> =>
  Effect.gen(function* () {
    const { notify, sql } = yield* Database
    const rows = yield* sql<{
      epoch: string
    }>`UPDATE control_epoch SET epoch = epoch + 1 RETURNING epoch::text AS epoch`
    yield* notify(channel, yield* Effect.orDie(encodeNotice({ epoch: Number(rows[0]?.epoch), change })))
  })
