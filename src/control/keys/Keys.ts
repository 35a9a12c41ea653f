import { Context, DateTime, Effect, Layer } from "effect"
import type { Fragment } from "effect/sql/Statement"
import * as GuardrailPolicy from "../../policy/GuardrailPolicy.ts"
import { neutral, patched } from "../../policy/KeyPolicy.ts"
import { policyOf } from "../../policy/KeyPreset.ts"
import * as StoredPolicies from "../../policy/StoredPolicies.ts"
import { Database } from "../../services/Database.ts"
import * as Secret from "../../state/Secret.ts"
import {
  Key,
  type KeyPatch,
  type KeysQuery,
  type ListedKey,
  type MintedKey,
  type NewKey,
  type OwnerType
} from "../api/keys/KeysApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import type { SortedCursor, Unreadable } from "../api/schema/Fields.ts"
import { type Actor, Audit, type AuditAction, Snapshots } from "../audit/Audit.ts"
import { patchedGuardrailPolicy } from "../policies/GuardrailPolicyValidation.ts"
import { linksOf } from "../services/ServiceLinks.ts"
import type { Page } from "../store/Paging.ts"
import { requireUnchanged } from "../store/Precondition.ts"
import { type ColumnValues, lockProject, type StoreFailure } from "../store/Rows.ts"
import * as KeyList from "./KeyList.ts"
import { replaceSecret } from "./KeyRotation.ts"
import { columnsOf, type KeyRow, keyRows, toKey, toKeyOrUnreadable } from "./KeyRows.ts"
import { labelColumns } from "./LabelColumns.ts"

type Missing = Refused<"not_found">
type SettingsRefused = Refused<
  | "invalid_project_payload"
  | "missing_project"
  | "missing_service"
  | "invalid_guardrail_request"
  | "guardrail_forbidden"
>

/** Stores gateway keys as digests. Only the response that creates or rotates a key contains the raw key. */
export class Keys extends Context.Service<
  Keys,
  {
    readonly list: (query: KeysQuery) => Effect.Effect<Page<ListedKey, SortedCursor>, StoreFailure>
    readonly get: (id: string) => Effect.Effect<ListedKey, Missing | StoreFailure>
    readonly create: (key: NewKey) => Effect.Effect<MintedKey, SettingsRefused | StoreFailure, Actor>
    /** `update`, `revoke`, `disable` and `enable` do not change a revoked key. */
    readonly update: (
      id: string,
      patch: KeyPatch
    ) => Effect.Effect<Key, Missing | SettingsRefused | Refused<"changed_since_read"> | StoreFailure, Actor>
    /** Replaces the secret. The old secret still works for `graceSeconds` seconds. Policy and usage counters stay. */
    readonly rotate: (
      id: string,
      graceSeconds: number
    ) => Effect.Effect<MintedKey, Missing | Refused<"key_revoked"> | StoreFailure, Actor>
    /** `endGrace`, `revoke` and `disable` also work if this version cannot decode the key's row. */
    readonly endGrace: (id: string) => Effect.Effect<Key | Unreadable, Missing | StoreFailure, Actor>
    readonly revoke: (id: string) => Effect.Effect<Key | Unreadable, Missing | StoreFailure, Actor>
    readonly disable: (id: string) => Effect.Effect<Key | Unreadable, Missing | StoreFailure, Actor>
    readonly enable: (id: string) => Effect.Effect<Key, Missing | StoreFailure, Actor>
  }
>()("svc/control/Keys") {
  static readonly layer = Layer.suspend(() => Layer.effect(Keys, make))
}

const make = Effect.gen(function* () {
  const database = yield* Database
  const { sql } = database
  const audit = yield* Audit
  const links = linksOf(sql, "key")
  const columns = columnsOf(sql)

  const keyList = KeyList.make(database)

  /** Checks that the owner is valid, and locks the project against deletion. */
  const lockOwner = Effect.fnUntraced(function* (owner: OwnerType, projectId: string | null) {
    const refusal = ownerRefusal(owner, projectId)
    if (refusal !== undefined) return yield* refusal
    if (projectId === null) return
    const [project] = yield* sql`SELECT 1 FROM projects WHERE id = ${projectId} FOR KEY SHARE`
    if (project === undefined) {
      return yield* new ControlError("missing_project", "No project has this id.", { param: "project_id" })
    }
  })

  const create = Effect.fn("Keys.create")(function* (input: NewKey) {
    const owner = input.owner_type ?? "project"
    const projectId = input.project_id ?? null
    const policy = StoredPolicies.encode(policyOf(input.preset ?? undefined, input.policy ?? {}))
    const raw = Secret.mint(Secret.keyPrefix)
    return yield* audit.mutate(function* ({ write }) {
      yield* lockOwner(owner, projectId)
      const services = yield* checkLinks(owner, input.service_names ?? [])
      const guardrails = yield* patchedGuardrailPolicy(sql, GuardrailPolicy.neutral, input.guardrail_policy)
      const row = yield* keyRows.only(write`
        INSERT INTO api_keys (name, description, owner_email, tags, owner_type, project_id, team_id, key_prefix, key_hash,
          expires_at, rotation_due_at, holder_rotation, policy, guardrail_policy)
        VALUES (${input.name ?? null}, ${input.description ?? null}, ${input.owner_email ?? null}, ${input.tags ?? []}, ${owner}, ${projectId}, ${input.team_id ?? null}, ${Secret.displayPrefix(raw)}, ${Secret.digest(raw)},
          ${toDateOrNull(input.expires_at)}, ${toDateOrNull(input.rotation_due_at)}, ${input.holder_rotation ?? false}, ${policy}::jsonb,
          ${JSON.stringify(guardrails)}::jsonb)
        RETURNING ${columns}`)
      if (services.length > 0) yield* links.replace(row.id, services)
      const key = { ...toKey(row), service_names: [...new Set(services)].sort() }
      return {
        result: { key, raw_key: raw },
        auditAction: { target: "key", action: "keys:create" },
        targetId: key.id,
        snapshots: yield* snapshots(null, key),
        changes: [{ _tag: "Key", id: key.id }]
      }
    })
  })

  /** Updates the columns that `assignments` returns, unless the key is revoked. */
  const updateKey = <E, R>(
    id: string,
    action: Extract<AuditAction, { readonly target: "key" }>["action"],
    assignments: (before: KeyRow) => Effect.Effect<ColumnValues, E, R>,
    projectId: string | null | undefined = undefined
  ) =>
    audit.mutate(function* ({ write }) {
      yield* lockProject(sql, projectId)
      const before = yield* Effect.flatMap(
        keyRows.first(sql`SELECT ${columns} FROM api_keys WHERE id = ${id} FOR UPDATE`),
        orMissing
      )
      const set = before.revoked_at === null ? yield* assignments(before) : {}
      const after =
        Object.keys(set).length === 0
          ? before
          : yield* keyRows.only(write`
              UPDATE api_keys SET ${sql.update(set)}, updated_at = now() WHERE id = ${id} RETURNING ${columns}`)
      const key = toKey(after)
      return {
        result: key,
        auditAction: { target: "key", action },
        targetId: id,
        snapshots: yield* snapshots(toKey(before), key),
        changes: [{ _tag: "Key", id }]
      }
    })

  /** Refuses a key or its replaced secret, even if this version cannot decode its row. */
  const deactivate = (id: string, action: "keys:end_grace" | "keys:revoke" | "keys:disable", set: Fragment) =>
    audit.mutate(function* ({ write }) {
      const before = yield* Effect.flatMap(
        keyRows.firstOrUnreadable(sql`SELECT ${columns} FROM api_keys WHERE id = ${id} FOR UPDATE`),
        orMissing
      )
      const deactivated = yield* keyRows.firstOrUnreadable(write`
        UPDATE api_keys SET ${set}, updated_at = now() WHERE id = ${id} AND revoked_at IS NULL
        RETURNING ${columns}`)
      const key = toKeyOrUnreadable(deactivated ?? before)
      return {
        result: key,
        auditAction: { target: "key", action },
        targetId: id,
        snapshots: yield* snapshots(toKeyOrUnreadable(before), key),
        changes: [{ _tag: "Key", id }]
      }
    })

  /** A key that moves to a project loses its own list of services. */
  const replaceLinks = Effect.fnUntraced(function* (before: KeyRow, patch: KeyPatch) {
    const owner = patch.owner_type ?? before.owner_type
    const names = patch.service_names === undefined ? undefined : yield* checkLinks(owner, patch.service_names ?? [])
    const linked = names ?? (owner === "project" ? [] : before.service_names)
    if (names === undefined && linked.length === before.service_names.length) return {}
    yield* links.replace(before.id, linked)
    return { owner_type: owner }
  })
  const rotate = Effect.fn("Keys.rotate")((id: string, graceSeconds: number) =>
    audit.mutate(function* ({ write }) {
      const before = toKey(
        yield* Effect.flatMap(
          keyRows.first(sql`SELECT ${columns} FROM api_keys WHERE id = ${id} FOR UPDATE`),
          orMissing
        )
      )
      if (before.revoked_at !== null) {
        return yield* new ControlError("key_revoked", "A revoked key cannot be rotated. Create another key.")
      }
      const raw = Secret.mint(Secret.keyPrefix)
      const key = toKey(yield* replaceSecret(write, id, raw, graceSeconds))
      return {
        result: { key, raw_key: raw },
        auditAction: { target: "key", action: "keys:rotate" },
        targetId: id,
        snapshots: yield* snapshots(before, key),
        changes: [{ _tag: "Key", id }]
      }
    })
  )

  const changeOwnership = Effect.fnUntraced(function* (
    before: Key["owner_type"],
    currentProjectId: string | null,
    patch: KeyPatch
  ) {
    if (patch.owner_type === undefined && patch.project_id === undefined) return {}
    const owner_type = patch.owner_type ?? before
    // A key that becomes individual leaves its project, even if the patch does not set `project_id`.
    const keptProjectId = owner_type === "individual" ? null : currentProjectId
    const project_id = patch.project_id === undefined ? keptProjectId : patch.project_id
    yield* lockOwner(owner_type, project_id)
    return { owner_type, project_id }
  })

  /** Increases `policy_version` only if a policy differs from the stored one. */
  const changePolicy = Effect.fnUntraced(function* (before: KeyRow, patch: KeyPatch) {
    const current = toKey(before)
    const policy = StoredPolicies.encode(
      patch.policy === null ? neutral : patched(patched(neutral, before.policy), patch.policy ?? {})
    )
    const guardrails = JSON.stringify(
      yield* patchedGuardrailPolicy(sql, current.guardrail_policy, patch.guardrail_policy)
    )
    const samePolicy = policy === StoredPolicies.encode(patched(neutral, before.policy))
    if (samePolicy && guardrails === JSON.stringify(current.guardrail_policy)) return {}
    return { policy, guardrail_policy: guardrails, policy_version: before.policy_version + 1 }
  })

  const update = Effect.fn("Keys.update")((id: string, patch: KeyPatch) =>
    updateKey(
      id,
      "keys:update",
      (before) =>
        Effect.gen(function* () {
          yield* requireUnchanged(patch.expected_updated_at, before)
          return {
            ...(yield* replaceLinks(before, patch)),
            ...(yield* changeOwnership(before.owner_type, before.project_id, patch)),
            ...(patch.disabled === true && { disabled: true }),
            ...(patch.disabled === false && (yield* enableColumns(before))),
            ...(patch.name !== undefined && { name: patch.name }),
            ...labelColumns(patch),
            ...(patch.team_id !== undefined && { team_id: patch.team_id }),
            ...(patch.expires_at !== undefined && { expires_at: toDateOrNull(patch.expires_at) }),
            ...(patch.rotation_due_at !== undefined && { rotation_due_at: toDateOrNull(patch.rotation_due_at) }),
            ...(patch.holder_rotation !== undefined && { holder_rotation: patch.holder_rotation }),
            ...(yield* changePolicy(before, patch))
          }
        }),
      patch.project_id
    )
  )

  return Keys.of({
    list: keyList.list,
    get: (id) => Effect.flatMap(keyList.get(id), orMissing),
    create,
    update,
    rotate,
    // a secret that has expired already keeps the time at which it did
    endGrace: Effect.fn("Keys.endGrace")((id) =>
      deactivate(id, "keys:end_grace", sql`previous_key_expires_at = LEAST(previous_key_expires_at, now())`)
    ),
    revoke: Effect.fn("Keys.revoke")((id) =>
      Effect.flatMap(DateTime.now, (now) => deactivate(id, "keys:revoke", sql`revoked_at = ${DateTime.toDateUtc(now)}`))
    ),
    disable: Effect.fn("Keys.disable")((id) => deactivate(id, "keys:disable", sql`disabled = true`)),
    enable: Effect.fn("Keys.enable")((id) => updateKey(id, "keys:enable", enableColumns))
  })
})

const snapshots = Snapshots.of(Key)

/** Enabling a key restarts the time after which an unused key is disabled. */
const enableColumns = ({ disabled }: KeyRow) =>
  Effect.map(DateTime.now, (now) => (disabled ? { disabled: false, enabled_at: DateTime.toDateUtc(now) } : {}))

const toDateOrNull = (time: DateTime.Utc | null | undefined): Date | null => (time ? DateTime.toDateUtc(time) : null)

const orMissing = <A>(row: A | undefined): Effect.Effect<A, Missing> =>
  row === undefined ? Effect.fail(new ControlError("not_found", "No key has this id.")) : Effect.succeed(row)

/** A key of a project may call the services of its project. It has no list of its own. */
const checkLinks = (owner: OwnerType, names: ReadonlyArray<string>) =>
  owner === "project" && names.length > 0
    ? Effect.fail(
        new ControlError(
          "invalid_project_payload",
          "service_names cannot be set on a key whose owner_type is project. Set them on the project.",
          {
            param: "service_names"
          }
        )
      )
    : Effect.succeed(names)

const ownerRefusal = (owner: OwnerType, projectId: string | null) =>
  owner === "project" && projectId === null
    ? new ControlError(
        "invalid_project_payload",
        "project_id is required for a key whose owner_type is project. For a key without a project, set owner_type to individual.",
        { param: "project_id" }
      )
    : owner === "individual" && projectId !== null
      ? new ControlError(
          "invalid_project_payload",
          "project_id must be null for a key whose owner_type is individual.",
          {
            param: "project_id"
          }
        )
      : undefined
