import { createHmac } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Redacted, Result } from "effect"
import fc from "fast-check"
import type { IdentityRequirements } from "../../../src/gateway/auth/Identity.ts"
import * as TrustedHeaders from "../../../src/gateway/auth/TrustedHeaders.ts"

const now = Date.parse("2026-11-20T12:00:00Z")
const secret = Redacted.make("a secret of some length")
const open: IdentityRequirements = {
  tenantId: null,
  requiredScope: null,
  requiredRole: null,
  allowedGroups: [],
  skewMs: 60_000
}

const pair = (text: string, by = Redacted.value(secret)): ReadonlyArray<string> => [
  "X-Trusted-Gateway-Identity",
  text,
  "X-Trusted-Gateway-Signature",
  createHmac("sha256", by).update(text).digest("base64url")
]
const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url")
const statement = { tenant_id: "tenant-1", scopes: ["s"], roles: ["r"], groups: ["g"] }
const verify = (headers: ReadonlyArray<string>, rules: Partial<IdentityRequirements> = {}) =>
  Result.match(TrustedHeaders.verify(headers, secret, { ...open, ...rules }, now), {
    onSuccess: ({ tenantId }) => tenantId,
    onFailure: ({ code }) => code
  })

describe("Trusted headers", () => {
  it("golden: the signature is the HMAC-SHA256 of the header's text, in unpadded base64url", () => {
    const headers = [
      "x-trusted-gateway-identity",
      "eyJ0ZW5hbnRfaWQiOiJ0ZW5hbnQtMSJ9",
      "x-trusted-gateway-signature",
      createHmac("sha256", "k").update("eyJ0ZW5hbnRfaWQiOiJ0ZW5hbnQtMSJ9").digest("base64url")
    ]
    const verified = TrustedHeaders.verify(headers, Redacted.make("k"), open, now)
    assert.deepStrictEqual(
      verified,
      Result.succeed({
        source: "trusted_gateway" as const,
        tenantId: "tenant-1",
        subject: undefined,
        scopes: [],
        roles: [],
        groups: []
      })
    )
  })

  it("any text that is changed, and any other signature, is refused", () => {
    const [name = "", text = "", second = "", signature = ""] = pair(encoded(statement))
    assert.strictEqual(verify([name, text, second, signature]), "tenant-1")
    const letter = fc.constantFrom(..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/= .")
    fc.assert(
      fc.property(fc.boolean(), fc.nat(), letter, (ofText, at, by) => {
        const whole = ofText ? text : signature
        const place = at % whole.length
        const changed = whole.slice(0, place) + by + whole.slice(place + 1)
        fc.pre(changed !== whole)
        const headers = ofText ? [name, changed, second, signature] : [name, text, second, changed]
        assert.strictEqual(verify(headers), "untrusted_gateway_identity")
      }),
      { numRuns: 500 }
    )
  })

  it.each([
    ["no JSON", Buffer.from("tenant").toString("base64url")],
    ["another kind of JSON", encoded(["tenant-1"])],
    ["no tenant", encoded({ ...statement, tenant_id: undefined })],
    ["a tenant that is no text", encoded({ ...statement, tenant_id: 1 })],
    ["scopes that are none", encoded({ ...statement, scopes: "s" })],
    ["padding", `${encoded({ tenant_id: "tenant" })}=`],
    ["the alphabet of plain base64", Buffer.from('{"tenant_id":"~~~???"}').toString("base64")],
    ["nothing", ""]
  ])("a signature under %s proves nothing", (_, text) => {
    assert.strictEqual(verify(pair(text)), "untrusted_gateway_identity")
  })

  it.each<[stated: object, trusted: boolean]>([
    [{}, true],
    [{ issued_at: null, expires_at: null }, true],
    [{ expires_at: now / 1000 }, true],
    [{ expires_at: now / 1000 - 59.5 }, true],
    [{ expires_at: now / 1000 - 60 }, false],
    [{ expires_at: "2026-11-20T11:59:01Z" }, true],
    [{ expires_at: "2026-11-20T12:59:00+01:00" }, false],
    [{ expires_at: "tomorrow" }, false],
    [{ expires_at: "" }, false],
    [{ expires_at: true }, false],
    [{ issued_at: now / 1000 + 60 }, true],
    [{ issued_at: now / 1000 + 61 }, false],
    [{ issued_at: "never" }, false],
    [{ issued_at: now / 1000, expires_at: now / 1000 + 1 }, true]
  ])("%j is in time: %s", (stated, trusted) => {
    assert.strictEqual(
      verify(pair(encoded({ ...statement, ...stated }))),
      trusted ? "tenant-1" : "untrusted_gateway_identity"
    )
  })

  it.each<[rules: Partial<IdentityRequirements>, outcome: string]>([
    [{ tenantId: "tenant-1" }, "tenant-1"],
    [{ tenantId: "tenant-2" }, "untrusted_gateway_identity"],
    [{ requiredScope: "s", requiredRole: "r", allowedGroups: ["x", "g"] }, "tenant-1"],
    [{ requiredScope: "x" }, "insufficient_identity_authorization"],
    [{ requiredRole: "x" }, "insufficient_identity_authorization"],
    [{ allowedGroups: ["x"] }, "insufficient_identity_authorization"]
  ])("under the rules %j: %s", (rules, outcome) => {
    assert.strictEqual(verify(pair(encoded(statement)), rules), outcome)
  })
})
