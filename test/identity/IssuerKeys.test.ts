import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import type { IdentityProvider } from "../../src/identity/IdentityProvider.ts"
import * as IssuerKeys from "../../src/identity/IssuerKeys.ts"
import * as Issuer from "../gateway/Issuer.ts"

const provider: IdentityProvider = {
  discoveryUrl: Issuer.discoveryUrl,
  issuer: "https://issuer.test/tenant-1/v2.0",
  audience: "api://gateway",
  algorithms: ["RS256"],
  keysTtlMs: 300_000
}

describe("IssuerKeys", () => {
  it.effect("an unknown key id replaces the key set only if the provider publishes other keys", () =>
    Effect.gen(function* () {
      const signer = yield* Issuer.signingKey()
      const issuer = Issuer.make(signer)
      const keys = IssuerKeys.make(provider, { fetch: issuer.fetch }, yield* Effect.scope)
      const first = yield* keys.setFor(signer.kid)
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(yield* keys.setFor("unknown"), first)
      assert.strictEqual(keys.currentSet(5_000), first)
      assert.lengthOf(issuer.requests, 4)
      issuer.keys = [signer, yield* Issuer.signingKey("next")]
      yield* TestClock.adjust("5 seconds")
      assert.notStrictEqual(yield* keys.setFor("next"), first)
      assert.isTrue(keys.currentSet(10_000)?.kids.has("next"))
    })
  )
})
