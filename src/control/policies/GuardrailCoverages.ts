import { Context, Effect, Layer, Schema } from "effect"
import * as GuardrailPolicy from "../../policy/GuardrailPolicy.ts"
import { Database } from "../../services/Database.ts"
import type { GuardrailCoverage, GuardrailSelection } from "../api/policies/GuardrailBench.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { Count, computedRows, type StoreFailure, toStoreFailures } from "../store/Rows.ts"

type Counts = GuardrailCoverage["keys"]

/** Says which keys a guardrail checks. Keys with the same owners and the same words about it are counted together. */
export class GuardrailCoverages extends Context.Service<
  GuardrailCoverages,
  { readonly of: (name: string) => Effect.Effect<GuardrailCoverage, Refused<"not_found"> | StoreFailure> }
>()("svc/control/GuardrailCoverages") {
  static readonly layer = Layer.suspend(() => Layer.effect(GuardrailCoverages, make))
}

const maxOwnKeys = 100

const make = Effect.gen(function* () {
  const { sql } = yield* Database

  /** The part of a stored policy that is about one guardrail. */
  const aboutOf = (name: string) => sql`
    jsonb_build_object(
      'mandatory', coalesce(guardrail_policy->'mandatory_guardrails' ? ${name}::text, false),
      'optional', coalesce(guardrail_policy->'optional_guardrails' ? ${name}::text, false),
      'forbidden', coalesce(guardrail_policy->'forbidden_guardrails' ? ${name}::text, false),
      'configured', coalesce(guardrail_policy->'guardrail_config_overrides' ? ${name}::text, false)
    )`
  const isNamed = (name: string) => sql`
    (guardrail_policy->'mandatory_guardrails' ? ${name}::text OR guardrail_policy->'optional_guardrails' ? ${name}::text
      OR guardrail_policy->'forbidden_guardrails' ? ${name}::text
      OR guardrail_policy->'guardrail_config_overrides' ? ${name}::text)`
  const isUsable = sql.literal("revoked_at IS NULL AND NOT disabled AND (expires_at IS NULL OR expires_at > now())")

  return GuardrailCoverages.of({
    of: Effect.fn("GuardrailCoverages.of")(function* (name) {
      const definition = yield* definitionRows.first(
        sql`SELECT enabled, default_on FROM guardrail_definitions WHERE name = ${name}`
      )
      if (definition === undefined) return yield* new ControlError("not_found", "There is no guardrail of this name.")
      const layers = yield* layerRows.all(sql`
        SELECT l.id, layer_kind AS kind, scope_id, coalesce(p.name, scope_id) AS scope_name, ${aboutOf(name)} AS about
        FROM policy_layers l LEFT JOIN projects p ON layer_kind = 'project' AND p.id::text = scope_id
        WHERE ${isNamed(name)} ORDER BY layer_kind, scope_id`)
      const groups = yield* groupRows.all(sql`
        SELECT project_id, team_id, ${aboutOf(name)} AS about, count(*) AS count FROM api_keys
        WHERE ${isUsable} GROUP BY project_id, team_id, about`)
      const own = yield* ownRows.all(sql`
        SELECT id, name, key_prefix, ${aboutOf(name)} AS about FROM api_keys
        WHERE ${isUsable} AND ${isNamed(name)} ORDER BY created_at DESC, id DESC LIMIT ${maxOwnKeys + 1}`)
      const counts: Record<keyof Counts, number> = { ...noKeys }
      for (const group of groups) {
        const applying = layers.filter((layer) => appliesTo(layer, group)).map(({ about }) => policyOf(name, about))
        const policy = [...applying, policyOf(name, group.about)].reduce(GuardrailPolicy.merged)
        counts[outcomeOf(name, policy, definition)] += group.count
      }
      return {
        keys: counts,
        layers: layers.map(({ about, ...layer }) => ({ ...layer, selection: selectionOf(about) })),
        own_keys: own.slice(0, maxOwnKeys).map(({ about, ...key }) => ({ ...key, selection: selectionOf(about) })),
        has_more_keys: own.length > maxOwnKeys
      }
    }, toStoreFailures)
  })
})

const noKeys: Counts = { mandatory: 0, by_default: 0, optional: 0, forbidden: 0, refused: 0, none: 0 }

const About = Schema.Struct({
  mandatory: Schema.Boolean,
  optional: Schema.Boolean,
  forbidden: Schema.Boolean,
  configured: Schema.Boolean
})
type About = typeof About.Type

const policyOf = (
  name: string,
  { configured, forbidden, mandatory, optional }: About
): GuardrailPolicy.GuardrailPolicy => ({
  mandatory_guardrails: mandatory ? [name] : [],
  optional_guardrails: optional ? [name] : [],
  forbidden_guardrails: forbidden ? [name] : [],
  guardrail_config_overrides: configured ? { [name]: {} } : {}
})

const selectionOf = ({ forbidden, mandatory, optional }: About): GuardrailSelection =>
  mandatory ? "mandatory" : forbidden ? "forbidden" : optional ? "optional" : "configured"

/** What `Selection.select` does with the guardrail. */
const outcomeOf = (
  name: string,
  policy: GuardrailPolicy.GuardrailPolicy,
  { default_on, enabled }: { readonly default_on: boolean; readonly enabled: boolean }
): keyof Counts => {
  const isForbidden = policy.forbidden_guardrails.includes(name)
  const isMandatory = policy.mandatory_guardrails.includes(name)
  const isConfigured = Object.hasOwn(policy.guardrail_config_overrides, name)
  if (isForbidden) return isMandatory || isConfigured ? "refused" : "forbidden"
  if (isMandatory) return enabled ? "mandatory" : "refused"
  if (!enabled) return "none"
  if (default_on) return "by_default"
  return policy.optional_guardrails.includes(name) ? "optional" : "none"
}

interface Owners {
  readonly project_id: string | null
  readonly team_id: string | null
}

const appliesTo = (layer: { readonly kind: string; readonly scope_id: string | null }, owners: Owners): boolean =>
  layer.kind === "global" ||
  (layer.kind === "project" && layer.scope_id === owners.project_id) ||
  (layer.kind === "team" && layer.scope_id === owners.team_id)

const definitionRows = computedRows(Schema.Struct({ enabled: Schema.Boolean, default_on: Schema.Boolean }))
const layerRows = computedRows(
  Schema.Struct({
    id: Schema.String,
    kind: Schema.String,
    scope_id: Schema.NullOr(Schema.String),
    scope_name: Schema.NullOr(Schema.String),
    about: About
  })
)
const groupRows = computedRows(
  Schema.Struct({
    project_id: Schema.NullOr(Schema.String),
    team_id: Schema.NullOr(Schema.String),
    about: About,
    count: Count
  })
)
const ownRows = computedRows(
  Schema.Struct({ id: Schema.String, name: Schema.NullOr(Schema.String), key_prefix: Schema.String, about: About })
)
