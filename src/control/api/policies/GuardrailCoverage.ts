import { Schema, Struct } from "effect"
import { Cursor, Id, PageLimit } from "../schema/Fields.ts"

/** A policy selects a guardrail in these ways. `configured`: the policy has a configuration of its own for it. */
export const GuardrailSelection = Schema.Literals(["mandatory", "optional", "forbidden", "configured"])
export type GuardrailSelection = typeof GuardrailSelection.Type

const Counted = Schema.Int

const outcomes = {
  /** Every request passes the guardrail, because a policy demands it. */
  mandatory: Counted,
  /** Every request passes the guardrail, because it is on by default. */
  by_default: Counted,
  /** A request may ask for the guardrail. */
  optional: Counted,
  /** A policy forbids the guardrail, and requests pass without it. */
  forbidden: Counted,
  /**
   * The requests are refused: one policy demands the guardrail and one forbids it, one and the same configures and forbids
   * it, or it is demanded and disabled.
   */
  refused: Counted,
  none: Counted
}

/** The guardrail treats the requests of a key in one of these ways. */
export const CoverageOutcome = Schema.Literals(Struct.keys(outcomes))
export type CoverageOutcome = typeof CoverageOutcome.Type

/**
 * Counts the usable keys by what their own policies and the layers of their project and team say of a guardrail. Layers of
 * a route or model concern some of a key's requests only, so they are listed and not counted.
 */
export const GuardrailCoverage = Schema.Struct({
  keys: Schema.Struct(outcomes),
  /** The layers in force that name the guardrail. */
  layers: Schema.Array(
    Schema.Struct({
      id: Id,
      kind: Schema.String,
      scope_id: Schema.NullOr(Schema.String),
      /** The name of the project; otherwise `scope_id`. */
      scope_name: Schema.NullOr(Schema.String),
      selections: Schema.Array(GuardrailSelection)
    })
  )
})
export type GuardrailCoverage = typeof GuardrailCoverage.Type

export const CoveredKeysQuery = Schema.Struct({
  /** Without it the list has all usable keys. */
  outcome: Schema.optionalKey(CoverageOutcome),
  limit: Schema.optionalKey(PageLimit),
  cursor: Schema.optionalKey(Cursor)
})
export type CoveredKeysQuery = typeof CoveredKeysQuery.Type

export const CoveredKey = Schema.Struct({
  id: Id,
  name: Schema.NullOr(Schema.String),
  key_prefix: Schema.String,
  project_id: Schema.NullOr(Id),
  project_name: Schema.NullOr(Schema.String),
  team_id: Schema.NullOr(Schema.String),
  outcome: CoverageOutcome,
  /** The key's own policy selects the guardrail so. Empty if it does not name it. */
  selections: Schema.Array(GuardrailSelection)
})
export type CoveredKey = typeof CoveredKey.Type
