import { Context, Option, type Redacted } from "effect"
import type { Scope } from "../api/schema/Security.ts"

/** This installation as a client of the identity provider, at which operators sign in with a browser. */
export interface OidcClient {
  readonly id: string
  readonly secret: Redacted.Redacted
  /** The claim of the id token that lists the person's groups. */
  readonly groupsClaim: string
  /** The scopes of the members of each group. Other people may not sign in. */
  readonly scopesOfGroups: ReadonlyArray<{ readonly group: string; readonly scopes: ReadonlyArray<Scope> }>
  /** OAuth scopes that are requested beside `openid`, such as one that adds the groups to the token. */
  readonly requestedScopes: ReadonlyArray<string>
}

/** The client of the environment variables `IDENTITY_SIGN_IN_*`. */
export const StartupOidcClient = Context.Reference<Option.Option<OidcClient>>("svc/control/StartupOidcClient", {
  defaultValue: () => Option.none()
})

export const scopesOf = (client: OidcClient, groups: ReadonlyArray<string>): ReadonlyArray<Scope> => [
  ...new Set(client.scopesOfGroups.flatMap(({ group, scopes }) => (groups.includes(group) ? scopes : [])))
]
