import { Context, Effect, Layer, Schema } from "effect"
import type { Fragment } from "effect/sql/Statement"
import { Database } from "../../../services/Database.ts"
import {
  BulkKeyChange,
  type BulkKeyChangeWithFailures,
  type BulkKeyFailure,
  type KeyFilter,
  maxFailures,
  maxKeys,
  type NewBulkKeyChange
} from "../../api/keys/BulkKeyChangesApi.ts"
import { ControlError, type Refused, RequestId } from "../../api/schema/Errors.ts"
import type { Cursor } from "../../api/schema/Fields.ts"
import { Operator, type Scope } from "../../api/schema/Security.ts"
import { type Actor, Audit, Snapshots } from "../../audit/Audit.ts"
import { requireAllScopes } from "../../operators/Authentication.ts"
import { keyset, type Page, readPage } from "../../store/Paging.ts"
import { Count, computedRows, type StoreFailure, storedRows, toStoreFailures } from "../../store/Rows.ts"
import * as KeyList from "../KeyList.ts"
import { BulkKeyWork } from "./BulkKeyWork.ts"
import { StoredChange } from "./PlannedChange.ts"

type Invalid = Refused<"invalid_bulk_key_change">
type Missing = Refused<"not_found">
type Refusal = Invalid | Refused<"too_many_bulk_key_changes" | "insufficient_operator_scope"> | StoreFailure

/** Changes of many keys at once. `BulkKeyWork` makes them, one key after the other. */
export class BulkKeyChanges extends Context.Service<
  BulkKeyChanges,
  {
    readonly create: (
      change: NewBulkKeyChange
    ) => Effect.Effect<BulkKeyChange, Refusal | Refused<"missing_project">, Actor>
    readonly count: (filter: typeof KeyFilter.Type) => Effect.Effect<{ readonly selected: number }, StoreFailure>
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

const make = Effect.gen(function* () {
  const database = yield* Database
  const { sql } = database
  const audit = yield* Audit
  const work = yield* BulkKeyWork
  const keyList = KeyList.make(database)

  const select =
    sql.literal(`SELECT c.id, c.created_at, c.change, c.undoes, c.state, c.stop_reason, c.ended_at, c.token_id,
      (SELECT u.id FROM bulk_key_changes u WHERE u.undoes = c.id ORDER BY u.created_at DESC LIMIT 1) AS undone_by, keys.*`)
  const from = sql.literal(`FROM bulk_key_changes c, LATERAL (
      SELECT count(*) AS selected, count(*) FILTER (WHERE outcome = 'open') AS waiting,
        count(*) FILTER (WHERE outcome = 'changed') AS changed, count(*) FILTER (WHERE outcome = 'unchanged') AS unchanged,
        count(*) FILTER (WHERE outcome = 'failed') AS failed
      FROM bulk_key_change_items WHERE change_id = c.id) AS keys`)

  const withId = (id: string) => sql`${select} ${from} WHERE c.id = ${id}`
  const read = Effect.fnUntraced(function* (id: string) {
    const row = yield* changeRows.first(withId(id))
    return row === undefined ? yield* notFound : toApi(row)
  })

  /** Makes room, and refuses what would wait for too many others. */
  const admit = Effect.fnUntraced(function* () {
    yield* sql`LOCK TABLE bulk_key_changes IN EXCLUSIVE MODE`
    const { running } = yield* runningRows.only(
      sql`SELECT count(*) AS running FROM bulk_key_changes WHERE state = 'running'`
    )
    if (running >= maxRunning) return yield* tooMany
  })

  /** Stores a change of the keys that `items` selects: their places and ids, and what an undo sets back. */
  const insert = (change: StoredChange, undoes: string | null, items: Fragment) =>
    audit
      .mutate(function* ({ write }) {
        yield* admit()
        const { ip, tokenId, userAgent } = yield* Operator
        yield* write`DELETE FROM bulk_key_changes WHERE state <> 'running' AND created_at < now() - interval '30 days'`
        const { id } = yield* idRows.only(write`
        INSERT INTO bulk_key_changes (change, undoes, token_id, ip, user_agent, request_id)
        VALUES (${JSON.stringify(change)}::jsonb, ${undoes}, ${tokenId}, ${ip}, ${userAgent}, ${yield* RequestId}) RETURNING id`)
        yield* write`
        INSERT INTO bulk_key_change_items (change_id, place, key_id, before)
        SELECT ${id}::uuid, place, key_id, before FROM (${items}) AS selected`
        const made = toApi(yield* changeRows.only(withId(id)))
        if (made.keys.selected === 0) return yield* nothingSelected
        if (made.keys.selected > maxKeys) return yield* tooManyKeys
        return {
          result: made,
          auditAction: { target: "bulk_key_change", action: "keys:bulk_change" },
          targetId: id,
          snapshots: yield* snapshots(null, made),
          changes: []
        }
      })
      .pipe(Effect.tap(work.wake))

  const create = Effect.fn("BulkKeyChanges.create")(function* (input: NewBulkKeyChange) {
    const change = yield* storedChange(input)
    yield* requireAllScopes(scopesOf(change))
    if ((input.ids === undefined) === (input.filter === undefined)) return yield* oneSelection
    if (change.action === "move") {
      const [project] = yield* sql`SELECT 1 FROM projects WHERE id = ${change.project_id}`
      if (project === undefined) return yield* missingProject
    }
    const conditions =
      input.filter === undefined ? [sql`id = ANY(${input.ids ?? []}::uuid[])`] : yield* keyList.matching(input.filter)
    return yield* insert(
      change,
      null,
      sql`SELECT row_number() OVER (ORDER BY created_at DESC, id DESC) AS place, id AS key_id, NULL::jsonb AS before
        FROM api_keys WHERE ${sql.and([sql`true`, ...conditions])} LIMIT ${maxKeys + 1}`
    )
  }, toStoreFailures)

  /** Reads a change, and fails if the caller could not have made it. */
  const readOwn = Effect.fnUntraced(function* (id: string) {
    const change = yield* read(id)
    const undone = change.undoes === null ? change : yield* read(change.undoes)
    yield* requireAllScopes(scopesOf(undone))
    return change
  })

  const stop = Effect.fn("BulkKeyChanges.stop")((id: string) =>
    audit.mutate(function* ({ write }) {
      // waits for the keys that are being changed
      yield* sql`SELECT 1 FROM bulk_key_changes WHERE id = ${id} FOR UPDATE`
      const before = yield* readOwn(id)
      yield* write`UPDATE bulk_key_changes SET state = 'stopped', stop_reason = 'An operator stopped it.', ended_at = now()
        WHERE id = ${id} AND state = 'running'`
      const after = yield* read(id)
      return {
        result: after,
        auditAction: { target: "bulk_key_change", action: "keys:bulk_stop" },
        targetId: id,
        snapshots: yield* snapshots(before, after),
        changes: []
      }
    })
  )

  const undo = Effect.fn("BulkKeyChanges.undo")(function* (id: string) {
    const { state, undone_by } = yield* readOwn(id)
    if (state === "running") return yield* stillRunning
    if (undone_by !== null) return yield* undoneAlready
    return yield* insert(
      { action: "undo" },
      id,
      sql`SELECT place, key_id, before FROM bulk_key_change_items WHERE change_id = ${id} AND outcome = 'changed'`
    )
  }, toStoreFailures)

  return BulkKeyChanges.of({
    create,
    stop,
    undo,
    count: Effect.fn("BulkKeyChanges.count")(function* (filter) {
      const conditions = yield* keyList.matching(filter)
      return yield* selectedRows.only(sql`SELECT count(*) AS selected FROM (
        SELECT 1 FROM api_keys WHERE ${sql.and([sql`true`, ...conditions])} LIMIT ${maxKeys + 1}) AS found`)
    }, toStoreFailures),
    get: Effect.fn("BulkKeyChanges.get")(function* (id) {
      const change = yield* read(id)
      const failures = yield* failureRows.all(sql`
        SELECT i.key_id, k.name AS key_name, k.key_prefix, coalesce(i.message, '') AS message
        FROM bulk_key_change_items i LEFT JOIN api_keys k ON k.id = i.key_id
        WHERE i.change_id = ${id} AND i.outcome = 'failed' ORDER BY i.place LIMIT ${maxFailures}`)
      return { ...change, failures }
    }, toStoreFailures),
    list: Effect.fn("BulkKeyChanges.list")(function* ({ cursor, limit = defaultLimit }) {
      const at = keyset(sql, "c", cursor)
      return yield* readPage(
        changeRows,
        sql`${select}, ${at.micros} ${from} WHERE ${at.afterCursor} ORDER BY ${at.order} LIMIT ${limit + 1}`,
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

const scopesOf = ({ action }: Pick<BulkKeyChange, "action">): ReadonlyArray<Scope> => {
  switch (action) {
    case "disable":
    case "enable":
      return ["keys:disable"]
    case "tag":
      return ["policies:update"]
    case "move":
      return ["policies:update", "keys:create"]
    case "undo":
      return []
  }
}

const Row = Schema.Struct({
  id: Schema.String,
  created_at: Schema.DateTimeUtcFromDate,
  change: StoredChange,
  undoes: Schema.NullOr(Schema.String),
  undone_by: Schema.NullOr(Schema.String),
  state: BulkKeyChange.fields.state,
  stop_reason: Schema.NullOr(Schema.String),
  ended_at: Schema.NullOr(Schema.DateTimeUtcFromDate),
  token_id: Schema.NullOr(Schema.String),
  selected: Count,
  waiting: Count,
  changed: Count,
  unchanged: Count,
  failed: Count
})
const changeRows = storedRows(Row, { table: "bulk_key_changes", key: ["id"] })

const toApi = ({ change, changed, failed, selected, unchanged, waiting, ...row }: typeof Row.Type): BulkKeyChange => ({
  ...row,
  action: change.action,
  add_tags: change.action === "tag" ? change.add_tags : [],
  remove_tags: change.action === "tag" ? change.remove_tags : [],
  project_id: change.action === "move" ? change.project_id : null,
  keys: { selected, waiting, changed, unchanged, failed }
})

const idRows = computedRows(Schema.Struct({ id: Schema.String }))
const runningRows = computedRows(Schema.Struct({ running: Count }))
const selectedRows = computedRows(Schema.Struct({ selected: Count }))
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

const notFound = new ControlError("not_found", "No change of many keys has this id. They are kept for 30 days.")
const missingProject = new ControlError("missing_project", "No project has this id.", { param: "project_id" })
const oneSelection = new ControlError(
  "invalid_bulk_key_change",
  "Which keys? Send either ids, or a filter as of GET keys; an empty filter selects all keys.",
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
const tooMany = new ControlError(
  "too_many_bulk_key_changes",
  `${maxRunning} changes of many keys are running. Wait for one of them, or stop one.`
)
const stillRunning = new ControlError(
  "bulk_key_change_running",
  "The change is running. Stop it first, or wait for its end."
)
const undoneAlready = new ControlError("invalid_bulk_key_change", "The change was undone already.", { param: "id" })
