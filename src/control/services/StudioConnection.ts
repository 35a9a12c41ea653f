import { Context, type DateTime, Effect, Layer, Option, type Redacted, Schema } from "effect"
import { credentialFor, originOf } from "../../policy/routes/StoredCredential.ts"
import { Database } from "../../services/Database.ts"
import { open } from "../../state/SealedCredential.ts"
import { Vault } from "../../state/Vault.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import {
  ChangedStudioConnection,
  type StudioConnectionPatch,
  type StudioConnection as StudioConnectionView
} from "../api/services/StudioApi.ts"
import { type Actor, Audit, Snapshots } from "../audit/Audit.ts"
import * as CredentialOrigin from "../store/CredentialOrigin.ts"
import { requireUnchanged } from "../store/Precondition.ts"
import { type StoreFailure, storedRows, toStoreFailures } from "../store/Rows.ts"
import { trimBaseUrl, validateBaseUrl, validateCredential } from "../store/Validation.ts"

type Invalid = Refused<"invalid_studio_connection_payload">
type Unconfigured = Refused<"studio_unconfigured">
type Settings = Omit<StudioConnectionPatch, "expected_updated_at">

/** The base URL has no trailing slash. The gateway sends `token` with its requests. */
export interface StudioTarget {
  readonly base_url: string
  readonly token: Option.Option<Redacted.Redacted>
}

/** The studio connection that `SVC_STUDIO_BASE_URL` and `SVC_STUDIO_TOKEN` configure. */
export class StudioOfEnvironment extends Context.Service<StudioOfEnvironment, Option.Option<StudioTarget>>()(
  "svc/control/StudioOfEnvironment"
) {}

/** The address and token of the studio. A stored connection replaces the whole connection from the environment. */
export class StudioConnection extends Context.Service<
  StudioConnection,
  {
    readonly get: Effect.Effect<StudioConnectionView, StoreFailure>
    readonly update: (
      patch: StudioConnectionPatch
    ) => Effect.Effect<ChangedStudioConnection, Invalid | Refused<"changed_since_read"> | StoreFailure, Actor>
    readonly target: Effect.Effect<StudioTarget, Unconfigured | StoreFailure>
  }
>()("svc/control/StudioConnection") {
  static readonly layer = Layer.suspend(() => Layer.effect(StudioConnection, make))
}

const sealContext = "studio_connection_settings/true"

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const vault = yield* Vault
  const environment = Option.getOrUndefined(yield* StudioOfEnvironment)

  const readRow = connectionRows.first(
    sql`SELECT base_url, sealed_token, credential_origin, updated_at FROM studio_connection_settings`
  )
  const viewOf = (row: Row | undefined): StudioConnectionView => {
    if (row !== undefined) return makeView("persisted", row.base_url, row.sealed_token !== null, row.updated_at)
    return environment === undefined
      ? makeView("unset", null, false, null)
      : makeView("environment", environment.base_url, Option.isSome(environment.token), null)
  }

  /** Returns the row to store, or `undefined` if the stored row must be deleted. */
  const applyPatch = (before: Row | undefined, { base_url, token }: Settings) => {
    if (base_url === null || (before === undefined && base_url === undefined && !token)) {
      return { cleared: false, row: undefined }
    }
    const address = base_url === undefined ? (before?.base_url ?? environment?.base_url) : trimBaseUrl(base_url)
    const { cleared, stored } = CredentialOrigin.outcomeOf({
      before: before && {
        address: before.base_url,
        configured: before.sealed_token !== null,
        origin: before.credential_origin
      },
      address,
      sealed: token && vault.seal(token, sealContext)
    })
    return {
      cleared,
      row: {
        base_url: address,
        sealed_token: stored === undefined ? (before?.sealed_token ?? null) : stored.sealed,
        credential_origin: stored === undefined ? (before?.credential_origin ?? null) : stored.credential_origin
      }
    }
  }

  const update = Effect.fn("StudioConnection.update")(function* ({
    expected_updated_at,
    ...patch
  }: StudioConnectionPatch) {
    const { base_url, token } = patch
    if (typeof base_url === "string") yield* failIfRefused("base_url", validateBaseUrl(base_url))
    if (token) yield* failIfRefused("token", validateCredential(token))
    if (base_url === null && token) {
      return yield* invalid("token", "cannot be stored without an address: base_url null removes both")
    }
    return yield* audit.mutate(function* ({ write }) {
      // Locks the table, because a row lock has no effect while the table is empty.
      yield* sql`LOCK TABLE studio_connection_settings IN EXCLUSIVE MODE`
      const before = yield* readRow
      yield* requireUnchanged(expected_updated_at, { updated_at: before?.updated_at ?? null })
      const { cleared, row } = applyPatch(before, patch)
      if (row?.base_url === undefined && row !== undefined) return yield* invalid("base_url", missingAddress)
      const unchanged = row === undefined ? before === undefined : Object.keys(patch).length === 0
      const after = unchanged
        ? before
        : yield* Effect.andThen(
            write`DELETE FROM studio_connection_settings`,
            row === undefined
              ? Effect.undefined
              : connectionRows.only(write`
                  INSERT INTO studio_connection_settings ${sql.insert(row)} RETURNING base_url, sealed_token, credential_origin, updated_at`)
          )
      const result: ChangedStudioConnection = { ...viewOf(after), ...(cleared && { credential_cleared: true }) }
      return {
        result,
        auditAction: { target: "studio_connection", action: "settings:studio_connection_update" },
        targetId: "singleton",
        snapshots: yield* snapshots(viewOf(before), result),
        changes: []
      }
    })
  })

  const target = Effect.gen(function* () {
    const row = yield* readRow
    if (row === undefined) return environment ?? (yield* unconfigured(howToConnect))
    const secret = yield* Effect.provideService(open(row.sealed_token, sealContext), Vault, vault)
    const token = credentialFor(originOf(row.base_url), { secret, origin: row.credential_origin })
    switch (token._tag) {
      case "Missing":
        return { base_url: row.base_url, token: Option.none() }
      case "Present":
        return { base_url: row.base_url, token: Option.some(token.credential) }
      case "Unreadable":
        return yield* unconfigured(unreadableToken)
      case "OtherOrigin":
        return yield* unconfigured(tokenOfOtherOrigin)
    }
  })

  return StudioConnection.of({
    get: readRow.pipe(Effect.map(viewOf), toStoreFailures, Effect.withSpan("StudioConnection.get")),
    update,
    target: toStoreFailures(target)
  })
})

const Row = Schema.Struct({
  base_url: Schema.String,
  sealed_token: Schema.NullOr(Schema.String),
  credential_origin: Schema.NullOr(Schema.String),
  updated_at: Schema.DateTimeUtcFromDate
})
type Row = typeof Row.Type
const connectionRows = storedRows(Row, { table: "studio_connection_settings", key: [] })
const snapshots = Snapshots.of(ChangedStudioConnection)

const makeView = (
  source: StudioConnectionView["source"],
  base_url: string | null,
  token_configured: boolean,
  updated_at: DateTime.Utc | null
): StudioConnectionView => ({ base_url, token_configured, source, updated_at })

const failIfRefused = (param: string, refusal: string | undefined): Effect.Effect<void, Invalid> =>
  refusal === undefined ? Effect.void : Effect.fail(invalid(param, refusal))

const invalid = (param: string, refusal: string) =>
  new ControlError("invalid_studio_connection_payload", `${param} ${refusal}.`, { param })

const missingAddress = "is required: no address is stored, and SVC_STUDIO_BASE_URL is not set"
const howToConnect =
  "No studio is configured: PATCH /admin-ui/admin/studio/connection with its base_url, or start with SVC_STUDIO_BASE_URL."
const unreadableToken =
  "The stored studio token cannot be decrypted: GATEWAY_ENCRYPTION_KEY is missing or has changed. Set the key, or PATCH the token again."
const tokenOfOtherOrigin =
  "The studio token was stored for another address than the current base_url and is not sent there. PATCH the token again."

const unconfigured = (message: string): Effect.Effect<never, Unconfigured> =>
  Effect.fail(new ControlError("studio_unconfigured", message))
