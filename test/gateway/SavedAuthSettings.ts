import { createHmac } from "node:crypto"
import { Effect } from "effect"
import type { AuthSettings } from "../../src/policy/AuthSettings.ts"
import { Database } from "../../src/services/Database.ts"
import * as Changes from "../../src/state/Changes.ts"
import * as Issuer from "./Issuer.ts"

const secret = "trusted-gateway-secret"

const settings = {
  svc_key_header: "X-Svc-Key",
  identity_enabled: true,
  tenant_id: "tenant-1",
  audience: "api://gateway",
  issuer: "https://issuer.test/tenant-1/v2.0",
  oidc_discovery_url: Issuer.discoveryUrl,
  required_scope: "Models.Use",
  required_role: "Reader",
  allowed_groups: ["group-1", "group-9"],
  accepted_algorithms: ["RS256"],
  jwks_cache_ttl_seconds: 300,
  clock_skew_seconds: 60,
  trusted_gateway_header_enabled: false,
  sealed_secret: `clear.${secret}`
}

export type Changed = Partial<Record<keyof AuthSettings, string | boolean | number | ReadonlyArray<string>>>

/** Settings, as an operator saves them. */
export const save = (changed: Changed) =>
  Effect.gen(function* () {
    const { sql, transaction } = yield* Database
    yield* transaction(
      Effect.gen(function* () {
        yield* sql`DELETE FROM gateway_auth_settings`
        yield* sql`INSERT INTO gateway_auth_settings ${sql.insert({ ...settings, ...changed })}`
        yield* Changes.publish({ _tag: "Configuration" })
      })
    )
  })

/**
 * The pair of headers of a gateway that is trusted, as the settings accept it unless `stated` or `by` say otherwise.
 */
export const signed = (stated: Readonly<Record<string, unknown>> = {}, by: string = secret) => {
  const all = { tenant_id: "tenant-1", scopes: ["Models.Use"], roles: ["Reader"], groups: ["group-9"], ...stated }
  const identity = Buffer.from(JSON.stringify(all)).toString("base64url")
  const signature = createHmac("sha256", by).update(identity).digest("base64url")
  return ["X-Trusted-Gateway-Identity", identity, "X-Trusted-Gateway-Signature", signature]
}
