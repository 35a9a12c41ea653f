import { Effect, Predicate, Schema } from "effect"
import { Config, FailurePolicy, Mode, StreamMode, WindowChars } from "../policy/Guardrail.ts"
import { credentialFor, missing, originOf, type StoredCredential } from "../policy/routes/StoredCredential.ts"
import { Database } from "../services/Database.ts"
import { open as openCredential } from "../state/SealedCredential.ts"
import type { RowColumns, RowReader, TableReader } from "../state/StoredRows.ts"

/** A guardrail runs in the gateway itself (`pii-redact`) or on a server of its own. */
export type GuardrailProvider = { readonly _tag: "BuiltIn" } | HttpProvider

export interface HttpProvider {
  readonly _tag: "Http"
  readonly url: string
  readonly timeoutMs: number
  readonly token: StoredCredential
  readonly streamMode: StreamMode
  /** The length of a piece of text in the stream mode `window`. */
  readonly windowChars: number
}

export interface GuardrailDefinition {
  readonly name: string
  readonly description: string
  readonly provider: GuardrailProvider
  readonly modes: ReadonlyArray<Mode>
  readonly defaultOn: boolean
  readonly failurePolicy: FailurePolicy
  readonly configSchema: Config
  readonly runtimeConfig: Config
  readonly enabled: boolean
  /** True if this version cannot decode the entry. Requests that this guardrail must check are then refused. */
  readonly unreadable?: true
}

/** All guardrails by name, sorted by name. The map is immutable: a reload replaces the whole map. */
export type GuardrailCatalogue = ReadonlyMap<string, GuardrailDefinition>

const Row = Schema.Struct({
  name: Schema.String,
  description: Schema.String,
  provider_kind: Schema.Literals(["built_in", "http"]),
  modes: Schema.Array(Mode),
  default_on: Schema.Boolean,
  failure_policy: FailurePolicy,
  config_schema: Config,
  runtime_config: Config,
  enabled: Schema.Boolean,
  endpoint_url: Schema.NullOr(Schema.String),
  timeout_ms: Schema.NullOr(Schema.Int),
  stream_mode: StreamMode,
  window_chars: WindowChars,
  sealed_token: Schema.NullOr(Schema.String),
  credential_origin: Schema.NullOr(Schema.String)
})
const decodeRow = Schema.decodeUnknownSync(Row)

export const defaultTimeoutMs = 1500
export const defaultWindowChars = 512

export const tokenContext = (name: string): string => `guardrail_definitions/${name}`

/** The only built-in guardrail. Built-in entries of other names are dropped, because they would let every text pass. */
export const builtIn = "pii-redact"

/** A guardrail whose token is still encrypted. */
interface SealedEntry {
  readonly definition: GuardrailDefinition
  readonly origin: string | null
  readonly sealed: string | null
  readonly credentialOrigin: string | null
}

const decodeEntry = (columns: object): SealedEntry | undefined => {
  const row = decodeRow(columns)
  const provider = providerOf(row)
  if (provider === undefined) return undefined
  return {
    definition: {
      name: row.name,
      description: row.description,
      provider,
      modes: row.modes,
      defaultOn: row.default_on,
      failurePolicy: row.failure_policy,
      configSchema: row.config_schema,
      runtimeConfig: row.runtime_config,
      enabled: row.enabled
    },
    origin: provider._tag === "Http" ? originOf(provider.url) : null,
    sealed: row.sealed_token,
    credentialOrigin: row.credential_origin
  }
}

const providerOf = (row: typeof Row.Type): GuardrailProvider | undefined => {
  if (row.provider_kind === "built_in") return row.name === builtIn ? { _tag: "BuiltIn" } : undefined
  return row.endpoint_url === null
    ? undefined
    : {
        _tag: "Http",
        url: row.endpoint_url,
        timeoutMs: row.timeout_ms ?? defaultTimeoutMs,
        token: missing,
        streamMode: row.stream_mode,
        windowChars: row.window_chars
      }
}

/**
 * Returns an entry that refuses requests if an undecodable row may be on by default, enabled and fail-closed. Otherwise
 * a rollback to this version would let requests pass unchecked. Other undecodable rows are dropped.
 */
const refusingEntry = ({ default_on, enabled, failure_policy, name }: RowColumns): SealedEntry | undefined =>
  Predicate.isString(name) && default_on !== false && enabled !== false && !passesOnFailure(failure_policy)
    ? {
        definition: {
          name,
          description: "",
          provider: { _tag: "BuiltIn" },
          modes: [],
          defaultOn: true,
          failurePolicy: "fail_closed",
          configSchema: {},
          runtimeConfig: {},
          enabled: false,
          unreadable: true
        },
        origin: null,
        sealed: null,
        credentialOrigin: null
      }
    : undefined

const passesOnFailure = (failurePolicy: unknown): boolean =>
  failurePolicy === "fail_open" || failurePolicy === "dry_run"

const table: TableReader<SealedEntry | undefined> = {
  name: "guardrail_definitions",
  key: ["name"],
  decode: decodeEntry,
  substitute: refusingEntry
}

export const load = Effect.fnUntraced(function* (reader: RowReader) {
  const { sql } = yield* Database
  const rows = yield* sql<RowColumns>`SELECT name, description, provider_kind, modes, default_on, failure_policy,
    config_schema, runtime_config, enabled, endpoint_url, timeout_ms, stream_mode, window_chars, sealed_token,
    credential_origin
    FROM guardrail_definitions ORDER BY name COLLATE "C"`
  const entries = reader.read(table, rows).filter((found) => found !== undefined)
  const complete = yield* Effect.forEach(entries, openToken)
  const definitions: GuardrailCatalogue = new Map(complete.map((definition) => [definition.name, definition]))
  return definitions
})

const openToken = Effect.fnUntraced(function* ({ credentialOrigin, definition, origin, sealed }: SealedEntry) {
  const { name, provider } = definition
  if (provider._tag === "BuiltIn" || origin === null) return definition
  const secret = yield* openCredential(sealed, tokenContext(name))
  const complete: GuardrailDefinition = {
    ...definition,
    provider: { ...provider, token: credentialFor(origin, { secret, origin: credentialOrigin }) }
  }
  return complete
})
