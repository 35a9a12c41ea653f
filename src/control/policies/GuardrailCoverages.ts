import { Context, Effect, Layer, Schema } from "effect"
import { Database } from "../../services/Database.ts"
import {
  type CoveredKey,
  type CoveredKeysQuery,
  type GuardrailCoverage,
  GuardrailSelection
} from "../api/policies/GuardrailCoverage.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { keyset, type Page, readPage } from "../store/Paging.ts"
import { Count, computedRows, type StoreFailure, storedRows, toStoreFailures } from "../store/Rows.ts"
import { outcomeOf } from "./CoverageOutcome.ts"

type Refusal = Refused<"not_found"> | StoreFailure

/**
 * Says which keys a guardrail checks. That depends on the words of the key's policy and of its layers about the guardrail
 * alone, so keys are counted by these words, and those with an outcome are found by the words that lead to it.
 */
export class GuardrailCoverages extends Context.Service<
  GuardrailCoverages,
  {
    readonly of: (name: string) => Effect.Effect<GuardrailCoverage, Refusal>
    readonly keys: (name: string, query: CoveredKeysQuery) => Effect.Effect<Page<CoveredKey>, Refusal>
  }
>()("svc/control/GuardrailCoverages") {
  static readonly layer = Layer.suspend(() => Layer.effect(GuardrailCoverages, make))
}

const defaultLimit = 100

const make = Effect.gen(function* () {
  const { sql } = yield* Database

  /** SQL: the words of a policy about the guardrail, such as `mandatory,configured`. */
  const wordsOf = (name: string) => {
    const part = (selection: GuardrailSelection) => sql.literal(`guardrail_policy->'${parts[selection]}'`)
    return sql`concat_ws(',', ${sql.csv(
      allSelections.map((selection) => sql`CASE WHEN ${part(selection)} ? ${name}::text THEN ${selection}::text END`)
    )})`
  }
  const isUsable = sql.literal("revoked_at IS NULL AND NOT disabled AND (expires_at IS NULL OR expires_at > now())")

  const read = Effect.fnUntraced(function* (name: string) {
    const entry = yield* catalogueRows.first(
      sql`SELECT enabled, default_on FROM guardrail_definitions WHERE name = ${name}`
    )
    if (entry === undefined) return yield* new ControlError("not_found", "There is no guardrail of this name.")
    const layers = yield* layerRows.all(sql`
      SELECT named.id, kind, scope_id, coalesce(projects.name, scope_id) AS scope_name, about
      FROM (SELECT id, layer_kind AS kind, scope_id, ${wordsOf(name)} AS about FROM policy_layers WHERE enabled) AS named
      LEFT JOIN projects ON kind = 'project' AND projects.id::text = scope_id
      WHERE about <> '' ORDER BY kind, scope_id`)
    const ofAll = layers.find(({ kind }) => kind === "global")?.about ?? ""
    const outcome = (about: string) => outcomeOf([ofAll, ...about.split("/")].map(selectionsIn), entry)
    return { layers, outcome }
  })

  /** SQL: the words of the layers of a key's project and team, and of its own policy, such as `mandatory//forbidden`. */
  const wordsOfKey = (name: string, layers: Layers) =>
    sql`concat(${byScope(layers, "project")}::jsonb->>project_id::text, '/', ${byScope(layers, "team")}::jsonb->>team_id, '/', ${wordsOf(name)})`

  return GuardrailCoverages.of({
    of: Effect.fn("GuardrailCoverages.of")(function* (name) {
      const { layers, outcome } = yield* read(name)
      const groups = yield* groupRows.all(sql`
        SELECT ${wordsOfKey(name, layers)} AS about, count(*) AS count FROM api_keys WHERE ${isUsable} GROUP BY 1`)
      const keys = { mandatory: 0, by_default: 0, optional: 0, forbidden: 0, refused: 0, none: 0 }
      for (const { about, count } of groups) keys[outcome(about)] += count
      return { keys, layers: layers.map(({ about, ...layer }) => ({ ...layer, selections: selectionsIn(about) })) }
    }, toStoreFailures),

    keys: Effect.fn("GuardrailCoverages.keys")(function* (name, { cursor, limit = defaultLimit, outcome: wanted }) {
      const { layers, outcome } = yield* read(name)
      const { afterCursor, micros, order } = keyset(sql, "api_keys", cursor)
      const leading = wanted && possibleWords(layers).filter((about) => outcome(about) === wanted)
      return yield* readPage(
        keyRows,
        // PostgreSQL cannot know how many keys have the outcome. OFFSET makes it walk the keys in their order.
        sql`
          SELECT id, name, key_prefix, project_id, team_id, about, ${micros},
            (SELECT projects.name FROM projects WHERE projects.id = project_id) AS project_name
          FROM (
            SELECT *, ${wordsOfKey(name, layers)} AS about FROM api_keys
            WHERE ${isUsable} AND ${afterCursor} ORDER BY ${order} OFFSET 0
          ) AS api_keys
          WHERE ${leading === undefined ? sql`true` : sql`about = ANY(${leading}::text[])`} ORDER BY ${order} LIMIT ${limit + 1}`,
        limit,
        ({ about, ...key }): CoveredKey => ({ ...key, outcome: outcome(about), selections: selectionsIn(ownOf(about)) })
      )
    }, toStoreFailures)
  })
})

/** The part of a guardrail policy that each word stands for. */
const parts: Readonly<Record<GuardrailSelection, string>> = {
  mandatory: "mandatory_guardrails",
  optional: "optional_guardrails",
  forbidden: "forbidden_guardrails",
  configured: "guardrail_config_overrides"
}
const allSelections = GuardrailSelection.literals

const selectionsIn = (words: string) => allSelections.filter((selection) => words.split(",").includes(selection))

const ownOf = (words: string): string => words.slice(words.lastIndexOf("/") + 1)

const layersOf = (layers: Layers, kind: string) => layers.filter((layer) => layer.kind === kind)

/** The words of the layers of a kind by their projects or teams, as JSON. */
const byScope = (layers: Layers, kind: "project" | "team"): string =>
  JSON.stringify(Object.fromEntries(layersOf(layers, kind).map(({ about, scope_id }) => [scope_id, about])))

/** Every combination of words that a key under these layers can have. Few layers have different words about a guardrail. */
const possibleWords = (layers: Layers): ReadonlyArray<string> => {
  const wordsOf = (kind: string) => ["", ...new Set(layersOf(layers, kind).map(({ about }) => about))]
  const byTeam = wordsOf("team").flatMap((ofTeam) => possibleOwn.map((own) => `${ofTeam}/${own}`))
  return wordsOf("project").flatMap((ofProject) => byTeam.map((words) => `${ofProject}/${words}`))
}

const possibleOwn = allSelections
  .reduce<ReadonlyArray<ReadonlyArray<string>>>(
    (sets, selection) => sets.flatMap((set) => [set, [...set, selection]]),
    [[]]
  )
  .map((set) => set.join(","))

const catalogueRows = computedRows(Schema.Struct({ enabled: Schema.Boolean, default_on: Schema.Boolean }))
const LayerRow = Schema.Struct({
  id: Schema.String,
  kind: Schema.String,
  scope_id: Schema.NullOr(Schema.String),
  scope_name: Schema.NullOr(Schema.String),
  about: Schema.String
})
type Layers = ReadonlyArray<typeof LayerRow.Type>
const layerRows = computedRows(LayerRow)
const groupRows = computedRows(Schema.Struct({ about: Schema.String, count: Count }))
const keyRows = storedRows(
  Schema.Struct({
    id: Schema.String,
    name: Schema.NullOr(Schema.String),
    key_prefix: Schema.String,
    project_id: Schema.NullOr(Schema.String),
    project_name: Schema.NullOr(Schema.String),
    team_id: Schema.NullOr(Schema.String),
    about: Schema.String
  }),
  { table: "api_keys", key: ["id"] }
)
