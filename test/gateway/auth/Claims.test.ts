import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import fc from "fast-check"
import * as Claims from "../../../src/gateway/auth/Claims.ts"
import type { IdentityRequirements } from "../../../src/gateway/auth/Identity.ts"
import type { ErrorCode } from "../../../src/gateway/GatewayError.ts"
import type { IdentityProvider } from "../../../src/identity/IdentityProvider.ts"

const now = Date.parse("2026-11-20T12:00:00Z")
const seconds = now / 1000

const provider: IdentityProvider = {
  discoveryUrl: "https://issuer.test/discovery",
  issuer: "https://issuer.test",
  audience: "api://gateway",
  algorithms: ["RS256"],
  keysTtlMs: 300_000
}
const rules: IdentityRequirements = {
  tenantId: "tenant-1",
  requiredScope: "use",
  requiredRole: "reader",
  allowedGroups: ["g1", "g2"],
  skewMs: 60_000
}
const good = {
  iss: "https://issuer.test",
  tid: "tenant-1",
  aud: "api://gateway",
  exp: seconds + 600,
  ver: "2.0",
  scp: "list use",
  roles: ["reader"],
  groups: ["g2"]
}
const codeOf = (claims: unknown, under: Partial<IdentityRequirements> = {}) =>
  Result.match(Claims.check(claims, provider, { ...rules, ...under }, now), {
    onSuccess: () => "proven" as const,
    onFailure: ({ code }) => code
  })

describe("Claims", () => {
  it.each<[changed: object, code: "proven" | ErrorCode]>([
    [{}, "proven"],
    [{ ver: "1.0", aud: ["other", "api://gateway"], nbf: seconds, iat: seconds }, "proven"],
    [{ iss: "https://issuer.test/" }, "invalid_identity_issuer"],
    [{ iss: undefined }, "invalid_identity_issuer"],
    [{ tid: "tenant-2" }, "invalid_identity_issuer"],
    [{ tid: undefined }, "invalid_identity_issuer"],
    [{ aud: "api://gateway/" }, "invalid_identity_audience"],
    [{ aud: ["other"] }, "invalid_identity_audience"],
    [{ aud: undefined }, "invalid_identity_audience"],
    [{ aud: { "api://gateway": true } }, "invalid_identity_audience"],
    [{ exp: seconds - 59 }, "proven"],
    [{ exp: seconds - 60 }, "expired_identity_token"],
    [{ exp: undefined }, "invalid_identity_token"],
    [{ exp: `${seconds + 600}` }, "invalid_identity_token"],
    [{ nbf: seconds + 60 }, "proven"],
    [{ nbf: seconds + 61 }, "invalid_identity_token"],
    [{ iat: seconds + 61 }, "invalid_identity_token"],
    [{ iat: "now" }, "invalid_identity_token"],
    [{ ver: "3.0" }, "invalid_identity_token"],
    [{ ver: 2 }, "invalid_identity_token"],
    [{ ver: undefined }, "invalid_identity_token"],
    [{ scp: "users" }, "insufficient_identity_authorization"],
    [{ scp: ["use"] }, "proven"],
    [{ scp: undefined }, "insufficient_identity_authorization"],
    [{ roles: "reader" }, "insufficient_identity_authorization"],
    [{ roles: [] }, "insufficient_identity_authorization"],
    [{ groups: ["g3"] }, "insufficient_identity_authorization"],
    [{ hasgroups: true }, "insufficient_identity_authorization"],
    [{ _claim_names: { groups: "src1" } }, "insufficient_identity_authorization"],
    [{ _claim_names: { other: "src1" } }, "proven"],
    // the order of the reference: what a token is comes before what it may
    [{ iss: "x", aud: "x", exp: 1 }, "invalid_identity_issuer"],
    [{ aud: "x", exp: 1 }, "invalid_identity_audience"],
    [{ exp: 1, ver: "x", roles: [] }, "expired_identity_token"]
  ])("with %j: %s", (changed, code) => {
    assert.strictEqual(codeOf({ ...good, ...changed }), code)
  })

  it.each([
    [{ ver: undefined }, "ver"],
    [{ exp: undefined }, "exp"],
    [{ nbf: seconds + 61 }, "nbf"]
  ])("with %j: the refusal names %s", (changed, claim) => {
    const refused = Claims.check({ ...good, ...changed }, provider, rules, now)
    assert(Result.isFailure(refused))
    assert.match(refused.failure.message, new RegExp(`\\b${claim}\\b`))
  })

  it("asks for no scope, role or group that is not configured, also of a token with too many groups", () => {
    const bare = { ...good, scp: undefined, roles: undefined, groups: undefined, hasgroups: true }
    assert.strictEqual(codeOf(bare, { requiredScope: null, requiredRole: null, allowedGroups: [] }), "proven")
  })

  it("holds until the token expires, and the skew after that", () => {
    const proven = Claims.check({ ...good, sub: "user-1" }, provider, rules, now)
    assert(Result.isSuccess(proven))
    assert.deepInclude(proven.success, { expiresAt: now + 660_000 })
    assert.deepInclude(proven.success.identity, {
      source: "identity_provider",
      tenantId: "tenant-1",
      subject: "user-1"
    })
  })

  it("takes any JSON for what it is, and never fails otherwise", () => {
    fc.assert(
      fc.property(
        fc.jsonValue(),
        fc.constantFrom(...Object.keys(good), "nbf", "iat", "_claim_names"),
        (value, name) => {
          assert.isString(codeOf(value))
          assert.isString(codeOf({ ...good, [name]: value }))
        }
      )
    )
  })
})
