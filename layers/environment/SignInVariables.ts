import { Option } from "effect"
import type { OidcClient } from "../../src/control/sign-in/OidcClient.ts"
import * as Kinds from "./VariableKinds.ts"
import type { Variables } from "./Variables.ts"

/** Browsers come back from the identity provider to `GATEWAY_CONTROL_ORIGIN`, so that the sign-in needs it. */
export const readOidcClient = (
  variables: Variables,
  controlOrigin: Option.Option<string>
): Option.Option<OidcClient> => {
  const id = variables.optional("IDENTITY_SIGN_IN_CLIENT_ID", Kinds.IdentityText)
  const secret = variables.optional("IDENTITY_SIGN_IN_CLIENT_SECRET", Kinds.Credential)
  if (Option.isSome(id) !== Option.isSome(secret)) {
    variables.reject(
      Option.isSome(id) ? "IDENTITY_SIGN_IN_CLIENT_SECRET" : "IDENTITY_SIGN_IN_CLIENT_ID",
      "is required: set both IDENTITY_SIGN_IN_CLIENT_ID and IDENTITY_SIGN_IN_CLIENT_SECRET, or neither"
    )
  }
  if (Option.isSome(id) && Option.isNone(controlOrigin)) {
    variables.reject("GATEWAY_CONTROL_ORIGIN", "is required, because IDENTITY_SIGN_IN_CLIENT_ID is set")
  }
  return Option.map(Option.all({ id, secret }), (client) => ({
    ...client,
    groupsClaim: variables.withDefault("IDENTITY_SIGN_IN_GROUPS_CLAIM", Kinds.IdentityText, "groups"),
    scopesOfGroups: variables.withDefault("IDENTITY_SIGN_IN_GROUP_SCOPES", Kinds.GroupScopes, []),
    requestedScopes: variables.withDefault("IDENTITY_SIGN_IN_REQUESTED_SCOPES", Kinds.OAuthScopes, [])
  }))
}
