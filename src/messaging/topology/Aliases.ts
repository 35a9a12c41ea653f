import { Context, Result } from "effect"
import * as BatchEnvelope from "../envelope/BatchEnvelope.ts"
import { isJsonObject, type JsonObject, parse } from "../envelope/Envelope.ts"
import type { EnvelopeError, EnvelopeKind } from "../envelope/Errors.ts"
import type { ExactAndOrdinary } from "../envelope/ExactJson.ts"
import * as StatusEvent from "../envelope/StatusEvent.ts"
import * as TaskEnvelope from "../envelope/TaskEnvelope.ts"
import * as WorkflowEnvelope from "../envelope/WorkflowEnvelope.ts"
import { ValidationIssues } from "./Parameters.ts"

export interface AliasParameters {
  /**
   * Maps the canonical name of a top-level JSON member to the name that other programs use: `{ task_id: "job" }`. Blank
   * aliases are ignored. Default: none. Without an alias for `task_id`, incoming bodies may also use `documentId`.
   */
  readonly field_aliases?: Readonly<Record<string, string>> | undefined
  /** Names of HTTP path and query parameters. Default: the alias in `field_aliases`, else the canonical name. */
  readonly http_aliases?: Readonly<Record<string, string>> | undefined
}

/**
 * The default aliases of routers, histories and event streams. They read this reference only when they are created.
 * `StatusRuntime` sets the reference to its option `aliasConfig`. Default: none.
 */
export const ContractAliases = Context.Reference<ContractAliasConfig | undefined>("svc/messaging/ContractAliases", {
  defaultValue: () => undefined
})

const builtInAlias = { canonical: "task_id", alias: "documentId" }

/**
 * Aliases of top-level JSON members and of HTTP parameters. Messages on the broker always have the canonical names.
 * Members inside `payload`, `meta` and `result` are never renamed.
 *
 * Incoming bodies may use `documentId` for `task_id`, unless `task_id` has another alias. Outgoing bodies never contain
 * `documentId`. Implementations in other languages write `documentId` if any alias is configured.
 *
 * The constructor throws a `SettingsError` if two aliases are equal, or if an alias is the canonical name of another
 * member.
 */
export class ContractAliasConfig {
  private readonly fieldAliases: ReadonlyMap<string, string>
  private readonly httpAliases: ReadonlyMap<string, string>
  private readonly inboundAliases: ReadonlyArray<readonly [canonical: string, alias: string]>

  constructor(parameters: AliasParameters = {}) {
    const issues = new ValidationIssues()
    this.fieldAliases = read("field_aliases", parameters.field_aliases, issues)
    this.httpAliases = read("http_aliases", parameters.http_aliases, issues)
    this.inboundAliases = this.fieldAliases.has(builtInAlias.canonical)
      ? [...this.fieldAliases]
      : [...this.fieldAliases, [builtInAlias.canonical, builtInAlias.alias]]
    issues.throwSettingsError("ContractAliasConfig")
  }

  /**
   * Renames aliases to canonical names. If a body contains both names, the canonical member is kept. A `task_id` that
   * is a number or a boolean becomes a string. A value that is not an object is returned unchanged.
   */
  inbound(value: unknown): unknown {
    return isJsonObject(value) ? this.#inbound(value) : value
  }

  /** Decodes the body of a message and renames its members to canonical names. */
  read(kind: EnvelopeKind, body: Uint8Array): Result.Result<ExactAndOrdinary<JsonObject>, EnvelopeError> {
    return Result.map(parse(kind, body), (parsed) => {
      const exact = this.#inbound(parsed.exact)
      return parsed.exact === parsed.ordinary
        ? { exact, ordinary: exact }
        : // `ordinary` may contain a rounded numeric id. The id of `exact` is a string with all digits and replaces it.
          { exact, ordinary: { ...this.#inbound(parsed.ordinary), task_id: exact["task_id"] } }
    })
  }

  #inbound(value: JsonObject): JsonObject {
    if (this.#canonical(value)) return value
    const renamed = new Map<string, unknown>(Object.entries(value))
    for (const [canonical, alias] of this.inboundAliases) {
      if (!Object.hasOwn(value, canonical) && Object.hasOwn(value, alias)) renamed.set(canonical, value[alias])
    }
    for (const [canonical, alias] of this.inboundAliases) {
      if (renamed.has(canonical)) renamed.delete(alias)
    }
    const id = renamed.get("task_id")
    if (typeof id === "number" || typeof id === "bigint" || typeof id === "boolean") renamed.set("task_id", String(id))
    else if (JSON.isRawJSON(id)) renamed.set("task_id", id.rawJSON)
    return Object.fromEntries(renamed)
  }

  #canonical(value: JsonObject): boolean {
    return (
      typeof value["task_id"] === "string" && this.inboundAliases.every(([, alias]) => !Object.hasOwn(value, alias))
    )
  }

  /** Renames canonical names to aliases. Renamed members come last. Members that are `null` keep their names. */
  outbound(value: JsonObject): JsonObject {
    const renamed = new Map<string, unknown>(Object.entries(value))
    for (const [canonical, alias] of this.fieldAliases) {
      const given = value[canonical]
      if (!Object.hasOwn(value, canonical) || given === null || given === undefined) continue
      renamed.delete(canonical)
      renamed.delete(alias)
      renamed.set(alias, given)
    }
    return Object.fromEntries(renamed)
  }

  /** Returns the name of an HTTP path or query parameter. */
  httpName(canonical: string): string {
    return this.httpAliases.get(canonical) ?? this.fieldName(canonical)
  }

  /** Returns the name of a top-level member in JSON bodies. */
  fieldName(canonical: string): string {
    return this.fieldAliases.get(canonical) ?? canonical
  }
}

const read = (
  field: string,
  aliases: Readonly<Record<string, string>> | undefined,
  issues: ValidationIssues
): ReadonlyMap<string, string> => {
  const trimmed = Object.entries(aliases ?? {})
    .map(([canonical, alias]) => [canonical, alias.trim()] as const)
    .filter(([canonical, alias]) => alias !== "" && alias !== canonical)
  issues.checkDifferent(trimmed.map(([canonical, alias]) => [`${field}.${canonical}`, alias]))
  for (const [name, alias] of trimmed) {
    if (envelopeFields.has(alias) || trimmed.some(([canonical]) => canonical === alias)) {
      issues.addMistake(`${field}.${name}`, `must not be ${alias}, which is the canonical name of another field`)
    }
  }
  return new Map(trimmed)
}

const envelopeFields = new Set([
  ...Object.keys(TaskEnvelope.Declared.fields),
  ...Object.keys(BatchEnvelope.Declared.fields),
  ...Object.keys(StatusEvent.Declared.fields),
  ...Object.keys(WorkflowEnvelope.Declared.fields)
])
