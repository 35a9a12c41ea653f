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
   * From the canonical names of top-level members of JSON bodies, such as `task_id`, to those that other programs use:
   * `{ task_id: "job" }`. Blank: no alias. Default: none, but `documentId` is understood as `task_id` until that has an alias.
   */
  readonly field_aliases?: Readonly<Record<string, string>> | undefined
  /**
   * From canonical names to those of parameters in HTTP paths and queries. Default: for each name its alias in
   * `field_aliases`, else itself.
   */
  readonly http_aliases?: Readonly<Record<string, string>> | undefined
}

/**
 * Of a program whose layers are given none of their own: routers, histories and event streams ask for it when they are
 * made. `StatusRuntime` provides its `aliasConfig` by it. Default: none.
 */
export const ContractAliases = Context.Reference<ContractAliasConfig | undefined>("svc/messaging/ContractAliases", {
  defaultValue: () => undefined
})

/** Understood in every body that comes in, until `task_id` has an alias of its own. */
const builtInAlias = { canonical: "task_id", alias: "documentId" }

/**
 * Other names for top-level fields. Messages on the broker always bear the canonical names; nothing inside `payload`,
 * `meta` or `result` is renamed. The built-in alias counts on the way in alone: other implementations also rename
 * `task_id` to `documentId` on the way out as soon as there is any configuration, which nobody asked for.
 */
export class ContractAliasConfig {
  private readonly fieldAliases: ReadonlyMap<string, string>
  private readonly httpAliases: ReadonlyMap<string, string>
  private readonly inboundAliases: ReadonlyArray<readonly [canonical: string, alias: string]>

  constructor(parameters: AliasParameters = {}) {
    const findings = new ValidationIssues()
    this.fieldAliases = read("field_aliases", parameters.field_aliases, findings)
    this.httpAliases = read("http_aliases", parameters.http_aliases, findings)
    this.inboundAliases = this.fieldAliases.has(builtInAlias.canonical)
      ? [...this.fieldAliases]
      : [...this.fieldAliases, [builtInAlias.canonical, builtInAlias.alias]]
    findings.throwSettingsError("ContractAliasConfig")
  }

  /**
   * To canonical names. Where both names are given the canonical one counts. A task id becomes a text, as clients send
   * numbers. What is no object is left alone.
   */
  inbound(value: unknown): unknown {
    return isJsonObject(value) ? this.#inbound(value) : value
  }

  /** The JSON object in the body of a message, by canonical names. */
  read(kind: EnvelopeKind, body: Uint8Array): Result.Result<ExactAndOrdinary<JsonObject>, EnvelopeError> {
    return Result.map(parse(kind, body), (parsed) => {
      const exact = this.#inbound(parsed.exact)
      return parsed.exact === parsed.ordinary
        ? { exact, ordinary: exact }
        : // a task has one id, whoever reads it
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

  /** Whether nothing is renamed: of almost every message. */
  #canonical(value: JsonObject): boolean {
    return (
      typeof value["task_id"] === "string" && this.inboundAliases.every(([, alias]) => !Object.hasOwn(value, alias))
    )
  }

  /** To external names, at the end of the object. Fields that are `null` keep their names. */
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

  /** Of a path or query parameter. */
  httpName(canonical: string): string {
    return this.httpAliases.get(canonical) ?? this.fieldName(canonical)
  }

  /** Of a member of a body. */
  fieldName(canonical: string): string {
    return this.fieldAliases.get(canonical) ?? canonical
  }
}

const read = (
  field: string,
  aliases: Readonly<Record<string, string>> | undefined,
  findings: ValidationIssues
): ReadonlyMap<string, string> => {
  const trimmed = Object.entries(aliases ?? {})
    .map(([canonical, alias]) => [canonical, alias.trim()] as const)
    .filter(([canonical, alias]) => alias !== "" && alias !== canonical)
  findings.checkDifferent(trimmed.map(([canonical, alias]) => [`${field}.${canonical}`, alias]))
  for (const [name, alias] of trimmed) {
    if (envelopeFields.has(alias) || trimmed.some(([canonical]) => canonical === alias)) {
      findings.addMistake(`${field}.${name}`, `must not be ${alias}, which is the canonical name of another field`)
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
