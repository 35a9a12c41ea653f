import { randomUUID } from "node:crypto"
import { Context, Effect, Layer, Schema } from "effect"
import { type CredentialStyle, styleOfFamily } from "../../policy/routes/CredentialStyle.ts"
import * as UpstreamBase from "../../policy/routes/UpstreamBase.ts"
import { familyOfVendor } from "../../policy/routes/Vendor.ts"
import { Database } from "../../services/Database.ts"
import { Vault } from "../../state/Vault.ts"
import { ChangedProvider, type NewProvider, Provider, type ProviderPatch } from "../api/providers/ProvidersApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import type { Unreadable } from "../api/schema/Fields.ts"
import { type Actor, Audit, Mutation, Snapshots } from "../audit/Audit.ts"
import * as CredentialOrigin from "../store/CredentialOrigin.ts"
import { requireUnchanged } from "../store/Precondition.ts"
import {
  type ColumnValues,
  onDuplicate,
  rowTimestamps,
  type StoreFailure,
  storedRows,
  toStoreFailures
} from "../store/Rows.ts"
import {
  type CredentialHeader,
  type Violation,
  validateCredential,
  validateCredentialHeader,
  validateName
} from "../store/Validation.ts"

type Missing = Refused<"missing_provider_config">
type Invalid = Refused<"invalid_provider_config_payload">
type Duplicate = Refused<"duplicate_provider_config">

/** Stores the addresses of upstreams and how the gateway authenticates to them. */
export class Providers extends Context.Service<
  Providers,
  {
    readonly list: Effect.Effect<ReadonlyArray<Provider>, StoreFailure>
    readonly get: (id: string) => Effect.Effect<Provider, Missing | StoreFailure>
    readonly create: (row: NewProvider) => Effect.Effect<Provider, Invalid | Duplicate | StoreFailure, Actor>
    readonly update: (
      id: string,
      patch: ProviderPatch
    ) => Effect.Effect<
      ChangedProvider,
      Missing | Invalid | Duplicate | Refused<"changed_since_read"> | StoreFailure,
      Actor
    >
    readonly remove: (id: string) => Effect.Effect<void, Missing | StoreFailure, Actor>
    readonly enable: (id: string) => Effect.Effect<Provider, Missing | Duplicate | StoreFailure, Actor>
    /** Also disables a row that this version cannot decode. */
    readonly disable: (id: string) => Effect.Effect<Provider | Unreadable, Missing | StoreFailure, Actor>
  }
>()("svc/control/Providers") {
  static readonly layer = Layer.suspend(() => Layer.effect(Providers, make))
}

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const vault = yield* Vault
  const columns = sql.literal(
    `id, provider, name, base_url, family, enabled, sealed_credential IS NOT NULL AS credential_configured,
     credential_header_mode, credential_header_name, credential_header_value_format, created_at, updated_at`
  )

  /** Returns the columns that `input` sets. Validation applies to the merged row, not to `input` alone. */
  const columnsOf = Effect.fnUntraced(function* (
    id: string,
    input: Settings,
    row: ValidatedRow,
    before: CredentialOrigin.CredentialChange["before"]
  ) {
    const { base_url, credential, name, ...rest } = input
    const merged = { ...row, ...input }
    yield* validated("credential_header_name", merged, validateCredentialHeader)
    if (merged.provider !== "upstream" && merged.family !== null) {
      return yield* invalid("family", "applies only to rows with provider upstream")
    }
    const address =
      base_url === undefined
        ? undefined
        : UpstreamBase.normalized(yield* validated("base_url", base_url, UpstreamBase.refusedAddress))
    const { cleared, stored } = CredentialOrigin.outcomeOf({
      before,
      address,
      sealed:
        credential &&
        vault.seal(yield* validated("credential", credential, validateCredential), `provider_configs/${id}`)
    })
    const set = {
      ...rest,
      ...(name !== undefined && { name: yield* validated("name", name.trim(), validateName) }),
      ...(address !== undefined && { base_url: address }),
      ...(stored && { sealed_credential: stored.sealed, credential_origin: stored.credential_origin })
    }
    return { cleared, set }
  })

  const readCredential = ({ base_url, credential_configured, id }: Provider) =>
    CredentialOrigin.stored(sql`SELECT credential_origin FROM provider_configs WHERE id = ${id}`, {
      address: base_url,
      configured: credential_configured
    })

  const lock = (id: string) =>
    Effect.flatMap(
      providerRows.first(sql`SELECT ${columns} FROM provider_configs WHERE id = ${id} FOR UPDATE`),
      orNotFound
    )

  /** Locks the row even if this version cannot decode it. */
  const lockAny = (id: string) =>
    Effect.flatMap(
      providerRows.firstOrUnreadable(sql`SELECT ${columns} FROM provider_configs WHERE id = ${id} FOR UPDATE`),
      orNotFound
    )

  const create = Effect.fn("Providers.create")(function* ({ provider, ...fields }: NewProvider) {
    const id = randomUUID()
    const input = { ...vendorHeader(fields), ...fields }
    const { set } = yield* columnsOf(id, input, { provider, ...newRow }, undefined)
    return yield* audit.mutate(function* ({ write }) {
      const row = yield* providerRows
        .only(write`
          INSERT INTO provider_configs ${sql.insert({ id, provider, ...set })} RETURNING ${columns}`)
        .pipe(failOnDuplicate)
      return {
        result: row,
        auditAction: { target: "provider", action: "providers:create" },
        targetId: id,
        snapshots: yield* snapshots(null, row),
        changes: [{ _tag: "Configuration" }]
      }
    })
  })

  const updateRow = (before: Provider, set: ColumnValues) =>
    Effect.flatMap(Mutation, ({ write }) =>
      Object.keys(set).length === 0
        ? Effect.succeed(before)
        : providerRows.only(write`
            UPDATE provider_configs SET ${sql.update(set)}, updated_at = now()
            WHERE id = ${before.id} RETURNING ${columns}`)
    )

  const change = <E, R>(
    id: string,
    action: "providers:update" | "providers:enable",
    changed: (before: Provider) => Effect.Effect<ChangedProvider, E, R>
  ) =>
    audit.mutate(function* () {
      const before = yield* lock(id)
      const after = yield* changed(before)
      return {
        result: after,
        auditAction: { target: "provider", action },
        targetId: id,
        snapshots: yield* snapshots(before, after),
        changes: [{ _tag: "Configuration" }]
      }
    })

  return Providers.of({
    list: providerRows
      .all(sql`SELECT ${columns} FROM provider_configs ORDER BY provider, name`)
      .pipe(toStoreFailures, Effect.withSpan("Providers.list")),
    get: Effect.fn("Providers.get")(function* (id) {
      return yield* orNotFound(
        yield* toStoreFailures(providerRows.first(sql`SELECT ${columns} FROM provider_configs WHERE id = ${id}`))
      )
    }),
    create,
    update: Effect.fn("Providers.update")((id, { expected_updated_at, ...patch }) =>
      change(id, "providers:update", (before) =>
        Effect.gen(function* () {
          yield* requireUnchanged(expected_updated_at, before)
          const { cleared, set } = yield* columnsOf(id, patch, before, yield* readCredential(before))
          const after = yield* failOnDuplicate(updateRow(before, set))
          return cleared ? { ...after, credential_cleared: true as const } : after
        })
      )
    ),
    remove: Effect.fn("Providers.remove")((id) =>
      audit.mutate(function* ({ write }) {
        const before = yield* lockAny(id)
        yield* write`DELETE FROM provider_configs WHERE id = ${id}`
        return {
          result: undefined,
          auditAction: { target: "provider", action: "providers:delete" },
          targetId: id,
          snapshots: yield* snapshots(before, null),
          changes: [{ _tag: "Configuration" }]
        }
      })
    ),
    enable: Effect.fn("Providers.enable")((id) =>
      change(id, "providers:enable", (before) => failOnDuplicate(updateRow(before, { enabled: true })))
    ),
    disable: Effect.fn("Providers.disable")((id) =>
      audit.mutate(function* ({ write }) {
        const before = yield* lockAny(id)
        const after = yield* providerRows.firstOrUnreadable(write`
          UPDATE provider_configs SET enabled = false, updated_at = now() WHERE id = ${id} RETURNING ${columns}`)
        return {
          result: after ?? before,
          auditAction: { target: "provider", action: "providers:disable" },
          targetId: id,
          snapshots: yield* snapshots(before, after ?? before),
          changes: [{ _tag: "Configuration" }]
        }
      })
    )
  })
})

type Settings = Omit<ProviderPatch, "expected_updated_at">

interface ValidatedRow extends CredentialHeader {
  readonly provider: NewProvider["provider"]
}

const newRow: CredentialHeader = {
  credential_header_mode: "authorization_bearer",
  credential_header_name: null,
  family: null
}

/** Returns the credential header that the vendor uses, unless the input sets a header. */
const vendorHeader = ({ credential_header_mode, credential_header_name, family }: Settings): Settings =>
  family === undefined ||
  family === null ||
  credential_header_mode !== undefined ||
  credential_header_name !== undefined
    ? {}
    : headerColumnsOf(styleOfFamily[familyOfVendor(family)])

const headerColumnsOf = (style: CredentialStyle): Settings =>
  style._tag === "AuthorizationBearer"
    ? { credential_header_mode: "authorization_bearer" }
    : {
        credential_header_mode: "custom_header",
        credential_header_name: style.name,
        credential_header_value_format: style.format
      }

const providerRows = storedRows(Provider.pipe(Schema.fieldsAssign(rowTimestamps)), {
  table: "provider_configs",
  key: ["id"]
})
const snapshots = Snapshots.of(ChangedProvider)

const orNotFound = <A>(row: A | undefined): Effect.Effect<A, Missing> =>
  row === undefined
    ? Effect.fail(new ControlError("missing_provider_config", "There is no provider row with this id."))
    : Effect.succeed(row)

/** Returns `value` unless `rule` refuses it. The error does not contain the value, which may be a secret. */
const validated = <A>(param: string, value: A, rule: (value: A) => Violation): Effect.Effect<A, Invalid> => {
  const refusal = rule(value)
  return refusal === undefined ? Effect.succeed(value) : Effect.fail(invalid(param, refusal))
}

const invalid = (param: string, refusal: string) =>
  new ControlError("invalid_provider_config_payload", `${param} ${refusal}.`, { param })

const failOnDuplicate = <A, E, R>(statement: Effect.Effect<A, E, R>) =>
  onDuplicate(statement, (constraint) =>
    constraint === "provider_configs_one_enabled_upstream"
      ? new ControlError(
          "duplicate_provider_config",
          "Another upstream row is enabled for the same family; disable it first.",
          {
            param: "enabled"
          }
        )
      : new ControlError(
          "duplicate_provider_config",
          "Another row with this provider has this name. Choose another name.",
          { param: "name" }
        )
  )
