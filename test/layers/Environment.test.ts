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
