import { Context, DateTime, Effect, Function, Layer, Schema } from "effect"
import { Database } from "../../services/Database.ts"
import { type AuditQuery, ListedEvent } from "../api/AuditApi.ts"
import type { Cursor } from "../api/schema/Fields.ts"
import { micros, type Page, readPage } from "../store/Paging.ts"
import { Count, type StoreFailure, storedRows, toStoreFailures } from "../store/Rows.ts"
import { applyAction, configuringActions } from "./Audit.ts"

export class AuditEvents extends Context.Service<
  AuditEvents,
  {
    readonly list: (query: AuditQuery) => Effect.Effect<Page<ListedEvent>, StoreFailure>
  }
>()("svc/control/AuditEvents") {
  static readonly layer = Layer.suspend(() => Layer.effect(AuditEvents, make))
}

const defaultLimit = 100

const uuidPattern = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"

const ofConfigurations = [...configuringActions, applyAction]

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  /** The events of one transaction have one time, so that their numbers order them. */
  const after = ({ id, micros }: Cursor) => sql`(created_at, sequence) < (
    'epoch'::timestamptz + ${micros}::bigint * interval '1 microsecond',
    coalesce((SELECT sequence FROM audit_events WHERE id = ${id}::uuid), 0))`

  const uuidOf = (text: string) => sql.literal(`CASE WHEN ${text} ~ '${uuidPattern}' THEN ${text}::uuid END`)

  /** A deleted layer is named by the scope in its event. */
  const targetName = sql`CASE target_type
    WHEN 'key' THEN (SELECT coalesce(name, key_prefix) FROM api_keys WHERE api_keys.id = target_uuid)
    WHEN 'project' THEN (SELECT name FROM projects WHERE projects.id = target_uuid)
    WHEN 'operator_token' THEN (SELECT name FROM operator_tokens WHERE operator_tokens.id = target_uuid)
    WHEN 'upstream_credential_mapping' THEN (
      SELECT coalesce(k.name, k.key_prefix, p.name) FROM upstream_credential_mappings AS m
      LEFT JOIN api_keys AS k ON k.id = m.key_id LEFT JOIN projects AS p ON p.id = m.project_id WHERE m.id = target_uuid)
    WHEN 'policy_layer' THEN coalesce(
      (SELECT concat_ws(' ', l.layer_kind, coalesce(p.name, l.scope_id)) FROM policy_layers AS l
        LEFT JOIN projects AS p ON l.layer_kind = 'project' AND p.id = ${uuidOf("l.scope_id")} WHERE l.id = target_uuid),
      nullif(concat_ws(' ', coalesce(before_json, after_json) ->> 'kind', coalesce(before_json, after_json) ->> 'scope_id'), ''))
    END`

  return AuditEvents.of({
    list: Effect.fn("AuditEvents.list")(function* ({ configuring, cursor, from, limit = defaultLimit, to, ...exact }) {
      const matching = sql.and([
        ...(from === undefined ? [] : [sql`created_at >= ${DateTime.toDateUtc(from)}`]),
        ...(to === undefined ? [] : [sql`created_at < ${DateTime.toDateUtc(to)}`]),
        ...(configuring === undefined ? [] : [sql`(action = ANY(${ofConfigurations})) = ${configuring === "true"}`]),
        ...Object.entries(exact).map(([column, value]) => sql`${sql(column)} = ${value}`)
      ])
      return yield* readPage(
        eventRows,
        sql`
        SELECT id, sequence, encode(previous_hash, 'hex') AS previous_hash, encode(hash, 'hex') AS hash, actor_token_id, action, target_type, target_id, before_json AS before, after_json AS after, request_id,
          ip, user_agent, created_at, ${micros(sql, "audit_events")},
          (SELECT name FROM operator_tokens WHERE operator_tokens.id = actor_token_id) AS actor_name,
          ${targetName} AS target_name
        FROM audit_events CROSS JOIN LATERAL (SELECT ${uuidOf("target_id")} AS target_uuid) AS target WHERE ${matching} AND ${cursor === undefined ? sql`true` : after(cursor)}
        ORDER BY created_at DESC, sequence DESC LIMIT ${limit + 1}`,
        limit,
        Function.identity
      )
    }, toStoreFailures)
  })
})

const eventRows = storedRows(
  ListedEvent.pipe(Schema.fieldsAssign({ sequence: Count, created_at: Schema.DateTimeUtcFromDate })),
  {
    table: "audit_events",
    key: ["id"]
  }
)
