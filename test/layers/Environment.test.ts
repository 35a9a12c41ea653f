import { assert, describe, it } from "@effect/vitest"
import { Option, Redacted, Result } from "effect"
import * as Environment from "../../layers/Environment.ts"

describe("RABBITMQ_URL", () => {
  const read = (value: string) =>
    Result.match(Environment.read({ RABBITMQ_URL: value }), {
      onFailure: (mistakes) => mistakes.map(({ message, variable }) => `${variable} ${message}`).join(),
      onSuccess: ({ rabbitmqUrls }) => Option.getOrElse(rabbitmqUrls, () => []).map(Redacted.value)
    })

  it("is one URL, or those of a cluster's nodes in the order in which they are tried", () => {
    assert.deepStrictEqual(read(" "), [])
    assert.deepStrictEqual(read("amqp://a:5672"), ["amqp://a:5672"])
    assert.deepStrictEqual(read("amqp://u:p%2Cw@a/v , amqps://b"), ["amqp://u:p%2Cw@a/v", "amqps://b"])
  })

  it.each(["http://a", "amqp://a,b:5672", "amqp://a,", ",amqp://a", "amqp://u:canary,x@a", "amqp:"])(
    "refuses %s, and says what it must be",
    (value) => {
      const refusal = String(read(value))
      assert.match(refusal, /^RABBITMQ_URL must be a URL of the form amqp:.*, or several with commas between them/)
      assert.notInclude(refusal, "canary")
    }
  )
})

describe("the limits that routes begin with", () => {
  const limitsOf = (environment: Environment.Environment) =>
    Result.map(Environment.read(environment), ({ routeLimits }) => routeLimits)

  it("are those that the environment has", () => {
    assert.deepStrictEqual(limitsOf({}), Result.succeed({}))
    assert.deepStrictEqual(
      limitsOf({ GATEWAY_DEFAULT_TIMEOUT_MS: "600000", GATEWAY_DEFAULT_MAX_RESPONSE_BODY_BYTES: "104857600" }),
      Result.succeed({ timeoutMs: 600_000, maxResponseBodyBytes: 104_857_600 })
    )
  })

  it.each(["GATEWAY_DEFAULT_MAX_REQUEST_BODY_BYTES", "GATEWAY_DEFAULT_MAX_RESPONSE_BODY_BYTES"])(
    "are refused beyond what a route may have: %s",
    (variable) => {
      const message = "must be a whole number from 1 to 104857600"
      for (const value of ["0", "104857601", "1 MiB"]) {
        assert.deepStrictEqual(limitsOf({ [variable]: value }), Result.fail([{ variable, message }]))
      }
    }
  )
})
