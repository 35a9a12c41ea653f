import { Context, Effect, Layer, Schema } from "effect"
import { defaultTimeoutMs, defaultWindowChars, tokenContext } from "../../guardrails/Definitions.ts"
import * as PiiRedact from "../../guardrails/PiiRedact.ts"
import { Database } from "../../services/Database.ts"
import { Vault } from "../../state/Vault.ts"
import {
  ChangedGuardrail,
  Guardrail,
  type GuardrailPatch,
  type NewGuardrail,
  timeoutBounds
} from "../api/policies/GuardrailsApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { isUnreadable, type Unreadable } from "../api/schema/Fields.ts"
import { type Actor, Audit, Mutation, Snapshots } from "../audit/Audit.ts"
import * as CredentialOrigin from "../store/CredentialOrigin.ts"
import { requireUnchanged } from "../store/Precondition.ts"
import { computedRows, onDuplicate, type StoreFailure, storedRows, toStoreFailures } from "../store/Rows.ts"
import { findSecretMember, findSecretParameter } from "../store/SecretNames.ts"
import { type Violation, validateCredential, validateUrl } from "../store/Validation.ts"

type Invalid = Refused<"invalid_guardrail_request">

/** Stores the catalogue of guardrails that policies can select, with the settings of each guardrail. */
export class Guardrails extends Context.Service<
  Guardrails,
  {
    readonly list: Effect.Effect<ReadonlyArray<Guardrail>, StoreFailure>
    readonly get: (name: string) => Effect.Effect<Guardrail, Refused<"not_found"> | StoreFailure>
    readonly create: (guardrail: NewGuardrail) => Effect.Effect<Guardrail, Invalid | StoreFailure, Actor>
    /** If this version cannot decode the guardrail's row, an update can only disable the guardrail. */
    readonly update: (
      name: string,
      patch: GuardrailPatch
    ) => Effect.Effect<ChangedGuardrail | Unreadable, Invalid | Refused<"changed_since_read"> | StoreFailure, Actor>
    /** Also removes the guardrail from every policy. The records of its runs stay. */
    readonly remove: (name: string) => Effect.Effect<void, Invalid | StoreFailure, Actor>
  }
>()("svc/control/Guardrails") {
  static readonly layer = Layer.suspend(() => Layer.effect(Guardrails, make))
}

const maxGuardrails = 200
const maxConfigLength = 16_384

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const vault = yield* Vault
  const columns = sql.literal(
    `name, description, provider_kind, modes, default_on, failure_policy, config_schema, runtime_config, enabled,
     endpoint_url IS NOT NULL AS endpoint_configured, endpoint_url, timeout_ms,
     CASE provider_kind WHEN 'built_in' THEN NULL ELSE stream_mode END AS stream_mode,
     CASE provider_kind WHEN 'built_in' THEN NULL ELSE window_chars END AS window_chars,
     sealed_token IS NOT NULL AS token_configured, updated_at`
  )

  const columnsOf = Effect.fnUntraced(function* (
    name: string,
    input: Omit<GuardrailPatch, "expected_updated_at">,
    currentCredential: CredentialOrigin.CredentialChange["before"]
  ) {
    const { bearer_token, config_schema, endpoint_url, modes, runtime_config, timeout_ms, ...rest } = input
    if (endpoint_url !== undefined) yield* validated("endpoint_url", endpoint_url, refusedEndpoint)
    const { cleared, stored } = CredentialOrigin.outcomeOf({
      before: currentCredential,
      address: endpoint_url,
      sealed:
        bearer_token &&
        vault.seal(yield* validated("bearer_token", bearer_token, validateCredential), tokenContext(name))
    })
    const secret = runtime_config && findSecretMember(runtime_config)
    if (secret !== undefined) yield* Effect.fail(invalid(`runtime_config.${secret}`, exposedSecret))
    const set = {
      ...rest,
      ...(modes !== undefined && { modes: [...new Set(modes)] }),
      ...(endpoint_url !== undefined && { endpoint_url }),
      ...(timeout_ms !== undefined && {
        timeout_ms: Math.min(Math.max(timeout_ms, timeoutBounds.minimum), timeoutBounds.maximum)
      }),
      ...(config_schema !== undefined && { config_schema: yield* configText("config_schema", config_schema) }),
      ...(runtime_config !== undefined && { runtime_config: yield* configText("runtime_config", runtime_config) }),
      ...(stored && { sealed_token: stored.sealed, credential_origin: stored.credential_origin })
    }
    return { cleared, set }
  })

  const readCredential = ({ endpoint_url, name, token_configured }: Guardrail) =>
    CredentialOrigin.stored(sql`SELECT credential_origin FROM guardrail_definitions WHERE name = ${name}`, {
      address: endpoint_url,
      configured: token_configured
    })

  const lock = (name: string) =>
    Effect.flatMap(
      guardrailRows.first(sql`SELECT ${columns} FROM guardrail_definitions WHERE name = ${name} FOR UPDATE`),
      (row) => (row === undefined ? Effect.fail(unknownGuardrail) : Effect.succeed(row))
    )

  /** Locks the row even if this version cannot decode it. */
  const lockAny = Effect.fnUntraced(function* (name: string) {
    const guardrail = yield* guardrailRows.firstOrUnreadable(
      sql`SELECT ${columns} FROM guardrail_definitions WHERE name = ${name} FOR UPDATE`
    )
    if (guardrail === undefined) return yield* unknownGuardrail
    const [builtIn] = yield* sql`
      SELECT 1 FROM guardrail_definitions WHERE name = ${name} AND provider_kind = 'built_in'`
    return { guardrail, builtIn: builtIn !== undefined }
  })

  const disableUnreadable = (before: Unreadable) =>
    audit.mutate(function* ({ write }) {
      yield* write`UPDATE guardrail_definitions SET enabled = false, updated_at = now() WHERE name = ${before.id}`
      return {
        result: before,
        auditAction: { target: "guardrail", action: "guardrails:update" },
        targetId: before.id,
        snapshots: yield* snapshots(before, before),
        changes: [{ _tag: "Configuration" }]
      }
    })

  const create = Effect.fn("Guardrails.create")(function* ({ modes = [], name, ...input }: NewGuardrail) {
    const { set } = yield* columnsOf(
      name,
      {
        description: "",
        timeout_ms: defaultTimeoutMs,
        stream_mode: "buffer",
        window_chars: defaultWindowChars,
        ...input,
        modes: modes.length === 0 ? ["pre_call", "post_call"] : modes
      },
      undefined
    )
    return yield* audit.mutate(function* ({ write }) {
      const [full] = yield* sql`SELECT 1 FROM guardrail_definitions OFFSET ${maxGuardrails - 1} LIMIT 1`
      if (full !== undefined)
        return yield* invalid(
          "name",
          `cannot be added: the limit of ${maxGuardrails} guardrails is reached; delete one first`
        )
      const row = yield* onDuplicate(
        guardrailRows.only(write`
          INSERT INTO guardrail_definitions ${sql.insert({ name, provider_kind: "http", ...set })} RETURNING ${columns}`),
        () => invalid("name", "is the name of another guardrail")
      )
      return {
        result: row,
        auditAction: { target: "guardrail", action: "guardrails:create" },
        targetId: name,
        snapshots: yield* snapshots(null, row),
        changes: [{ _tag: "Configuration" }]
      }
    })
  })

  const update = Effect.fn("Guardrails.update")(function* (name: string, patch: GuardrailPatch) {
    const current = yield* toStoreFailures(
      guardrailRows.firstOrUnreadable(sql`SELECT ${columns} FROM guardrail_definitions WHERE name = ${name}`)
    )
    if (isUnreadable(current) && isSwitchOff(patch)) return yield* disableUnreadable(current)
    const { expected_updated_at, ...settings } = patch
    return yield* audit.mutate(function* ({ write }) {
      const before = yield* lock(name)
      yield* requireUnchanged(expected_updated_at, before)
      if (before.provider_kind === "built_in") yield* checkBuiltInPatch(settings)
      if (settings.modes?.length === 0) return yield* invalid("modes", "must name at least one mode")
      const { cleared, set } = yield* columnsOf(name, settings, yield* readCredential(before))
      const changed =
        Object.keys(set).length === 0
          ? before
          : yield* guardrailRows.only(write`
              UPDATE guardrail_definitions SET ${sql.update(set)}, updated_at = now()
              WHERE name = ${name} RETURNING ${columns}`)
      const after: ChangedGuardrail = cleared ? { ...changed, credential_cleared: true } : changed
      return {
        result: after,
        auditAction: { target: "guardrail", action: "guardrails:update" },
        targetId: name,
        snapshots: yield* snapshots(before, after),
        changes: [{ _tag: "Configuration" }]
      }
    })
  })

  /** A policy that requires a missing guardrail refuses every request, so the name is removed from all policies. */
  const removeFromPolicies = Effect.fnUntraced(function* (name: string) {
    const { write } = yield* Mutation
    // Fields that a newer version stored may be neither arrays nor objects.
    const policyFields = sql`jsonb_each(CASE jsonb_typeof(guardrail_policy) WHEN 'object' THEN guardrail_policy ELSE '{}' END)
      AS held (field, value)`
    const change = sql`policy_version = policy_version + 1, updated_at = now(), guardrail_policy = (
        SELECT coalesce(jsonb_object_agg(field,
          CASE WHEN jsonb_typeof(value) IN ('array', 'object') THEN value - ${name}::text ELSE value END), '{}')
        FROM ${policyFields} WHERE value <> to_jsonb(${name}::text))
      WHERE EXISTS (SELECT 1 FROM ${policyFields} WHERE value ? ${name}::text)`
    yield* write`UPDATE policy_layers SET ${change}`
    return yield* changedKeys.all(write`UPDATE api_keys SET ${change} RETURNING id`)
  })

  return Guardrails.of({
    list: guardrailRows
      .all(sql`SELECT ${columns} FROM guardrail_definitions ORDER BY name COLLATE "C"`)
      .pipe(toStoreFailures, Effect.withSpan("Guardrails.list")),
    get: Effect.fn("Guardrails.get")(function* (name) {
      const row = yield* guardrailRows.first(sql`SELECT ${columns} FROM guardrail_definitions WHERE name = ${name}`)
      return row ?? (yield* new ControlError("not_found", "There is no guardrail of this name."))
    }, toStoreFailures),
    create,
    update,
    remove: Effect.fn("Guardrails.remove")((name) =>
      audit.mutate(function* ({ write }) {
        const { builtIn, guardrail: before } = yield* lockAny(name)
        if (builtIn) {
          return yield* invalid("name", "is built in; disable it instead")
        }
        yield* write`DELETE FROM guardrail_definitions WHERE name = ${name}`
        const affected = yield* removeFromPolicies(name)
        return {
          result: undefined,
          auditAction: { target: "guardrail", action: "guardrails:delete" },
          targetId: name,
          snapshots: yield* snapshots(before, null),
          changes: [{ _tag: "Configuration" }, ...affected.map(({ id }) => ({ _tag: "Key" as const, id }))]
        }
      })
    )
  })
})

const guardrailRows = storedRows(Guardrail.pipe(Schema.fieldsAssign({ updated_at: Schema.DateTimeUtcFromDate })), {
  table: "guardrail_definitions",
  key: ["name"]
})
const changedKeys = computedRows(Schema.Struct({ id: Schema.String }))
const snapshots = Snapshots.of(ChangedGuardrail)

const unknownGuardrail = new ControlError("invalid_guardrail_request", "There is no guardrail of this name.", {
  param: "name"
})

const isSwitchOff = (patch: GuardrailPatch): boolean => patch.enabled === false && Object.keys(patch).length === 1

/** Returns `value` unless `rule` refuses it. The error does not contain the value, which may be a secret. */
const validated = <A>(param: string, value: A, rule: (value: A) => Violation): Effect.Effect<A, Invalid> => {
  const refusal = rule(value)
  return refusal === undefined ? Effect.succeed(value) : Effect.fail(invalid(param, refusal))
}

const exposedSecret =
  "looks like a secret, and the configuration and the audit log would show it: send it as bearer_token, which is stored encrypted, or rename it if it is not a secret"

const refusedEndpoint = (url: string): Violation => {
  const refusal = validateUrl(url)
  if (refusal !== undefined) return refusal
  const parameter = findSecretParameter(url)
  return parameter === undefined ? undefined : `has a parameter ${parameter} that ${exposedSecret}`
}

const invalid = (param: string, refusal: string): Invalid =>
  new ControlError("invalid_guardrail_request", `${param} ${refusal}.`, { param })

const configText = (param: string, config: Guardrail["runtime_config"]): Effect.Effect<string, Invalid> =>
  validated(param, JSON.stringify(config), (text) =>
    text.length > maxConfigLength ? `may have at most ${maxConfigLength} characters of JSON` : undefined
  )

const httpFields = ["description", "endpoint_url", "timeout_ms", "stream_mode", "window_chars", "bearer_token"] as const

/** A built-in guardrail has no HTTP endpoint, and it reads its configuration itself. */
const checkBuiltInPatch = (patch: GuardrailPatch): Effect.Effect<void, Invalid> => {
  const field = httpFields.find((name) => name in patch)
  if (field !== undefined) return Effect.fail(invalid(field, "cannot be set: this guardrail is built in"))
  const mistake = patch.runtime_config && PiiRedact.mistakeIn(patch.runtime_config)
  return mistake === undefined ? Effect.void : Effect.fail(invalid(`runtime_config.${mistake.field}`, mistake.reason))
}
