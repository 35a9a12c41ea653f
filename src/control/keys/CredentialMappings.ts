import { randomUUID } from "node:crypto"
import { Context, Effect, Layer, Option, Schema } from "effect"
import { StartupUpstreams } from "../../policy/routes/StartupUpstreams.ts"
import { originOf } from "../../policy/routes/StoredCredential.ts"
import { familyOfVendor, Vendor } from "../../policy/routes/Vendor.ts"
import { Database } from "../../services/Database.ts"
import type { Change } from "../../state/Changes.ts"
import { Vault } from "../../state/Vault.ts"
import { CredentialMapping, type CredentialMappingUpsert } from "../api/keys/CredentialMappingsApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { isUnreadable, type Unreadable } from "../api/schema/Fields.ts"
import { type Actor, Audit, Snapshots } from "../audit/Audit.ts"
import { computedRows, rowTimestamps, type StoreFailure, storedRows, toStoreFailures } from "../store/Rows.ts"
import { validateCredential } from "../store/Validation.ts"

type Missing = Refused<"missing_provider_config">
type Invalid = Refused<"invalid_provider_config_payload">

/** Stores upstream credentials for single keys and for projects. A mapping without a credential has no effect. */
export class CredentialMappings extends Context.Service<
  CredentialMappings,
  {
    readonly list: Effect.Effect<ReadonlyArray<CredentialMapping>, StoreFailure>
    readonly get: (id: string) => Effect.Effect<CredentialMapping, Missing | StoreFailure>
    readonly upsert: (input: CredentialMappingUpsert) => Effect.Effect<CredentialMapping, Invalid | StoreFailure, Actor>
    readonly remove: (id: string) => Effect.Effect<void, Missing | StoreFailure, Actor>
    readonly enable: (id: string) => Effect.Effect<CredentialMapping, Missing | StoreFailure, Actor>
    /** Also disables a mapping whose row this version cannot decode. */
    readonly disable: (id: string) => Effect.Effect<CredentialMapping | Unreadable, Missing | StoreFailure, Actor>
  }
>()("svc/control/CredentialMappings") {
  static readonly layer = Layer.suspend(() => Layer.effect(CredentialMappings, make))
}

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const vault = yield* Vault
  const upstreams = yield* StartupUpstreams

  const select = sql`
    SELECT m.id, m.scope, coalesce(m.key_id, m.project_id) AS target_id, coalesce(k.key_prefix, p.name) AS target_label,
      m.enabled, m.sealed_credential IS NOT NULL AS credential_configured, m.credential_origin, m.created_at, m.updated_at
    FROM upstream_credential_mappings m
    LEFT JOIN api_keys k ON k.id = m.key_id
    LEFT JOIN projects p ON p.id = m.project_id`

  const lock = (id: string) =>
    Effect.flatMap(mappingRows.first(sql`${select} WHERE m.id = ${id} FOR UPDATE OF m`), orMissing)

  /** Locks the key or project of a mapping, so that concurrent upserts for this target run one after the other. */
  const lockTarget = Effect.fnUntraced(function* ({ scope, target_id }: CredentialMappingUpsert) {
    const [row] =
      scope === "key"
        ? yield* sql`SELECT 1 FROM api_keys WHERE id = ${target_id} FOR NO KEY UPDATE`
        : yield* sql`SELECT 1 FROM projects WHERE id = ${target_id} FOR NO KEY UPDATE`
    if (row === undefined) return yield* invalid("target_id", `is not the id of a ${scope}`)
    return sql(`${scope}_id`)
  })

  /** Returns the origin that a new credential is bound to. An enabled provider row overrides the environment. */
  const upstreamOrigin = Effect.fnUntraced(function* (vendor: Vendor | undefined) {
    const rows = yield* addressRows.all(
      sql`SELECT base_url, family FROM provider_configs WHERE provider = 'upstream' AND enabled`
    )
    const originFor = (vendor: Vendor): string | null => {
      const row = rows.find(({ family }) => family === vendor) ?? rows.find(({ family }) => family === null)
      if (row !== undefined) return originOf(row.base_url)
      // A credential that is stored without an origin is sent only to UPSTREAM_BASE_URL.
      return Option.getOrNull(Option.map(upstreams[familyOfVendor(vendor)], ({ base }) => base.origin))
    }
    if (vendor !== undefined) return originFor(vendor)
    const origin = originFor("openai")
    return origin === originFor("anthropic") ? origin : yield* familyRequired
  })

  const upsert = Effect.fn("CredentialMappings.upsert")(function* (input: CredentialMappingUpsert) {
    const { credential = null, scope, target_id } = input
    const refusal = credential === null ? undefined : validateCredential(credential)
    if (refusal !== undefined) return yield* invalid("credential", refusal)
    return yield* audit.mutate(function* ({ write }) {
      const column = yield* lockTarget(input)
      const before = yield* mappingRows.first(sql`${select} WHERE m.${column} = ${target_id} FOR UPDATE OF m`)
      const id = before?.id ?? randomUUID()
      const sealed = credential && vault.seal(credential, `upstream_credential_mappings/${id}`)
      const origin = credential && (yield* upstreamOrigin(input.family))
      const enabled = input.enabled ?? before?.enabled ?? true
      yield* write`
        INSERT INTO upstream_credential_mappings (id, scope, ${column}, enabled, sealed_credential, credential_origin)
        VALUES (${id}, ${scope}, ${target_id}, ${enabled}, ${sealed}, ${origin})
        ON CONFLICT (id) DO UPDATE SET enabled = excluded.enabled, updated_at = now(),
          sealed_credential = coalesce(excluded.sealed_credential, upstream_credential_mappings.sealed_credential),
          credential_origin = CASE WHEN excluded.sealed_credential IS NULL
            THEN upstream_credential_mappings.credential_origin ELSE excluded.credential_origin END`
      const after = yield* mappingRows.only(sql`${select} WHERE m.id = ${id}`)
      return {
        result: after,
        auditAction: { target: "upstream_credential_mapping", action: "upstream_credentials:upsert" },
        targetId: id,
        snapshots: yield* snapshots(before ?? null, after),
        changes: [noticeOf(after)]
      }
    })
  })

  const enable = (id: string) =>
    audit.mutate(function* ({ write }) {
      const before = yield* lock(id)
      yield* write`UPDATE upstream_credential_mappings SET enabled = true, updated_at = now() WHERE id = ${id}`
      const after = yield* mappingRows.only(sql`${select} WHERE m.id = ${id}`)
      return {
        result: after,
        auditAction: { target: "upstream_credential_mapping", action: "upstream_credentials:enable" },
        targetId: id,
        snapshots: yield* snapshots(before, after),
        changes: [noticeOf(after)]
      }
    })

  /** Locks a mapping even if its row cannot be decoded, because the operation needs only its id and target. */
  const lockEvenUnreadable = Effect.fnUntraced(function* (id: string) {
    const mapping = yield* Effect.flatMap(
      mappingRows.firstOrUnreadable(sql`${select} WHERE m.id = ${id} FOR UPDATE OF m`),
      orMissing
    )
    const [target] = yield* sql<{ readonly key_id: string | null; readonly project_id: string | null }>`
      SELECT key_id, project_id FROM upstream_credential_mappings WHERE id = ${id}`
    const notices: ReadonlyArray<Change> = isUnreadable(mapping)
      ? [
          ...(target?.key_id ? [{ _tag: "Key", id: target.key_id } as const] : []),
          ...(target?.project_id ? [{ _tag: "Project", id: target.project_id } as const] : [])
        ]
      : [noticeOf(mapping)]
    return { mapping, notices }
  })

  const disable = (id: string) =>
    audit.mutate(function* ({ write }) {
      const before = yield* lockEvenUnreadable(id)
      yield* write`UPDATE upstream_credential_mappings SET enabled = false, updated_at = now() WHERE id = ${id}`
      const after = yield* lockEvenUnreadable(id)
      return {
        result: after.mapping,
        auditAction: { target: "upstream_credential_mapping", action: "upstream_credentials:disable" },
        targetId: id,
        snapshots: yield* snapshots(before.mapping, after.mapping),
        changes: after.notices
      }
    })

  return CredentialMappings.of({
    list: mappingRows
      .all(sql`${select} ORDER BY m.created_at DESC, m.id DESC`)
      .pipe(toStoreFailures, Effect.withSpan("CredentialMappings.list")),
    get: Effect.fn("CredentialMappings.get")(
      (id) => Effect.flatMap(mappingRows.first(sql`${select} WHERE m.id = ${id}`), orMissing),
      toStoreFailures
    ),
    upsert,
    remove: Effect.fn("CredentialMappings.remove")((id) =>
      audit.mutate(function* ({ write }) {
        const { mapping, notices } = yield* lockEvenUnreadable(id)
        yield* write`DELETE FROM upstream_credential_mappings WHERE id = ${id}`
        return {
          result: undefined,
          auditAction: { target: "upstream_credential_mapping", action: "upstream_credentials:delete" },
          targetId: id,
          snapshots: yield* snapshots(mapping, null),
          changes: notices
        }
      })
    ),
    enable: Effect.fn("CredentialMappings.enable")(enable),
    disable: Effect.fn("CredentialMappings.disable")(disable)
  })
})

const mappingRows = storedRows(CredentialMapping.pipe(Schema.fieldsAssign(rowTimestamps)), {
  table: "upstream_credential_mappings",
  key: ["id"]
})
const addressRows = computedRows(Schema.Struct({ base_url: Schema.String, family: Schema.NullOr(Vendor) }))
const snapshots = Snapshots.of(CredentialMapping)

const orMissing = <A>(mapping: A | undefined): Effect.Effect<A, Missing> =>
  mapping === undefined
    ? Effect.fail(new ControlError("missing_provider_config", "No credential mapping has this id."))
    : Effect.succeed(mapping)

const noticeOf = ({ scope, target_id }: CredentialMapping): Change => ({
  _tag: scope === "key" ? "Key" : "Project",
  id: target_id
})

const invalid = (param: string, refusal: string) =>
  new ControlError("invalid_provider_config_payload", `${param} ${refusal}.`, { param })

const familyRequired = invalid(
  "family",
  "is required (openai or anthropic), because each family has its own upstream and the credential is sent to only one of them"
)
