import { Context, Effect, Layer, Schema } from "effect"
import type { Fragment } from "effect/sql/Statement"
import { Database } from "../../../services/Database.ts"
import {
  BulkKeyChange,
  type BulkKeyChangeWithFailures,
  type BulkKeyFailure,
  KeyFilter,
  maxFailures,
  maxKeys,
  type NewBulkKeyChange
} from "../../api/keys/BulkKeyChangesApi.ts"
import { ControlError, type Refused, RequestId } from "../../api/schema/Errors.ts"
import type { Cursor } from "../../api/schema/Fields.ts"
import { Operator } from "../../api/schema/Security.ts"
import { type Actor, Audit, Snapshots } from "../../audit/Audit.ts"
import { requireAllScopes } from "../../operators/Authentication.ts"
import { keyset, type Page, readPage } from "../../store/Paging.ts"
import { Count, computedRows, type StoreFailure, storedRows, toStoreFailures } from "../../store/Rows.ts"
import * as KeyList from "../KeyList.ts"
import { BulkKeyWorker } from "./BulkKeyWorker.ts"
import { StoredChange, scopesOf } from "./PlannedChange.ts"

type Invalid = Refused<"invalid_bulk_key_change">
type Missing = Refused<"not_found">
type Refusal = Invalid | Refused<"too_many_bulk_key_changes" | "insufficient_operator_scope"> | StoreFailure

interface Selected {
  readonly selected: number
  readonly is_too_many: boolean
}

/** Changes of many keys at once. `BulkKeyWorker` makes them, one key after the other. */
export class BulkKeyChanges extends Context.Service<
  BulkKeyChanges,
  {
    readonly create: (
      change: NewBulkKeyChange
    ) => Effect.Effect<BulkKeyChange, Refusal | Refused<"missing_project" | "changed_since_read">, Actor>
    readonly count: (filter: KeyFilter) => Effect.Effect<Selected, StoreFailure>
    readonly list: (query: {
      readonly limit?: number
      readonly cursor?: Cursor
    }) => Effect.Effect<Page<BulkKeyChange>, StoreFailure>
    readonly get: (id: string) => Effect.Effect<BulkKeyChangeWithFailures, Missing | StoreFailure>
    readonly stop: (
      id: string
    ) => Effect.Effect<BulkKeyChange, Missing | Refused<"insufficient_operator_scope"> | StoreFailure, Actor>
    readonly undo: (
      id: string
    ) => Effect.Effect<BulkKeyChange, Missing | Refusal | Refused<"bulk_key_change_running">, Actor>
  }
>()("svc/control/BulkKeyChanges") {
  static readonly layer = Layer.suspend(() => Layer.effect(BulkKeyChanges, make))
}

const defaultLimit = 100
const maxRunning = 10

/** A PostgreSQL advisory lock. */
const creationLock = 6_104_227

/** A change that is not stored yet. */
interface NewChange {
  readonly change: StoredChange
  readonly filter: KeyFilter | null
  readonly undoes: string | null
  /** Selects `position`, `key_id` and, for an undo, `restore`. */
  readonly items: Fragment
}

const make = Effect.gen(function* () {
  const database = yield* Database
  const { sql } = database
  const audit = yield* Audit
  const worker = yield* BulkKeyWorker
  const keyList = KeyList.make(database)

  const select =
    sql.literal(`SELECT c.id, c.created_at, c.change, c.selection AS filter, c.undoes, c.state, c.stop_reason,
      c.ended_at, c.token_id, c.selected, c.changed, c.unchanged, c.failed,
      (SELECT u.id FROM bulk_key_changes u WHERE u.undoes = c.id ORDER BY u.created_at DESC LIMIT 1) AS undone_by
    FROM bulk_key_changes c`)
  const withId = (id: string) => sql`${select} WHERE c.id = ${id}`

  const readRow = Effect.fnUntraced(function* (id: string) {
    const row = yield* changeRows.first(withId(id))
    return row === undefined ? yield* notFound : row
  })

  /** Reads a change. Fails unless the caller has the scopes that its original action needs. */
  const readPermitted = Effect.fnUntraced(function* (id: string) {
    const row = yield* readRow(id)
    yield* requireAllScopes(scopesOf(row.change))
    return row
  })

  /** Serialises creations, and fails if `maxRunning` changes are running. */
  const admit = Effect.gen(function* () {
    // not the table's own lock, which the worker takes after that of the audit log
    yield* sql`SELECT pg_advisory_xact_lock(${creationLock})`
    const { running } = yield* runningRows.only(
      sql`SELECT count(*) AS running FROM bulk_key_changes WHERE state = 'running'`
    )
    if (running >= maxRunning) return yield* tooMany
  })

  /** Stores a change with its keys. `check` may refuse it once no other one can begin. */
  const insert = <E, R>(
    { change, filter, items, undoes }: NewChange,
    check: (made: { readonly id: string; readonly selected: number }) => Effect.Effect<void, E, R>
  ) =>
    audit
      .mutate(function* ({ write }) {
        yield* admit
        const { ip, tokenId, userAgent } = yield* Operator
        const { id } = yield* idRows.only(write`
        INSERT INTO bulk_key_changes (change, selection, undoes, token_id, ip, user_agent, request_id)
        VALUES (${JSON.stringify(change)}::jsonb, ${filter === null ? null : JSON.stringify(filter)}::jsonb, ${undoes},
          ${tokenId}, ${ip}, ${userAgent}, ${yield* RequestId}) RETURNING id`)
        yield* write`INSERT INTO bulk_key_change_items (change_id, position, key_id, restore)
        SELECT ${id}::uuid, position, key_id, restore FROM (${items}) AS selected`
        const { selected } = yield* selectedRows.only(write`
        UPDATE bulk_key_changes SET selected = (SELECT count(*) FROM bulk_key_change_items WHERE change_id = ${id})
        WHERE id = ${id} RETURNING selected`)
        if (selected === 0) return yield* nothingSelected
        if (selected > maxKeys) return yield* tooManyKeys
        yield* check({ id, selected })
        const made = toApi(yield* changeRows.only(withId(id)))
        return {
          result: made,
          auditAction: { target: "bulk_key_change", action: "keys:bulk_change" },
          targetId: id,
          snapshots: yield* snapshots(null, made),
          changes: []
        }
      })
      .pipe(Effect.tap(worker.wake))

  /** The first 100,001 of the keys that match, the newest first. */
  const matching = Effect.fnUntraced(function* (filter: KeyFilter) {
    const conditions = yield* keyList.matching(filter)
    return sql`SELECT row_number() OVER (ORDER BY created_at DESC, id DESC) AS position, id AS key_id, NULL::jsonb AS restore
      FROM api_keys WHERE ${sql.and([sql`true`, ...conditions])} LIMIT ${maxKeys + 1}`
  })

  const create = Effect.fn("BulkKeyChanges.create")(function* (input: NewBulkKeyChange) {
    const change = yield* storedChange(input)
    yield* requireAllScopes(scopesOf(change))
    const { expected_selected: expected, filter, ids } = input
    if ((ids === undefined) === (filter === undefined)) return yield* oneSelection
    if (change.action === "move") {
      const [project] = yield* sql`SELECT 1 FROM projects WHERE id = ${change.project_id}`
      if (project === undefined) return yield* missingProject
    }
    const items =
      filter === undefined
        ? sql`SELECT position, key_id, NULL::jsonb AS restore
            FROM unnest(${ids ?? []}::uuid[]) WITH ORDINALITY AS given (key_id, position)`
        : yield* matching(filter)
    return yield* insert({ change, filter: filter ?? null, undoes: null, items }, ({ selected }) =>
      expected === undefined || expected === selected ? Effect.void : Effect.fail(selectedMeanwhile(selected))
    )
  }, toStoreFailures)

  const stop = Effect.fn("BulkKeyChanges.stop")((id: string) =>
    audit.mutate(function* ({ write }) {
      // waits for the keys that are being changed
      yield* sql`SELECT 1 FROM bulk_key_changes WHERE id = ${id} FOR UPDATE`
      const before = yield* readPermitted(id)
      yield* write`UPDATE bulk_key_changes SET state = 'stopped', stop_reason = 'An operator stopped it.', ended_at = now()
        WHERE id = ${id} AND state = 'running'`
      const after = toApi(yield* readRow(id))
      return {
        result: after,
        auditAction: { target: "bulk_key_change", action: "keys:bulk_stop" },
        targetId: id,
        snapshots: yield* snapshots(toApi(before), after),
        changes: []
      }
    })
  )

  /** An undo that was stopped or could not restore each key may be followed by another one. */
  const refuseSecondUndo = Effect.fnUntraced(function* (id: string, mine: string) {
    const undos = yield* undoRows.all(
      sql`SELECT state, failed FROM bulk_key_changes WHERE undoes = ${id} AND id <> ${mine}`
    )
    if (undos.some(({ state }) => state === "running")) return yield* undoRunning
    if (undos.some(({ failed, state }) => state === "done" && failed === 0)) return yield* undoneAlready
  })

  const undo = Effect.fn("BulkKeyChanges.undo")(function* (id: string) {
    const { change, filter, state } = yield* readPermitted(id)
    if (state === "running") return yield* stillRunning
    return yield* insert(
      {
        change: { action: "undo", of: change.action === "undo" ? change.of : change.action },
        filter,
        undoes: id,
        items: sql`SELECT position, key_id, replaced AS restore FROM bulk_key_change_items
          WHERE change_id = ${id} AND outcome = 'changed'`
      },
      (made) => refuseSecondUndo(id, made.id)
    )
  }, toStoreFailures)

  return BulkKeyChanges.of({
    create,
    stop,
    undo,
    count: Effect.fn("BulkKeyChanges.count")(function* (filter) {
      const { selected } = yield* countRows.only(
        sql`SELECT count(*) AS selected FROM (${yield* matching(filter)}) AS found`
      )
      return { selected: Math.min(selected, maxKeys), is_too_many: selected > maxKeys }
    }, toStoreFailures),
    get: Effect.fn("BulkKeyChanges.get")(function* (id) {
      const row = yield* readRow(id)
      const failures = yield* failureRows.all(sql`
        SELECT i.key_id, k.name AS key_name, k.key_prefix, coalesce(i.message, '') AS message
        FROM bulk_key_change_items i LEFT JOIN api_keys k ON k.id = i.key_id
        WHERE i.change_id = ${id} AND i.outcome = 'failed' ORDER BY i.position LIMIT ${maxFailures}`)
      return { ...toApi(row), failures }
    }, toStoreFailures),
    list: Effect.fn("BulkKeyChanges.list")(function* ({ cursor, limit = defaultLimit }) {
      const at = keyset(sql, "c", cursor)
      return yield* readPage(
        changeRows,
        sql`SELECT listed.*, ${at.micros} FROM (${select}) AS listed JOIN bulk_key_changes c ON c.id = listed.id
          WHERE ${at.afterCursor} ORDER BY ${at.order} LIMIT ${limit + 1}`,
        limit,
        toApi
      )
    }, toStoreFailures)
  })
})

const storedChange = ({
  action,
  add_tags,
  project_id,
  remove_tags
}: NewBulkKeyChange): Effect.Effect<StoredChange, Invalid> => {
  const tags = [...(add_tags ?? []), ...(remove_tags ?? [])]
  if (action !== "tag" && (add_tags !== undefined || remove_tags !== undefined))
    return invalid(add_tags === undefined ? "remove_tags" : "add_tags", "belongs to the action tag")
  if (action !== "move" && project_id !== undefined) return invalid("project_id", "belongs to the action move")
  switch (action) {
    case "tag":
      return tags.length === 0
        ? invalid("add_tags", "or remove_tags is required for the action tag")
        : Effect.succeed({ action, add_tags: add_tags ?? [], remove_tags: remove_tags ?? [] })
    case "move":
      return project_id === undefined
        ? invalid("project_id", "is required for the action move")
        : Effect.succeed({ action, project_id })
    default:
      return Effect.succeed({ action })
  }
}

const Row = Schema.Struct({
  id: Schema.String,
  created_at: Schema.DateTimeUtcFromDate,
  change: StoredChange,
  filter: Schema.NullOr(KeyFilter),
  undoes: Schema.NullOr(Schema.String),
  undone_by: Schema.NullOr(Schema.String),
  state: BulkKeyChange.fields.state,
  stop_reason: Schema.NullOr(Schema.String),
  ended_at: Schema.NullOr(Schema.DateTimeUtcFromDate),
  token_id: Schema.NullOr(Schema.String),
  selected: Schema.Int,
  changed: Schema.Int,
  unchanged: Schema.Int,
  failed: Schema.Int
})
const changeRows = storedRows(Row, { table: "bulk_key_changes", key: ["id"] })

const toApi = ({ change, changed, failed, selected, unchanged, ...row }: typeof Row.Type): BulkKeyChange => ({
  ...row,
  action: change.action,
  add_tags: change.action === "tag" ? change.add_tags : [],
  remove_tags: change.action === "tag" ? change.remove_tags : [],
  project_id: change.action === "move" ? change.project_id : null,
  keys: { selected, waiting: selected - changed - unchanged - failed, changed, unchanged, failed }
})

const idRows = computedRows(Schema.Struct({ id: Schema.String }))
const runningRows = computedRows(Schema.Struct({ running: Count }))
const countRows = computedRows(Schema.Struct({ selected: Count }))
const selectedRows = computedRows(Schema.Struct({ selected: Schema.Int }))
const undoRows = computedRows(Schema.Struct({ state: Row.fields.state, failed: Schema.Int }))
const failureRows = computedRows(
  Schema.Struct({
    key_id: Schema.String,
    key_name: Schema.NullOr(Schema.String),
    key_prefix: Schema.NullOr(Schema.String),
    message: Schema.String
  }) satisfies Schema.Codec<BulkKeyFailure, unknown>
)
const snapshots = Snapshots.of(BulkKeyChange)

const invalid = (param: string, refusal: string): Effect.Effect<never, Invalid> =>
  Effect.fail(new ControlError("invalid_bulk_key_change", `${param} ${refusal}.`, { param }))

const notFound = new ControlError("not_found", "No bulk key change has this id. They are kept for 30 days.")
const missingProject = new ControlError("missing_project", "No project has this id.", { param: "project_id" })
const oneSelection = new ControlError(
  "invalid_bulk_key_change",
  "Send either ids or filter. An empty filter selects all keys.",
  { param: "filter" }
)
const nothingSelected = new ControlError("invalid_bulk_key_change", "No key is selected. Nothing is changed.", {
  param: "filter"
})
const tooManyKeys = new ControlError(
  "invalid_bulk_key_change",
  `More than ${maxKeys} keys are selected. Narrow the filter, and make several changes.`,
  { param: "filter" }
)
const selectedMeanwhile = (selected: number) =>
  new ControlError("changed_since_read", `The filter selects ${selected} keys by now. Decide anew.`, {
    param: "expected_selected"
  })
const tooMany = new ControlError(
  "too_many_bulk_key_changes",
  `${maxRunning} bulk key changes are running. Wait for one of them, or stop one.`
)
const stillRunning = new ControlError(
  "bulk_key_change_running",
  "The change is running. Stop it first, or wait for its end."
)
const undoRunning = new ControlError("bulk_key_change_running", "An undo of this change is running.")
const undoneAlready = new ControlError("invalid_bulk_key_change", "The change was undone already.", { param: "id" })
