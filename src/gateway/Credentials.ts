import { Option, type Redacted } from "effect"
import type { StoredCredential } from "./StoredCredential.ts"

export interface Candidates {
  /** Of enabled mappings only. */
  readonly keyMapping: StoredCredential
  readonly projectMapping: StoredCredential
  readonly providerDefault: StoredCredential
  readonly startupFallback: Option.Option<Redacted.Redacted>
}

/**
 * The specification's credential resolution order. A credential that is there and cannot be read ends the search: the
 * next one might open more than the operator meant to.
 */
export const resolve = (candidates: Candidates): StoredCredential =>
  [candidates.keyMapping, candidates.projectMapping, candidates.providerDefault].find(
    ({ _tag }) => _tag !== "Missing"
  ) ??
  Option.match(candidates.startupFallback, {
    onNone: () => ({ _tag: "Missing" }),
    onSome: (credential) => ({ _tag: "Present", credential })
  })
