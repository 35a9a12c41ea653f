import { Context, DateTime, Effect, Layer, Schema } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import { type LimitField, limitFields } from "../../policy/SharedLimits.ts"
import { Database } from "../../services/Database.ts"
import { ownerOf, type StoredKey } from "../../state/StoredKeys.ts"
import { LimitRaise, maxRaiseDays, type NewLimitRaise } from "../api/limits/LimitRaises.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import type { Cursor } from "../api/schema/Fields.ts"
import { Operator } from "../api/schema/Security.ts"
import { type Actor, Audit, Snapshots } from "../audit/Audit.ts"
import * as PolicyState from "../policies/PolicyState.ts"
import { keyset, type Page, readPage } from "../store/Paging.ts"
import { type StatementFailure, type StoreFailure, storedRows, toStoreFailures } from "../store/Rows.ts"
import * as BindingLimits from "./BindingLimits.ts"
import * as LimitedKeys from "./LimitedKeys.ts"

type Missing = Refused<"not_found">
type RaiseRefused = Missing | Refused<"invalid_policy_payload" | "key_revoked">

/** Exceptions from the limits of single keys, each until a time. Gateways end them by their own clocks. */
export class LimitRaises extends Context.Service<
  LimitRaises,
  {
    readonly raise: (
      keyId: string,
      raise: NewLimitRaise
    ) => Effect.Effect<LimitRaise, RaiseRefused | StoreFailure, Actor>
    /** Raises limits as a part of another change. `write` comes from `Audit.mutate`. */
    readonly insert: (
      write: SqlClient,
      keyId: string,
      raise: NewLimitRaise
    ) => Effect.Effect<LimitRaise, RaiseRefused | StatementFailure, Operator>
    /** Returns all exceptions of a key, also those that ended, the newest first. */
    readonly list: (
      keyId: string,
      query: { readonly limit?: number; readonly cursor?: Cursor }
    ) => Effect.Effect<Page<LimitRaise>, Missing | StoreFailure>
    /** Ends an exception before its time. */
    readonly end: (keyId: string, id: string) => Effect.Effect<LimitRaise, Missing | StoreFailure, Actor>
  }
>()("svc/control/LimitRaises") {
  static readonly layer = Layer.suspend(() => Layer.effect(LimitRaises, make))
}

const defaultLimit = 100

/** Gateways keep the exceptions of a key in memory. */
const maxInForce = 20

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const keys = LimitedKeys.make(sql)
  const policies = PolicyState.make(sql)
  const columns = sql.literal("id, key_id, limits, until, reason, created_at, created_by, ended_at")

  const requireKey = Effect.fnUntraced(function* (id: string) {
    const [key] = yield* sql`SELECT 1 FROM api_keys WHERE id = ${id}`
    if (key === undefined) return yield* keyNotFound
  })

  /** Locks the key, so that of two exceptions the second one is compared with the first. */
  const lockKey = Effect.fnUntraced(function* (id: string) {
    yield* sql`SELECT 1 FROM api_keys WHERE id = ${id} FOR UPDATE`
    const key = yield* policies.key(id)
    if (key === undefined) return yield* keyNotFound
    if (key.revoked) return yield* new ControlError("key_revoked", "A revoked key has no limits. Create another key.")
    return key
  })

  const limitsInForce = Effect.fnUntraced(function* (key: StoredKey, now: number) {
    const owners = yield* policies.layersForOwners([ownerOf(key)])
    return BindingLimits.lowest(LimitedKeys.withNarrowing(owners, yield* keys.narrowingLayers), key, now)
  })

  const insert = Effect.fnUntraced(function* (write: SqlClient, keyId: string, input: NewLimitRaise) {
    const now = yield* DateTime.now
    const millis = DateTime.toEpochMillis(now)
    yield* checkTime(input, millis)
    const key = yield* lockKey(keyId)
    if (key.raises.length >= maxInForce) return yield* tooMany
    yield* checkLimits(input, yield* limitsInForce(key, millis))
    const { tokenId } = yield* Operator
    return yield* raiseRows.only(write`
      INSERT INTO limit_raises (key_id, limits, until, reason, created_by)
      VALUES (${keyId}, ${JSON.stringify(limitsOf(input))}::jsonb, ${DateTime.toDateUtc(input.until)}, ${input.reason}, ${tokenId})
      RETURNING ${columns}`)
  })

  const raise = Effect.fn("LimitRaises.raise")((keyId: string, input: NewLimitRaise) =>
    audit.mutate(function* ({ write }) {
      const raised = yield* insert(write, keyId, input)
      return {
        result: raised,
        auditAction: { target: "key", action: "limits:raise" },
        targetId: keyId,
        snapshots: yield* snapshots(null, raised),
        changes: [{ _tag: "Key", id: keyId }]
      }
    })
  )

  const end = Effect.fn("LimitRaises.end")((keyId: string, id: string) =>
    audit.mutate(function* ({ write }) {
      const before = yield* raiseRows.first(
        sql`SELECT ${columns} FROM limit_raises WHERE id = ${id} AND key_id = ${keyId} FOR UPDATE`
      )
      if (before === undefined) return yield* raiseNotFound
      const now = yield* DateTime.now
      const isOver = before.ended_at !== null || DateTime.isLessThanOrEqualTo(before.until, now)
      const after = isOver
        ? before
        : yield* raiseRows.only(
            write`UPDATE limit_raises SET ended_at = ${DateTime.toDateUtc(now)} WHERE id = ${id} RETURNING ${columns}`
          )
      return {
        result: after,
        auditAction: { target: "key", action: "limits:end_raise" },
        targetId: keyId,
        snapshots: yield* snapshots(before, after),
        changes: [{ _tag: "Key", id: keyId }]
      }
    })
  )

  return LimitRaises.of({
    raise,
    insert,
    end,
    list: Effect.fn("LimitRaises.list")(function* (keyId, { cursor, limit = defaultLimit }) {
      yield* requireKey(keyId)
      const at = keyset(sql, "limit_raises", cursor)
      return yield* readPage(
        raiseRows,
        sql`SELECT ${columns}, ${at.micros} FROM limit_raises WHERE key_id = ${keyId} AND ${at.afterCursor}
          ORDER BY ${at.order} LIMIT ${limit + 1}`,
        limit,
        (row) => row
      )
    }, toStoreFailures)
  })
})

const limitsOf = (input: NewLimitRaise): LimitRaise["limits"] => {
  const limits: { [Field in LimitField]?: number } = {}
  for (const field of limitFields) if (input[field] !== undefined) limits[field] = input[field]
  return limits
}

const dayMs = 86_400_000

const checkTime = (input: NewLimitRaise, now: number) => {
  const until = DateTime.toEpochMillis(input.until)
  if (until <= now) return refuse("until", "must be in the future")
  return until > now + maxRaiseDays * dayMs
    ? refuse("until", `must be at most ${maxRaiseDays} days ahead`)
    : Effect.void
}

const checkLimits = (input: NewLimitRaise, inForce: BindingLimits.LowestLimits) => {
  const named = limitFields.filter((field) => input[field] !== undefined)
  if (named.length === 0) return refuse(undefined, `Name at least one limit to raise: ${limitFields.join(", ")}`)
  for (const field of named) {
    const limit = inForce[field]
    if (limit === undefined) {
      return refuse(field, "must be left out: nothing limits it for this key, so there is nothing to raise")
    }
    if ((input[field] ?? 0) <= limit) {
      return refuse(field, `must be higher than ${limit}, which is in force for this key`)
    }
  }
  return Effect.void
}

const refuse = (param: string | undefined, violation: string) =>
  Effect.fail(
    param === undefined
      ? new ControlError("invalid_policy_payload", `${violation}.`)
      : new ControlError("invalid_policy_payload", `${param} ${violation}.`, { param })
  )

const tooMany = new ControlError(
  "invalid_policy_payload",
  `The key has ${maxInForce} exceptions in force, which is the limit. End one first.`
)

const raiseRows = storedRows(
  LimitRaise.pipe(
    Schema.fieldsAssign({
      until: Schema.DateTimeUtcFromDate,
      created_at: Schema.DateTimeUtcFromDate,
      ended_at: Schema.NullOr(Schema.DateTimeUtcFromDate)
    })
  ),
  { table: "limit_raises", key: ["id"] }
)
const keyNotFound = new ControlError("not_found", "No key has this id.", { param: "key_id" })
const raiseNotFound = new ControlError("not_found", "No exception of this key has this id.", { param: "id" })
const snapshots = Snapshots.of(LimitRaise)
