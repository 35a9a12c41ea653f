import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as fc from "fast-check"
import {
  isOperational,
  maxEndpoints,
  parse,
  pricingAfterSync,
  without
} from "../../../src/control/services/OpenApiDocument.ts"
import { EndpointMethod } from "../../../src/policy/routes/Service.ts"

const refusal = (document: unknown) => {
  const result = parse(typeof document === "string" ? document : JSON.stringify(document))
  return Result.isFailure(result) ? result.failure : undefined
}

describe("parse", () => {
  it("takes OpenAPI 3 of any minor version, and reads what it needs of it", () => {
    const document = {
      openapi: "3.0.3",
      info: { title: "  A\tB ", version: "1" },
      paths: {
        "x-note": "not a path",
        "/a": { summary: "of the item", get: {}, trace: {}, options: { operationId: "o" }, parameters: [] },
        "/b": { $ref: "#/components/pathItems/B" }
      },
      components: { pathItems: { B: { post: { operationId: "b", summary: "s".repeat(2_000) } } } }
    }
    const parsed = parse(JSON.stringify(document))
    assert(Result.isSuccess(parsed))
    assert.deepStrictEqual([parsed.success.title, parsed.success.version], ["A B", "1"])
    assert.deepStrictEqual(
      parsed.success.endpoints.map(({ method, operation_id, path_template, summary }) => [
        method,
        path_template,
        operation_id,
        summary?.length ?? null
      ]),
      [
        ["GET", "/a", null, null],
        ["OPTIONS", "/a", "o", null],
        ["POST", "/b", "b", 1_024]
      ]
    )
  })

  it("says what is wrong with anything else", () => {
    const operations = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`/p${i}`, { get: {} }]))
    const cases: ReadonlyArray<readonly [unknown, RegExp]> = [
      ["", /not a JSON object/],
      ["[]", /not (a JSON object|OpenAPI 3)/],
      ["null", /not a JSON object/],
      [{ swagger: "2.0" }, /not OpenAPI 3/],
      [{ openapi: "4.0.0" }, /not OpenAPI 3/],
      [{ openapi: 3.1 }, /not OpenAPI 3/],
      [{ openapi: "3.1.0", paths: "none" }, /paths that are not an object/],
      [{ openapi: "3.1.0", paths: { a: {} } }, /"a"/],
      [{ openapi: "3.1.0", paths: { "/a//b": {} } }, /the invalid path/],
      [{ openapi: "3.1.0", paths: { "/a": null } }, /an unreadable path item/],
      [{ openapi: "3.1.0", paths: { "/a": { $ref: "other.json" } } }, /an unreadable path item/],
      [{ openapi: "3.1.0", paths: { "/a/{x}": { get: {} }, "/a/{y}": { get: {} } } }, /GET "\/a\/\{y\}" twice/],
      [{ openapi: "3.1.0", paths: operations(maxEndpoints + 1) }, /more than 500 endpoints/]
    ]
    for (const [document, reason] of cases) assert.match(refusal(document) ?? "", reason)
    assert.isUndefined(refusal({ openapi: "3.1.0", paths: operations(maxEndpoints) }))
    assert.isUndefined(refusal({ openapi: "3.1.0" }))
  })

  it("is total", () => {
    const document = fc.record({ openapi: fc.constant("3.1.0"), info: fc.jsonValue(), paths: fc.jsonValue() })
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.json(),
          document.map((value) => JSON.stringify(value))
        ),
        (text) => void parse(text)
      )
    )
  })
})

it("knows the endpoints of operation by whole segments", () => {
  for (const path of ["/health", "/history", "/events", "/events/a", "/broker/dlq/x", "/svc/x", "/executions/{id}"]) {
    assert.isTrue(isOperational(path), path)
  }
  for (const path of ["/", "/healthy", "/health/deep", "/eventsource", "/broker", "/api/status", "/svcs"]) {
    assert.isFalse(isOperational(path), path)
  }
})

const endpoint = fc.record({
  method: fc.constantFrom(...EndpointMethod.literals),
  path_template: fc.constantFrom("/a", "/a/{x}", "/a/{y}", "/health", "/events/{id}", "/b/{z}/c"),
  operation_id: fc.constant(null),
  summary: fc.constant(null)
})
const endpoints = fc
  .array(endpoint, { maxLength: 8 })
  .map((all) => all.map((one) => ({ ...one, svc_default: isOperational(one.path_template) })))
const rules = endpoints.map((all) =>
  all.map(({ method, path_template }) => ({
    method,
    path_template,
    operation_id: null,
    cost_mode: "fixed" as const,
    estimated_cost_usd: 1
  }))
)

describe("priced", () => {
  it("keeps every price, adds only free ones, and none the second time", () => {
    fc.assert(
      fc.property(rules, endpoints, endpoints, (before, known, now) => {
        const after = pricingAfterSync(before, known, now)
        assert.deepStrictEqual(after.slice(0, before.length), before)
        for (const added of after.slice(before.length)) {
          assert.strictEqual(added.cost_mode, "none")
          assert.isTrue(isOperational(added.path_template))
          assert.deepStrictEqual(without([added], [...before, ...known]), [added])
        }
        assert.deepStrictEqual(pricingAfterSync(after, now, now), after)
      })
    )
  })
})
