import { Context, Effect, Latch, Layer, Schema } from "effect"
import { Database } from "../../../services/Database.ts"
import { RequestId } from "../../api/schema/Errors.ts"
import { isUnreadable } from "../../api/schema/Fields.ts"
import { Operator } from "../../api/schema/Security.ts"
import { activeCondition } from "../../operators/OperatorTokens.ts"
import { computedRows } from "../../store/Rows.ts"
import { columnsOf, keyRows } from "../KeyRows.ts"
import { Keys } from "../Keys.ts"
import { Before, type PlannedChange, plannedChange, StoredChange } from "./PlannedChange.ts"

/**
 * Makes the changes of many keys, in steps of a few keys. A step is one transaction, so that a restart neither repeats
 * nor forgets a key. Only one process makes a step of a change at a time.
 */
export class BulkKeyWork extends Context.Service<
  BulkKeyWork,
  {
    /** Says that there is a new change. */
    readonly wake: Effect.Effect<void>
  }
>()("svc/control/BulkKeyWork") {
  static readonly layer = Layer.suspend(() => Layer.effect(BulkKeyWork, make))
}

/** Whoever else changes something waits for the audit log, and so for the end of a step: about a tenth of a second. */
const keysOfStep = 20

/** Changes that another process has accepted, or left behind, are found so late. */
const lookEvery = "2 seconds"

const make = Effect.gen(function* () {
  const latch = yield* Latch.make(false)
  const step = yield* makeStep
  const round = Effect.gen(function* () {
    yield* latch.close
    const isIdle = !(yield* step)
    if (isIdle) yield* Effect.timeoutOption(latch.await, lookEvery)
  })
  yield* round.pipe(
    Effect.catchCause((cause) =>
      Effect.andThen(Effect.logWarning("a change of many keys is held up", cause), Effect.sleep(lookEvery))
    ),
    Effect.forever,
    Effect.forkScoped
  )
  return BulkKeyWork.of({ wake: Effect.asVoid(latch.open) })
})

/** Changes the next keys of the oldest change. Returns false if there is nothing to do. */
const makeStep = Effect.gen(function* () {
  const { sql, transaction } = yield* Database
  const keys = yield* Keys
  const columns = columnsOf(sql)

  const end = (id: string, state: "done" | "stopped", reason: string | null) =>
    sql`UPDATE bulk_key_changes SET state = ${state}, stop_reason = ${reason}, ended_at = now() WHERE id = ${id}`

  const perform = (id: string, plan: Extract<PlannedChange, { readonly before: Before }>) =>
    plan.kind === "patch" ? keys.update(id, plan.patch) : plan.disabled ? keys.disable(id) : keys.enable(id)

  const changeKey = Effect.fnUntraced(function* (change: StoredChange, { before, key_id }: typeof Item.Type) {
    const row = yield* keyRows.firstOrUnreadable(sql`SELECT ${columns} FROM api_keys WHERE id = ${key_id} FOR UPDATE`)
    if (row === undefined) return failed("No key has this id any more.")
    if (isUnreadable(row)) {
      if (change.action !== "disable") return failed("This version cannot read the key: a newer one wrote it.")
      yield* keys.disable(key_id)
      return changed({})
    }
    const plan = plannedChange(change, row, before)
    if (plan.kind === "failed") return failed(plan.message)
    if (plan.kind === "unchanged") return unchanged
    yield* perform(key_id, plan)
    return changed(plan.before)
  })

  /** A refusal concerns this key alone. Without a database, the whole step is made again later. */
  const changeOrFail = (change: StoredChange, item: typeof Item.Type) =>
    Effect.catchTag(transaction(changeKey(change, item)), "ControlError", (error) =>
      error.code === "store_unavailable" ? Effect.fail(error) : Effect.succeed(failed(error.message))
    )

  const note = (changeId: string, place: number, { before, message, outcome }: Outcome) =>
    sql`UPDATE bulk_key_change_items SET outcome = ${outcome}, message = ${message},
        before = ${before === null ? null : JSON.stringify(before)}::jsonb
      WHERE change_id = ${changeId} AND place = ${place}`

  return Effect.gen(function* () {
    const next = yield* changeRows.first(sql`
      SELECT id, change, token_id, ip, user_agent, request_id,
        token_id IS NULL OR EXISTS (
          SELECT 1 FROM operator_tokens t WHERE t.id = token_id AND ${activeCondition(sql)}) AS is_allowed
      FROM bulk_key_changes WHERE state = 'running' ORDER BY created_at LIMIT 1 FOR UPDATE SKIP LOCKED`)
    if (next === undefined) return false
    const { change, id, ip, is_allowed, request_id, token_id: tokenId, user_agent: userAgent } = next
    if (!is_allowed) return yield* Effect.as(end(id, "stopped", "Its operator token is no longer valid."), true)
    const items = yield* itemRows.all(sql`
      SELECT place, key_id, before FROM bulk_key_change_items
      WHERE change_id = ${id} AND outcome = 'open' ORDER BY place LIMIT ${keysOfStep}`)
    if (items.length === 0) yield* end(id, "done", null)
    yield* Effect.forEach(
      items,
      (item) => Effect.flatMap(changeOrFail(change, item), (outcome) => note(id, item.place, outcome)),
      { discard: true }
    ).pipe(
      Effect.provideService(Operator, { tokenId, ip, userAgent, scopes: [] }),
      Effect.provideService(RequestId, request_id)
    )
    return true
  }).pipe(transaction, Effect.withSpan("BulkKeyWork.step"))
})

interface Outcome {
  readonly outcome: "changed" | "unchanged" | "failed"
  readonly before: Before | null
  readonly message: string | null
}

const changed = (before: Before): Outcome => ({ outcome: "changed", before, message: null })
const unchanged: Outcome = { outcome: "unchanged", before: null, message: null }
const failed = (message: string): Outcome => ({ outcome: "failed", before: null, message })

const changeRows = computedRows(
  Schema.Struct({
    id: Schema.String,
    change: StoredChange,
    token_id: Schema.NullOr(Schema.String),
    ip: Schema.NullOr(Schema.String),
    user_agent: Schema.NullOr(Schema.String),
    request_id: Schema.String,
    is_allowed: Schema.Boolean
  })
)
const Item = Schema.Struct({ place: Schema.Int, key_id: Schema.String, before: Schema.NullOr(Before) })
const itemRows = computedRows(Item)
