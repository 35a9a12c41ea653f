import { Context, Effect, Layer, Schema } from "effect"
import type { SqlClient } from "effect/sql"
import { Database } from "../../services/Database.ts"
import * as AuditLog from "../../state/AuditLog.ts"
import * as Changes from "../../state/Changes.ts"
import { RequestId } from "../api/schema/Errors.ts"
import { orUnreadable, type Unreadable } from "../api/schema/Fields.ts"
import { Operator } from "../api/schema/Security.ts"
import { type StatementFailure, type StoreFailure, toStoreFailures } from "../store/Rows.ts"

/**
 * The permission to change stored state. Only `Audit.mutate` grants it, and requires an audit event in return. A change
 * without an audit event therefore does not compile. A test searches the sources for other SQL writes.
 */
export class Mutation extends Context.Service<Mutation, { readonly write: SqlClient.SqlClient }>()(
  "svc/control/Mutation"
) {}

export type Actor = Operator | RequestId

/** What the audit log can record, by the kind of object that changes. */
export const auditActions = {
  key: [
    "keys:create",
    "keys:update",
    "keys:rotate",
    "keys:rotate_by_holder",
    "keys:end_grace",
    "keys:end_grace_by_holder",
    "keys:revoke_by_holder",
    "keys:revoke",
    "keys:disable",
    "keys:enable",
    "limits:raise",
    "limits:end_raise",
    "limits:request_raise",
    "limits:grant_raise",
    "limits:grant_model",
    "limits:refuse_raise",
    "limits:reset"
  ],
  bulk_key_change: ["keys:bulk_change", "keys:bulk_stop"],
  project: ["projects:create", "projects:update", "projects:delete"],
  provider: ["providers:create", "providers:update", "providers:delete", "providers:enable", "providers:disable"],
  upstream_credential_mapping: [
    "upstream_credentials:upsert",
    "upstream_credentials:delete",
    "upstream_credentials:enable",
    "upstream_credentials:disable"
  ],
  family_a_route: [
    "policies:route_enable",
    "policies:route_disable",
    "policies:route_mode_update",
    "policies:route_config_update"
  ],
  family_b_route: [
    "policies:route_enable",
    "policies:route_disable",
    "policies:route_mode_update",
    "policies:route_config_update"
  ],
  upstream_passthrough_settings: ["providers:upstream_passthrough_update"],
  upstream_ui: ["providers:upstream_ui_open"],
  model_price: ["prices:upsert", "prices:delete"],
  guardrail: ["guardrails:create", "guardrails:update", "guardrails:delete"],
  service_registry: ["services:import_activate", "services:import_rollback"],
  studio_connection: ["settings:studio_connection_update"],
  service: [
    "services:create",
    "services:update",
    "services:delete",
    "services:enable",
    "services:disable",
    "services:import",
    "services:sync",
    "services:openapi_sync"
  ],
  provider_health: ["providers:health_update", "providers:health_check"],
  operator_token: ["operators:create", "operators:rotate", "operators:revoke"],
  audit_log: ["audit:archive"],
  vault: ["secrets:rotate"],
  gateway_auth_settings: ["settings:gateway_auth_update"],
  policy_layer: ["policies:upsert-layer", "policies:delete-layer", "limits:reset"],
  policy: ["policies:simulate"],
  configuration: ["configuration:apply"],
  process: ["system:drain"],
  tasks: ["tasks:operate", "tasks:operated"],
  session: ["sessions:sign_in", "sessions:sign_out", "sessions:end"]
} as const

/** The events of these actions change something that a document has. Those of an apply come before its own event. */
export const configuringActions: ReadonlyArray<string> = [
  "keys:create",
  "keys:update",
  "limits:grant_model",
  "keys:disable",
  "keys:enable",
  "keys:revoke",
  "keys:revoke_by_holder",
  "policies:upsert-layer",
  "policies:delete-layer",
  ...auditActions.project,
  ...auditActions.provider,
  ...auditActions.upstream_credential_mapping,
  ...auditActions.family_a_route,
  ...auditActions.upstream_passthrough_settings,
  ...auditActions.model_price,
  ...auditActions.guardrail,
  ...auditActions.service_registry,
  ...auditActions.studio_connection,
  ...auditActions.service,
  ...auditActions.gateway_auth_settings
]

/** The action of the event that ends an apply of a document. */
export const [applyAction] = auditActions.configuration

type Targets = typeof auditActions

export type AuditAction = {
  readonly [Target in keyof Targets]: { readonly target: Target; readonly action: Targets[Target][number] }
}[keyof Targets]

/** An object before and after a change. A schema of the API encodes both, so they contain no secret. */
export class Snapshots {
  private readonly json: { readonly before: Schema.Json; readonly after: Schema.Json }

  private constructor(before: Schema.Json, after: Schema.Json) {
    this.json = { before, after }
  }

  static readonly of = <T, E, RD>(shape: Schema.Codec<T, E, RD>) => {
    const encode = Schema.encodeEffect(Schema.toCodecJson(Schema.NullOr(orUnreadable(shape))))
    return (
      before: T | Unreadable | null,
      after: T | Unreadable | null
    ): Effect.Effect<Snapshots, Schema.SchemaError> =>
      Effect.zipWith(encode(before), encode(after), (a, b) => new Snapshots(a, b))
  }

  static readonly text = (snapshots: Snapshots) => ({
    before: jsonb(snapshots.json.before),
    after: jsonb(snapshots.json.after)
  })
}

const jsonb = (value: Schema.Json): string | null => (value === null ? null : JSON.stringify(value))

interface MutationResult<A> {
  readonly result: A
  readonly auditAction: AuditAction
  readonly targetId: string
  readonly snapshots: Snapshots
  readonly changes: ReadonlyArray<Changes.Change>
  /** The caller, where only the change itself makes it known. */
  readonly actorTokenId?: string
}

type ErrorOf<Eff> = [Eff] extends [never]
  ? never
  : [Eff] extends [Effect.Effect<infer _A, infer E, infer _R>]
    ? E
    : never
type ServicesOf<Eff> = [Eff] extends [never]
  ? never
  : [Eff] extends [Effect.Effect<infer _A, infer _E, infer R>]
    ? R
    : never

export class Audit extends Context.Service<
  Audit,
  {
    /** Commits a change, its audit event and its notices to other processes in one transaction. */
    readonly mutate: <Eff extends Effect.Effect<unknown, unknown, unknown>, A>(
      change: (mutation: Mutation["Service"]) => Generator<Eff, MutationResult<A>, never>
    ) => Effect.Effect<
      A,
      Exclude<ErrorOf<Eff>, StatementFailure> | StoreFailure,
      Exclude<ServicesOf<Eff>, Mutation> | Actor
    >
  }
>()("svc/control/Audit") {
  static readonly layer = Layer.effect(
    Audit,
    Effect.gen(function* () {
      const database = yield* Database
      const { sql, transaction } = database

      const append = Effect.fnUntraced(function* (recorded: MutationResult<unknown>) {
        const { auditAction, snapshots, targetId } = recorded
        const { ip, tokenId, userAgent } = yield* Operator
        yield* AuditLog.append({
          actorTokenId: recorded.actorTokenId ?? tokenId,
          action: auditAction.action,
          targetType: auditAction.target,
          targetId,
          ...Snapshots.text(snapshots),
          requestId: yield* RequestId,
          ip,
          userAgent
        })
      })

      const commit = <A, E, R>(change: Effect.Effect<MutationResult<A>, E, R>) =>
        Effect.gen(function* () {
          const recorded = yield* Effect.provideService(change, Mutation, mutation)
          yield* append(recorded)
          yield* Effect.forEach(recorded.changes, Changes.publish, { discard: true })
          return recorded.result
        }).pipe(transaction, Effect.provideService(Database, database), toStoreFailures)

      const mutation = { write: sql }
      const mutate: Audit["Service"]["mutate"] = (change) => commit(Effect.gen(() => change(mutation)))

      return Audit.of({ mutate })
    })
  )
}
