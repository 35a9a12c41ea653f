import { assert, describe, it } from "@effect/vitest"
import { Option, Redacted } from "effect"
import { type CallerHeaders, refusalOf } from "../../../src/status/http/BearerToken.ts"

const caller = (given: Partial<CallerHeaders>): CallerHeaders => ({
  authorization: undefined,
  host: "127.0.0.1:8082",
  origin: undefined,
  ...given
})
const statusFor = (access: Parameters<typeof refusalOf>[0], given: Partial<CallerHeaders>) =>
  refusalOf(access, caller(given))?.status

describe("with SVC_STATUS_TOKEN", () => {
  const access = Option.some(Redacted.make("a-token"))

  it("lets its bearer in, from wherever", () => {
    for (const authorization of ["Bearer a-token", "bearer  a-token "]) {
      assert.isUndefined(
        statusFor(access, { authorization, host: "status.example.com", origin: "https://example.com" })
      )
    }
  })

  it("lets in nobody else, not even this machine", () => {
    for (const authorization of [
      undefined,
      "",
      "a-token",
      "Basic a-token",
      "Bearer",
      "Bearer a-toke",
      "Bearer A-token"
    ]) {
      assert.strictEqual(statusFor(access, { authorization }), 401)
    }
  })
})

describe("without a token", () => {
  const access = Option.none()

  it("lets in what asks for a loopback address or for localhost", () => {
    for (const host of ["127.0.0.1:8082", "127.8.8.8", "localhost:1", "[::1]:8082"]) {
      assert.isUndefined(statusFor(access, { host }))
      assert.isUndefined(statusFor(access, { host, origin: "http://localhost:8081" }))
    }
  })

  it("refuses a name that leads to this machine, and pages of other origins", () => {
    for (const host of [
      undefined,
      "",
      "attacker.example",
      "127.0.0.1.attacker.example",
      "localhost.attacker.example:80"
    ]) {
      assert.strictEqual(statusFor(access, { host }), 403)
    }
    for (const origin of ["https://attacker.example", "null", "http://127.0.0.1.attacker.example", ""]) {
      assert.strictEqual(statusFor(access, { origin }), 403)
    }
  })
})
