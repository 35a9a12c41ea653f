import { Cause, Clock, Context, Duration, Effect, Latch, Layer, Result, Schedule, Schema } from "effect"
import { Database, StatementDeadline } from "../../../services/Database.ts"
import * as LogThrottle from "../../../services/LogThrottle.ts"
import { RequestId } from "../../api/schema/Errors.ts"
import { isUnreadable } from "../../api/schema/Fields.ts"
import { allows, Operator, Scope } from "../../api/schema/Security.ts"
import { activeCondition } from "../../operators/OperatorTokens.ts"
import { computedRows, lockProject } from "../../store/Rows.ts"
import { columnsOf, keyRows } from "../KeyRows.ts"
import { Keys } from "../Keys.ts"
import { type PlannedChange, plannedChange, projectsOf, Replaced, StoredChange, scopesOf } from "./PlannedChange.ts"

/**
 * Makes the changes of many keys in steps of a few keys, on behalf of the operator tokens that began them. A step is one
 * transaction, so that a restart neither repeats nor forgets a key. Changes take turns.
 */
export class BulkKeyWorker extends Context.Service<
  BulkKeyWorker,
  {
    /** Starts the next step now instead of at the next poll. */
    readonly wake: Effect.Effect<void>
  }
>()("svc/control/BulkKeyWorker") {
  static readonly layer = Layer.suspend(() => Layer.effect(BulkKeyWorker, make))
}

/** A step holds the lock of the audit log until it commits, so all other changes wait for it. */
const mostKeysOfStep = 20
const longestStepMs = 100
const stepDeadline = Duration.seconds(5)

/** An idle process looks so often for changes that another process accepted or abandoned. */
const pollEvery = "2 seconds"

/** A change that this process cannot make now waits for so long: others go on, and another version may make it. */
const heldUpFor = "30 seconds"

const keptFor = "30 days"

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const latch = yield* Latch.make(false)
  const logFailure = yield* LogThrottle.makePerMinute
  const step = yield* makeStep
  const round = Effect.gen(function* () {
    yield* latch.close
    const isIdle = !(yield* step)
    if (isIdle) yield* Effect.timeoutOption(latch.await, pollEvery)
  })
  yield* round.pipe(
    Effect.catchCause((cause) =>
      Effect.andThen(
        logFailure((suppressed) => Effect.logWarning(`bulk key changes cannot go on${suppressed}`, cause)),
        Effect.sleep(pollEvery)
      )
    ),
    Effect.forever,
    Effect.forkScoped
  )
  const forget = sql`DELETE FROM bulk_key_changes WHERE state <> 'running' AND created_at < now() - ${keptFor}::interval`
  yield* Effect.forkScoped(Effect.repeat(Effect.ignore(forget), Schedule.spaced("1 hour")))
  return BulkKeyWorker.of({ wake: Effect.asVoid(latch.open) })
})

/** Changes the next keys of the change whose turn it is. Returns false if there is nothing to do. */
const makeStep = Effect.gen(function* () {
  const { sql, transaction } = yield* Database
  const keys = yield* Keys
  const columns = columnsOf(sql)

  /** Takes a turn, and puts the change at the end of the line. */
  const claim = claimedRows.first(sql`
    UPDATE bulk_key_changes SET due_at = clock_timestamp() WHERE id = (
      SELECT id FROM bulk_key_changes WHERE state = 'running' AND due_at <= clock_timestamp()
      ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING id, change, token_id, ip, user_agent, request_id`)

  const postpone = (id: string) =>
    sql`UPDATE bulk_key_changes SET due_at = clock_timestamp() + ${heldUpFor}::interval WHERE id = ${id}`

  const end = (id: string, state: "done" | "stopped", reason: string | null) =>
    sql`UPDATE bulk_key_changes SET state = ${state}, stop_reason = ${reason}, ended_at = now()
      WHERE id = ${id} AND state = 'running'`

  /** Why the token may not go on, or `undefined`. Scopes may have been taken from it since the change began. */
  const refusalOf = Effect.fnUntraced(function* (tokenId: string | null, change: StoredChange) {
    if (tokenId === null) return undefined
    const token = yield* tokenRows.first(
      sql`SELECT scopes FROM operator_tokens WHERE id = ${tokenId} AND ${activeCondition(sql)}`
    )
    if (token === undefined) return "Its operator token is no longer valid."
    const lost = scopesOf(change).find((scope) => !allows(token.scopes, [scope]))
    return lost === undefined ? undefined : `Its operator token has lost the scope ${lost}.`
  })

  const perform = (id: string, plan: Extract<PlannedChange, { readonly replaced: Replaced }>) =>
    plan.kind === "patch" ? keys.update(id, plan.patch) : plan.disabled ? keys.disable(id) : keys.enable(id)

  const changeKey = Effect.fnUntraced(function* (change: StoredChange, { key_id, restore }: typeof Item.Type) {
    const row = yield* keyRows.firstOrUnreadable(sql`SELECT ${columns} FROM api_keys WHERE id = ${key_id}`)
    if (row === undefined) return failed("No key has this id.")
    if (isUnreadable(row)) {
      if (change.action !== "disable") return failed("This version cannot read the key: a newer one wrote it.")
      const [before] = yield* sql<{ readonly off: boolean }>`
        SELECT disabled OR revoked_at IS NOT NULL AS off FROM api_keys WHERE id = ${key_id}`
      if (before?.off === true) return unchanged
      yield* keys.disable(key_id)
      return changed({ disabled: false })
    }
    const plan = plannedChange(change, row, restore)
    if (plan.kind === "failed") return failed(plan.message)
    if (plan.kind === "unchanged") return unchanged
    yield* perform(key_id, plan)
    return changed(plan.replaced)
  })

  /** An error that concerns one key alone is recorded for it. If the database fails, the step is made again later. */
  const changeOrFail = (change: StoredChange, item: typeof Item.Type) =>
    transaction(changeKey(change, item)).pipe(
      Effect.catchTag("ControlError", (error) =>
        error.code === "store_unavailable" ? Effect.fail(error) : Effect.succeed(failed(error.message))
      ),
      Effect.catchDefect((defect) =>
        Effect.as(Effect.logError("a key could not be changed", { key_id: item.key_id, defect }), failed(unexpected))
      )
    )

  const recordOutcome = (changeId: string, position: number, { message, outcome, replaced }: Outcome) =>
    Effect.andThen(
      sql`UPDATE bulk_key_change_items SET outcome = ${outcome}, message = ${message},
          replaced = ${replaced === null ? null : JSON.stringify(replaced)}::jsonb
        WHERE change_id = ${changeId} AND position = ${position}`,
      sql`UPDATE bulk_key_changes SET ${sql(outcome)} = ${sql(outcome)} + 1 WHERE id = ${changeId}`
    )

  /** Locks the keys that nobody else holds, in the order that all transactions use: projects, then keys by their ids. */
  const lockFree = Effect.fnUntraced(function* (change: StoredChange, items: ReadonlyArray<typeof Item.Type>) {
    const ids = items.map(({ key_id }) => key_id)
    yield* Effect.forEach(
      projectsOf(
        change,
        items.map(({ restore }) => restore)
      ),
      (id) => lockProject(sql, id),
      { discard: true }
    )
    const present = yield* idRows.all(sql`SELECT id FROM api_keys WHERE id = ANY(${ids}::uuid[])`)
    const locked = yield* idRows.all(
      sql`SELECT id FROM api_keys WHERE id = ANY(${ids}::uuid[]) ORDER BY id FOR UPDATE SKIP LOCKED`
    )
    const isHeld = (key: string) => present.some(({ id }) => id === key) && !locked.some(({ id }) => id === key)
    return items.filter(({ key_id }) => !isHeld(key_id))
  })

  /** Returns false if somebody else holds all of the next keys, or the change itself. */
  const changeNext = Effect.fnUntraced(function* (id: string, change: StoredChange, tokenId: string | null) {
    const [mine] =
      yield* sql`SELECT 1 FROM bulk_key_changes WHERE id = ${id} AND state = 'running' FOR UPDATE SKIP LOCKED`
    if (mine === undefined) return false
    const refusal = yield* refusalOf(tokenId, change)
    if (refusal !== undefined) return yield* Effect.as(end(id, "stopped", refusal), true)
    const items = yield* itemRows.all(sql`
      SELECT position, key_id, restore FROM bulk_key_change_items
      WHERE change_id = ${id} AND outcome = 'waiting' ORDER BY position LIMIT ${mostKeysOfStep}`)
    if (items.length === 0) return yield* Effect.as(end(id, "done", null), true)
    const free = yield* lockFree(change, items)
    const begun = yield* Clock.currentTimeMillis
    for (const item of free) {
      yield* recordOutcome(id, item.position, yield* changeOrFail(change, item))
      if ((yield* Clock.currentTimeMillis) - begun > longestStepMs) break
    }
    return free.length > 0
  })

  return Effect.gen(function* () {
    const claimed = yield* claim
    if (claimed === undefined) return false
    const { id, ip, request_id, token_id: tokenId, user_agent: userAgent } = claimed
    const change = decodeChange(claimed.change)
    if (Result.isFailure(change)) return yield* Effect.as(postpone(id), true)
    return yield* transaction(changeNext(id, change.success, tokenId)).pipe(
      Effect.provideService(Operator, { tokenId, ip, userAgent, scopes: [] }),
      Effect.provideService(RequestId, request_id),
      Effect.tapCause((cause) => (Cause.hasInterrupts(cause) ? Effect.void : Effect.ignore(postpone(id))))
    )
  }).pipe(Effect.provideService(StatementDeadline, stepDeadline), Effect.withSpan("BulkKeyWorker.step"))
})

interface Outcome {
  readonly outcome: "changed" | "unchanged" | "failed"
  readonly replaced: Replaced | null
  readonly message: string | null
}

const changed = (replaced: Replaced): Outcome => ({ outcome: "changed", replaced, message: null })
const unchanged: Outcome = { outcome: "unchanged", replaced: null, message: null }
const failed = (message: string): Outcome => ({ outcome: "failed", replaced: null, message })
const unexpected = "Something went wrong with this key. The log of the process says what."

const claimedRows = computedRows(
  Schema.Struct({
    id: Schema.String,
    change: Schema.Json,
    token_id: Schema.NullOr(Schema.String),
    ip: Schema.NullOr(Schema.String),
    user_agent: Schema.NullOr(Schema.String),
    request_id: Schema.String
  })
)
/** A newer version may have written it. */
const decodeChange = Schema.decodeUnknownResult(StoredChange)
const tokenRows = computedRows(Schema.Struct({ scopes: Schema.Array(Scope) }))
const idRows = computedRows(Schema.Struct({ id: Schema.String }))
const Item = Schema.Struct({ position: Schema.Int, key_id: Schema.String, restore: Schema.NullOr(Replaced) })
const itemRows = computedRows(Item)
