import { Context, type DateTime, Effect, Layer, Option, Schema } from "effect"
import * as Settings from "../../policy/AuthSettings.ts"
import { Database } from "../../services/Database.ts"
import { Vault } from "../../state/Vault.ts"
import { type AuthSettingsPatch, AuthSettings as Shown } from "../api/AuthSettingsApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { type Actor, Audit, Snapshots } from "../audit/Audit.ts"
import { requireUnchanged } from "../store/Precondition.ts"
import { type StoreFailure, storedRows, toStoreFailures } from "../store/Rows.ts"
import { validateCredential } from "../store/Validation.ts"

type Invalid = Refused<"invalid_configuration">

/** Stores the settings for caller authentication besides gateway keys. Stored settings override the environment. */
export class AuthSettings extends Context.Service<
  AuthSettings,
  {
    readonly get: Effect.Effect<Shown, StoreFailure>
    readonly update: (
      patch: AuthSettingsPatch
    ) => Effect.Effect<Shown, Invalid | Refused<"changed_since_read"> | StoreFailure, Actor>
  }
>()("svc/control/AuthSettings") {
  static readonly layer = Layer.suspend(() => Layer.effect(AuthSettings, make))
}

interface CurrentSettings {
  readonly source: Shown["source"]
  readonly updatedAt: DateTime.Utc | null
  readonly settings: Settings.AuthSettings
  readonly secretConfigured: boolean
  readonly sealed: () => string | null
}

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const vault = yield* Vault
  const startup = yield* Settings.StartupAuthSettings
  const columns = sql.literal(`${Object.keys(Settings.AuthSettings.fields).join(", ")}, sealed_secret, updated_at`)

  const environmentSettings: CurrentSettings = Option.match(startup, {
    onNone: () => ({
      source: "unset" as const,
      updatedAt: null,
      settings: Settings.disabledAuth,
      secretConfigured: false,
      sealed: () => null
    }),
    onSome: ({ secret, settings }) => ({
      source: "environment" as const,
      updatedAt: null,
      settings,
      secretConfigured: Option.isSome(secret),
      sealed: () => Option.getOrNull(Option.map(secret, (value) => vault.seal(value, Settings.secretContext)))
    })
  })

  const readCurrent = Effect.map(settingsRows.first(sql`SELECT ${columns} FROM gateway_auth_settings`), (row) =>
    row === undefined ? environmentSettings : fromRow(row)
  )

  const update = Effect.fn("AuthSettings.update")(function* ({
    expected_updated_at,
    trusted_gateway_header_secret: secret,
    ...patch
  }: AuthSettingsPatch) {
    const refusal = secret ? validateCredential(secret) : undefined
    if (refusal !== undefined) return yield* invalid("trusted_gateway_header_secret", refusal)
    return yield* audit.mutate(function* ({ write }) {
      // Locks the table, because a row lock has no effect while the table is empty.
      yield* sql`LOCK TABLE gateway_auth_settings IN EXCLUSIVE MODE`
      const before = yield* readCurrent
      yield* requireUnchanged(expected_updated_at, { updated_at: before.updatedAt })
      const settings = applyPatch(before.settings, patch)
      const configured = secret === undefined ? before.secretConfigured : secret !== null
      const [mistake] = Settings.mistakes(settings, configured)
      if (mistake !== undefined) return yield* invalid(mistake.field, mistake.message)
      const sealed_secret =
        secret === undefined ? before.sealed() : secret && vault.seal(secret, Settings.secretContext)
      const { accepted_algorithms, allowed_groups, ...rest } = settings
      yield* write`DELETE FROM gateway_auth_settings`
      const row = yield* settingsRows.only(write`
        INSERT INTO gateway_auth_settings ${sql.insert({
          ...rest,
          accepted_algorithms: [...accepted_algorithms],
          allowed_groups: [...allowed_groups],
          sealed_secret
        })} RETURNING ${columns}`)
      const after = toApi(fromRow(row))
      return {
        result: after,
        auditAction: { target: "gateway_auth_settings", action: "settings:gateway_auth_update" },
        targetId: "singleton",
        snapshots: yield* snapshots(toApi(before), after),
        changes: [{ _tag: "Configuration" }]
      }
    })
  })

  return AuthSettings.of({
    get: readCurrent.pipe(Effect.map(toApi), toStoreFailures, Effect.withSpan("AuthSettings.get")),
    update
  })
})

const Row = Schema.Struct({
  ...Settings.AuthSettings.fields,
  sealed_secret: Schema.NullOr(Schema.String),
  updated_at: Schema.DateTimeUtcFromDate
})
const settingsRows = storedRows(Row, { table: "gateway_auth_settings", key: [] })
const snapshots = Snapshots.of(Shown)

const fromRow = ({ sealed_secret, updated_at, ...settings }: typeof Row.Type): CurrentSettings => ({
  source: "persisted",
  updatedAt: updated_at,
  settings,
  secretConfigured: sealed_secret !== null,
  sealed: () => sealed_secret
})

const toApi = ({ secretConfigured, settings, source, updatedAt }: CurrentSettings): Shown => {
  const { identity_enabled, svc_key_header, trusted_gateway_header_enabled, ...provider } = settings
  return {
    source,
    updated_at: updatedAt,
    svc_key_header,
    identity_provider: { enabled: identity_enabled, ...provider },
    trusted_gateway: { trusted_header_enabled: trusted_gateway_header_enabled, secret_configured: secretConfigured }
  }
}

type Patch = Omit<AuthSettingsPatch, "expected_updated_at" | "trusted_gateway_header_secret">

const applyPatch = (before: Settings.AuthSettings, patch: Patch): Settings.AuthSettings => {
  const { accepted_algorithms, allowed_groups, clock_skew_seconds, jwks_cache_ttl_seconds, svc_key_header, ...rest } =
    patch
  const { disabledAuth } = Settings
  return {
    ...before,
    ...rest,
    svc_key_header: orDefault(svc_key_header, before.svc_key_header, disabledAuth.svc_key_header),
    allowed_groups: orDefault(allowed_groups, before.allowed_groups, disabledAuth.allowed_groups),
    accepted_algorithms: orDefault(accepted_algorithms, before.accepted_algorithms, disabledAuth.accepted_algorithms),
    jwks_cache_ttl_seconds: orDefault(
      jwks_cache_ttl_seconds,
      before.jwks_cache_ttl_seconds,
      disabledAuth.jwks_cache_ttl_seconds
    ),
    clock_skew_seconds: orDefault(clock_skew_seconds, before.clock_skew_seconds, disabledAuth.clock_skew_seconds)
  }
}

/** An absent value keeps the stored setting. `null` resets the setting to its default. */
const orDefault = <A>(value: A | null | undefined, before: A, fallback: A): A =>
  value === undefined ? before : (value ?? fallback)

const invalid = (param: string, refusal: string) =>
  new ControlError("invalid_configuration", `${param} ${refusal}.`, { param })
