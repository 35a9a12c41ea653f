import { assert, describe, it } from "@effect/vitest"
import * as TextRoutes from "../../src/gateway/TextRoutes.ts"

describe("the text route of a request", () => {
  it.each([
    ["/v1/completions", "completions"],
    ["/v1/completions?api-version=1", "completions"],
    ["/openai/v1/chat/completions", "chat"],
    ["/v1/responses/resp_1?stream=true", "responses"],
    ["/v1/messages", "messages"],
    ["/v1/embeddings/", "embeddings"],
    ["/v1/audio/speech", "other"],
    ["/v1/threads/completions/x", "other"]
  ] as const)("at a compatible upstream follows the path %s", (target, route) =>
    assert.strictEqual(TextRoutes.of({ routeId: "compat", target }), route)
  )

  it("of the gateway's own routes does not depend on the path", () => {
    assert.strictEqual(
      TextRoutes.of({ routeId: "message-batch-results", target: "/v1/messages/batches/b/results" }),
      "message_batches"
    )
    assert.strictEqual(TextRoutes.of({ routeId: "service", target: "/v1/completions" }), "other")
  })
})
