import { assert, describe, it } from "@effect/vitest"
import * as Request from "../../../src/gateway/request/Request.ts"

describe("Request", () => {
  it.each([
    ["/v1/messages", [], "b"],
    ["/v1/messages/batches/b1", [], "b"],
    ["/v1/chat/completions", [], "a"],
    ["/v1/models", [], "a"],
    ["/v1/models", ["Anthropic-Version", "2023-06-01"], "b"],
    ["/nowhere", [], "a"]
  ])("answers %s with headers %j in the shape of family %s", (target, headers, family) => {
    assert.strictEqual(Request.familyOf(target, headers), family)
  })
})
