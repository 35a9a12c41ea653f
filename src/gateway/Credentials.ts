import { Option, type Redacted } from "effect"
import { missing, type StoredCredential } from "./model/StoredCredential.ts"

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
export const resolve = (candidates: Candidates): StoredCredential => {
  const { keyMapping, projectMapping, providerDefault, startupFallback } = candidates
  if (keyMapping._tag !== "Missing") return keyMapping
  if (projectMapping._tag !== "Missing") return projectMapping
  if (providerDefault._tag !== "Missing") return providerDefault
  return Option.isNone(startupFallback) ? missing : { _tag: "Present", credential: startupFallback.value }
}
