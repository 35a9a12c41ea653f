import { Option, type Redacted } from "effect"

export type CredentialSource = "key_mapping" | "project_mapping" | "provider_default" | "startup_fallback" | "client"

export interface Candidates {
  /** Credentials of enabled mappings only. */
  readonly keyMapping: Option.Option<Redacted.Redacted>
  readonly projectMapping: Option.Option<Redacted.Redacted>
  readonly providerDefault: Option.Option<Redacted.Redacted>
  readonly startupFallback: Option.Option<Redacted.Redacted>
}

export interface Resolved {
  readonly credential: Redacted.Redacted
  readonly source: CredentialSource
}

/** The specification's credential resolution order. */
export const resolve = (candidates: Candidates): Option.Option<Resolved> =>
  Option.firstSomeOf(
    (
      [
        ["key_mapping", candidates.keyMapping],
        ["project_mapping", candidates.projectMapping],
        ["provider_default", candidates.providerDefault],
        ["startup_fallback", candidates.startupFallback]
      ] as const
    ).map(([source, candidate]) => Option.map(candidate, (credential) => ({ credential, source })))
  )
