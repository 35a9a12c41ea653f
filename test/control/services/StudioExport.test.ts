import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { serviceNameOf, toStudioService } from "../../../src/control/services/StudioExport.ts"
import { serviceNamePattern } from "../../../src/policy/routes/Service.ts"

describe("serviceNameOf", () => {
  const golden = [
    ["payments", "payments"],
    ["Payments API", "payments-api"],
    ["  __Crème brûlée__ v2  ", "creme-brulee-v2"],
    ["a".repeat(80), "a".repeat(64)],
    [`${"a".repeat(63)}-b`, "a".repeat(63)],
    ["UPPER_snake.dots/slashes", "upper-snake-dots-slashes"]
  ] as const
  for (const [text, name] of golden) it(`makes ${name} of ${text}`, () => assert.strictEqual(serviceNameOf(text), name))

  it("makes nothing of what has neither letters nor digits", () => {
    for (const text of ["", "---", "   ", "日本語", "🚀"]) assert.isUndefined(serviceNameOf(text))
  })

  it("always makes a DNS label, and leaves one as it is", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: "binary", maxLength: 200 }),
          fc.string({ unit: fc.constantFrom("a", "-", "B", "9", " ") })
        ),
        (text) => {
          const name = serviceNameOf(text)
          if (name === undefined) return
          assert.match(name, serviceNamePattern)
          assert.strictEqual(serviceNameOf(name), name)
        }
      )
    )
    fc.assert(
      fc.property(fc.stringMatching(serviceNamePattern), (name) => {
        // two hyphens side by side become one
        if (!name.includes("--")) assert.strictEqual(serviceNameOf(name), name)
      })
    )
  })
})

describe("mapped", () => {
  it("prefers the gateway's name, then the name, then the id; and the pattern that the studio gives", () => {
    const id = "svc_9"
    const nameOf = (row: object) => toStudioService({ studio_service_id: id, ...row }).name
    assert.strictEqual(nameOf({ gateway_service_name: "First", name: "second" }), "first")
    assert.strictEqual(nameOf({ gateway_service_name: "!!!", name: "second" }), "second")
    assert.strictEqual(nameOf({ name: null }), "svc-9")
    const patterns = [{ default_route_pattern: "/a/*", route_pattern: "/b" }, { route_pattern: "/b" }, {}].map(
      (row) => toStudioService({ studio_service_id: id, ...row }).route_pattern
    )
    assert.deepStrictEqual(patterns, ["/a/*", "/b", "/services/svc-9/*"])
  })

  it("says nothing that the studio did not say", () => {
    assert.deepStrictEqual(toStudioService({ studio_service_id: "x" }), {
      studio_service_id: "x",
      name: "x",
      display_name: null,
      environment: null,
      status: null,
      base_url: null,
      tags: [],
      route_pattern: "/services/x/*",
      import_request: {
        studio_service_id: "x",
        name: "x",
        project_id: null,
        route_pattern: "/services/x/*",
        upstream_base_url: null,
        health_check_path: null,
        health_check_method: "GET",
        allowed_methods: ["POST"],
        category: null,
        default_pricing: null
      }
    })
  })
})
