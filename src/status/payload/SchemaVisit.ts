import type { JsonObject } from "../../messaging/envelope/Envelope.ts"
import type { Place } from "./Place.ts"
import type { SchemaPatterns } from "./SchemaPatterns.ts"

/** `unsure`: a part of the schema that was not checked decides whether the value fits. */
export type Verdict = "fits" | "fails" | "unsure"

export const worse = (one: Verdict, other: Verdict): Verdict =>
  one === "fails" || other === "fails" ? "fails" : one === "unsure" ? one : other

/** A value that is compared with a schema. */
export interface Visit {
  readonly schema: JsonObject
  readonly value: unknown
  readonly at: Place | undefined
  /** False where only the verdict counts, as for one of several forms. */
  readonly tells: boolean
}

/** The part of the check that the keywords of a schema use. */
export interface Check {
  readonly patterns: SchemaPatterns
  /** True once there are more mistakes than are told. */
  readonly hasMore: boolean
  /** True once the check has taken too many steps. */
  readonly isSpent: boolean
  readonly compare: (schema: unknown, visit: Omit<Visit, "schema">) => Verdict
  /** Compares with what a `$ref` leads to. */
  readonly follow: (reference: unknown, visit: Visit) => Verdict
  /** Returns the part of the schema at a JSON pointer such as `#/$defs/Mail`, or `undefined`. */
  readonly resolve: (reference: unknown) => unknown
  /** Returns the names of an object's members. They are listed once, because large objects take long for that. */
  readonly namesOf: (object: JsonObject) => ReadonlyArray<string>
  readonly fail: (problem: string, at: Place | undefined, tells: boolean) => "fails"
  /** Names a part that is not checked. */
  readonly leaveOut: (what: string, at: Place | undefined) => "unsure"
  /** Returns false if that is more steps than are left. */
  readonly spend: (steps: number, at: Place | undefined) => boolean
}

/** Compares a value with one keyword of a schema. Keywords for another type than the value's accept the value. */
export type Keyword = (visit: Visit, argument: unknown, check: Check) => Verdict
