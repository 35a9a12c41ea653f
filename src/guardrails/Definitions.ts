import { Effect, Schema } from "effect"
import { Config, FailurePolicy, Mode } from "../gateway/model/Guardrail.ts"
import { open as openCredential, type StoredCredential } from "../gateway/model/StoredCredential.ts"
import { Database } from "../services/Database.ts"

/** Who does the work: the gateway itself (`pii-redact`), or whoever listens at an address. */
export type Provider =
  | { readonly _tag: "BuiltIn" }
  | { readonly _tag: "Http"; readonly url: string; readonly timeoutMs: number; readonly token: StoredCredential }

/** An entry of the catalogue (specification, "guardrail catalog entry"). */
export interface Definition {
  readonly name: string
  readonly description: string
  readonly provider: Provider
  readonly modes: ReadonlyArray<Mode>
  readonly defaultOn: boolean
  readonly failurePolicy: FailurePolicy
  readonly configSchema: Config
  readonly runtimeConfig: Config
  readonly enabled: boolean
}

/** The catalogue by name, in the order of names: replaced whole, never changed. */
export type Definitions = ReadonlyMap<string, Definition>

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
  sealed_token: Schema.NullOr(Schema.String)
})
const decodeRows = Schema.decodeUnknownEffect(Schema.Array(Row))

/** How long an HTTP guardrail may take, in milliseconds, where its entry does not say. */
export const defaultTimeoutMs = 1500

/** What a sealed token is bound to. */
export const tokenContext = (name: string): string => `guardrail_definitions/${name}`

/** A built-in guardrail by another name than the gateway knows would let everything pass, so there is none. */
const builtIn = "pii-redact"

export const load = Effect.gen(function* () {
  const { sql } = yield* Database
  const rows = yield* Effect.flatMap(
    sql`SELECT name, description, provider_kind, modes, default_on, failure_policy, config_schema, runtime_config, enabled,
      endpoint_url, timeout_ms, sealed_token FROM guardrail_definitions ORDER BY name COLLATE "C"`,
    decodeRows
  )
  const definitions = new Map<string, Definition>()
  for (const row of rows) {
    const provider = yield* providerOf(row)
    if (provider === undefined) continue
    definitions.set(row.name, {
      name: row.name,
      description: row.description,
      provider,
      modes: row.modes,
      defaultOn: row.default_on,
      failurePolicy: row.failure_policy,
      configSchema: row.config_schema,
      runtimeConfig: row.runtime_config,
      enabled: row.enabled
    })
  }
  const loaded: Definitions = definitions
  return loaded
})

const providerOf = Effect.fnUntraced(function* (row: typeof Row.Type) {
  if (row.provider_kind === "built_in") {
    const provider: Provider | undefined = row.name === builtIn ? { _tag: "BuiltIn" } : undefined
    return provider
  }
  if (row.endpoint_url === null) return undefined
  const provider: Provider = {
    _tag: "Http",
    url: row.endpoint_url,
    timeoutMs: row.timeout_ms ?? defaultTimeoutMs,
    token: yield* openCredential(row.sealed_token, tokenContext(row.name))
  }
  return provider
})
