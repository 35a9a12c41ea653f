import { Context, Effect, Layer, Schema } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import { Database } from "../../services/Database.ts"
import { AppliedRaise } from "../api/limits/LimitRaises.ts"
import {
  type GrantedModel,
  GrantedModelRequest,
  type GrantedRaise,
  HeldRaiseRequest,
  type NewRaiseRequest,
  RaiseRequest,
  type RaiseRequestQuery
} from "../api/limits/RaiseRequests.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import type { Cursor } from "../api/schema/Fields.ts"
import { Operator } from "../api/schema/Security.ts"
import { type Actor, Audit, Snapshots } from "../audit/Audit.ts"
import { allowModel } from "../keys/AllowedModels.ts"
import * as PolicyState from "../policies/PolicyState.ts"
import { keyset, type Page, readPage } from "../store/Paging.ts"
import { Count, computedRows, type StoreFailure, storedRows, toStoreFailures } from "../store/Rows.ts"
import { requireAllowed } from "./GrantedModels.ts"
import { LimitRaises } from "./LimitRaises.ts"

type Query = typeof RaiseRequestQuery.Type & { readonly limit?: number; readonly cursor?: Cursor }
type Answerable = Refused<"not_found" | "raise_request_answered">

/**
 * Requests of holders for higher limits and for models. An operator grants a limit with an exception, a model by the key's
 * own policy, or refuses the request with a sentence.
 */
export class RaiseRequests extends Context.Service<
  RaiseRequests,
  {
    readonly ask: (
      keyId: string,
      request: NewRaiseRequest
    ) => Effect.Effect<
      HeldRaiseRequest,
      Refused<"too_many_raise_requests" | "invalid_policy_payload"> | StoreFailure,
      Actor
    >
    /** Returns the newest requests of a key, as its holder may see them. */
    readonly ofKey: (keyId: string) => Effect.Effect<ReadonlyArray<HeldRaiseRequest>, StoreFailure>
    readonly list: (query: Query) => Effect.Effect<Page<RaiseRequest>, StoreFailure>
    readonly grant: (
      id: string,
      raise: GrantedRaise
    ) => Effect.Effect<
      RaiseRequest,
      Answerable | Refused<"invalid_policy_payload" | "key_revoked"> | StoreFailure,
      Actor
    >
    /** Allows the key the model, and fails if it may not use the model even so. */
    readonly grantModel: (
      id: string,
      granted: GrantedModel
    ) => Effect.Effect<
      GrantedModelRequest,
      Answerable | Refused<"invalid_policy_payload" | "key_revoked"> | StoreFailure,
      Actor
    >
    readonly refuse: (id: string, answer: string) => Effect.Effect<RaiseRequest, Answerable | StoreFailure, Actor>
  }
>()("svc/control/RaiseRequests") {
  static readonly layer = Layer.suspend(() => Layer.effect(RaiseRequests, make))
}

const defaultLimit = 100
const shownToHolders = 50

/** So that no key fills what operators look at. */
const maxOpen = 3
const maxPerDay = 20

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const raises = yield* LimitRaises
  const policies = PolicyState.make(sql)

  const select =
    sql.literal(`SELECT r.id, r.key_id, r.meter, r.amount, r.model, r.reason, r.state, r.created_at, r.answered_at,
      r.answered_by, r.answer, k.name AS key_name, k.key_prefix, k.owner_email,
      (SELECT jsonb_build_object('id', l.id, 'limits', l.limits,
        'until', to_char(l.until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
        FROM limit_raises l WHERE l.id = r.raise_id) AS granted`)
  const from = sql.literal(`FROM raise_requests r JOIN api_keys k ON k.id = r.key_id`)

  const byId = (id: string) => requestRows.only(sql`${select} ${from} WHERE r.id = ${id}`)

  const ask = Effect.fn("RaiseRequests.ask")((keyId: string, { amount, meter, model, reason }: NewRaiseRequest) =>
    audit.mutate(function* ({ write }) {
      if (amount !== undefined && meter === undefined) return yield* amountOfNothing
      if (model !== undefined && meter !== undefined) return yield* twoThings
      // Of two requests at once, the second one is counted with the first.
      yield* sql`SELECT 1 FROM api_keys WHERE id = ${keyId} FOR UPDATE`
      const { open, today } = yield* countRows.only(sql`SELECT count(*) FILTER (WHERE state = 'open') AS open,
          count(*) FILTER (WHERE created_at > now() - interval '1 day') AS today
        FROM raise_requests WHERE key_id = ${keyId}`)
      if (open >= maxOpen) return yield* tooManyOpen
      if (today >= maxPerDay) return yield* tooManyToday
      const { id } = yield* idRows.only(write`INSERT INTO raise_requests (key_id, meter, amount, model, reason)
        VALUES (${keyId}, ${meter ?? null}, ${amount ?? null}, ${model ?? null}, ${reason}) RETURNING id`)
      const asked = yield* byId(id)
      return {
        result: asked,
        auditAction: { target: "key", action: "limits:request_raise" },
        targetId: keyId,
        snapshots: yield* snapshots(null, asked),
        changes: []
      }
    })
  )

  /** Locks an open request, so that one operator answers it. */
  const lockOpen = Effect.fnUntraced(function* (id: string) {
    const [locked] = yield* sql`SELECT 1 FROM raise_requests WHERE id = ${id} FOR UPDATE`
    if (locked === undefined) return yield* notFound
    const request = yield* byId(id)
    return request.state === "open" ? request : yield* answered
  })

  const close = Effect.fnUntraced(function* (
    write: SqlClient,
    id: string,
    state: RaiseRequest["state"],
    answer: string | undefined,
    raiseId: string | null
  ) {
    const { tokenId } = yield* Operator
    yield* write`UPDATE raise_requests SET state = ${state}, answer = ${answer ?? null}, raise_id = ${raiseId},
      answered_at = now(), answered_by = ${tokenId} WHERE id = ${id}`
    return yield* byId(id)
  })

  const grant = Effect.fn("RaiseRequests.grant")((id: string, { answer, ...raise }: GrantedRaise) =>
    audit.mutate(function* ({ write }) {
      const before = yield* lockOpen(id)
      if (before.model !== null) return yield* isForModel
      const raised = yield* raises.insert(write, before.key_id, raise)
      const after = yield* close(write, id, "granted", answer, raised.id)
      return {
        result: after,
        auditAction: { target: "key", action: "limits:grant_raise" },
        targetId: before.key_id,
        snapshots: yield* snapshots(before, after),
        changes: [{ _tag: "Key", id: before.key_id }]
      }
    })
  )

  const grantModel = Effect.fn("RaiseRequests.grantModel")((id: string, { answer }: GrantedModel) =>
    audit.mutate(function* ({ write }) {
      const before = yield* lockOpen(id)
      if (before.model === null) return yield* isForNoModel
      const allowed = yield* allowModel(write, before.key_id, before.model)
      yield* requireAllowed(policies, before.key_id, before.model)
      const closed = yield* close(write, id, "granted", answer, null)
      const after = { ...closed, policy: { allowed_models: allowed.after } }
      return {
        result: after,
        auditAction: { target: "key", action: "limits:grant_model" },
        targetId: before.key_id,
        snapshots: yield* modelSnapshots({ ...before, policy: { allowed_models: allowed.before } }, after),
        changes: [{ _tag: "Key", id: before.key_id }]
      }
    })
  )

  const refuse = Effect.fn("RaiseRequests.refuse")((id: string, answer: string) =>
    audit.mutate(function* ({ write }) {
      const before = yield* lockOpen(id)
      const after = yield* close(write, id, "refused", answer, null)
      return {
        result: after,
        auditAction: { target: "key", action: "limits:refuse_raise" },
        targetId: before.key_id,
        snapshots: yield* snapshots(before, after),
        changes: []
      }
    })
  )

  return RaiseRequests.of({
    ask,
    grant,
    grantModel,
    refuse,
    ofKey: Effect.fn("RaiseRequests.ofKey")(
      (keyId) =>
        heldRows.all(
          sql`${select} ${from} WHERE r.key_id = ${keyId} ORDER BY r.created_at DESC, r.id DESC LIMIT ${shownToHolders}`
        ),
      toStoreFailures
    ),
    list: Effect.fn("RaiseRequests.list")(function* ({ cursor, key_id, limit = defaultLimit, state }) {
      const at = keyset(sql, "r", cursor)
      const matching = [
        ...(state === undefined ? [] : [sql`r.state = ${state}`]),
        ...(key_id === undefined ? [] : [sql`r.key_id = ${key_id}`]),
        at.afterCursor
      ]
      return yield* readPage(
        requestRows,
        sql`${select}, ${at.micros} ${from} WHERE ${sql.and(matching)} ORDER BY ${at.order} LIMIT ${limit + 1}`,
        limit,
        (row) => row
      )
    }, toStoreFailures)
  })
})

const times = {
  created_at: Schema.DateTimeUtcFromDate,
  answered_at: Schema.NullOr(Schema.DateTimeUtcFromDate),
  granted: Schema.NullOr(AppliedRaise)
}
const table = { table: "raise_requests", key: ["id"] }
const requestRows = storedRows(RaiseRequest.pipe(Schema.fieldsAssign(times)), table)
const heldRows = storedRows(HeldRaiseRequest.pipe(Schema.fieldsAssign(times)), table)
const idRows = computedRows(Schema.Struct({ id: Schema.String }))
const countRows = computedRows(Schema.Struct({ open: Count, today: Count }))
const snapshots = Snapshots.of(RaiseRequest)
const modelSnapshots = Snapshots.of(GrantedModelRequest)

const notFound = new ControlError("not_found", "No request for a raise has this id.", { param: "id" })
const answered = new ControlError("raise_request_answered", "Somebody has answered this request. Read it again.")
const amountOfNothing = new ControlError("invalid_policy_payload", "amount needs a meter: which limit is too low?", {
  param: "meter"
})
const twoThings = new ControlError("invalid_policy_payload", "Ask for a model or for a higher limit, one at a time.", {
  param: "model"
})
const isForModel = new ControlError(
  "invalid_policy_payload",
  "The request asks for a model. Grant it with grant-model."
)
const isForNoModel = new ControlError("invalid_policy_payload", "The request asks for no model. Grant it with grant.")
const tooManyOpen = new ControlError(
  "too_many_raise_requests",
  `${maxOpen} requests of this key wait for an answer. Wait for one of them.`
)
const tooManyToday = new ControlError(
  "too_many_raise_requests",
  `This key has asked ${maxPerDay} times within a day. Ask again tomorrow.`
)
