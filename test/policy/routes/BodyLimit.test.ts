import { assert, describe, it } from "@effect/vitest"
import * as BodyLimit from "../../../src/policy/routes/BodyLimit.ts"

describe("a limit on bodies", () => {
  const route = {
    maxRequestBodyBytes: 100,
    maxResponseBodyBytes: 200,
    limitsStreams: false,
    limitsSetBy: "the route"
  } as const

  it("is the stricter of the route's and the key's", () => {
    assert.deepStrictEqual(BodyLimit.ofRequests(route, null), { bytes: 100, setBy: "the route" })
    assert.deepStrictEqual(BodyLimit.ofRequests(route, 100), { bytes: 100, setBy: "the route" })
    assert.deepStrictEqual(BodyLimit.ofRequests(route, 99), { bytes: 99, setBy: "this key's policy" })
  })

  it("is not the route's for event streams, unless an operator has set it", () => {
    const unlimited = { bytes: Number.POSITIVE_INFINITY, setBy: "the route" }
    assert.deepStrictEqual(BodyLimit.ofResponses(route, null).stream, unlimited)
    assert.deepStrictEqual(BodyLimit.ofResponses(route, 500), {
      whole: { bytes: 200, setBy: "the route" },
      stream: { bytes: 500, setBy: "this key's policy" }
    })
    const { stream, whole } = BodyLimit.ofResponses({ ...route, limitsStreams: true }, 500)
    assert.deepStrictEqual(stream, whole)
  })

  it.each([
    ["the route", "max_request_body_bytes of the route", "PATCH /admin-ui/admin/routes/config"],
    ["the wildcard", "max_request_body_bytes of the wildcard", "PATCH /admin-ui/admin/providers/upstream-passthrough"],
    ["the service", "max_body_bytes of the service", "PATCH /admin-ui/admin/services/{name}"],
    ["the environment", "GATEWAY_DEFAULT_MAX_REQUEST_BODY_BYTES of the environment", "that variable"]
  ] as const)("of %s says who set it, and what raises it", (setBy, whose, by) => {
    const message = BodyLimit.requestTooLarge({ bytes: 5, setBy })
    const end = `Send a smaller body, or ask an operator to raise the limit: ${by}.`
    assert.strictEqual(message, `The request body is larger than 5 bytes (${whose}). ${end}`)
  })
})
