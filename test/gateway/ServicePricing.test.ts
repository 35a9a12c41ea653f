import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import type { ExchangeOutcome } from "../../src/gateway/usage/Billing.ts"
import { costOf } from "../../src/gateway/usage/ServiceBilling.ts"
import { nanosPerDollar } from "../../src/policy/Price.ts"
import * as ServicePricing from "../../src/policy/ServicePricing.ts"

type Row = Parameters<typeof ServicePricing.of>[0]

const pricing = (row: Partial<Row> = {}) =>
  ServicePricing.of({
    cost_mode: "fixed",
    estimated_cost_usd: 0.5,
    pricing_rules: [],
    endpoint_pricing_rules: [],
    openapi_endpoints: [],
    ...row
  })

const rule = (
  json_pointer: string,
  equals: string,
  estimated_cost_usd: number | null,
  more: Partial<Row["pricing_rules"][number]> = {}
) => ({ name: null, json_pointer, equals, cost_mode: "fixed" as const, estimated_cost_usd, ...more })

const endpoint = (
  method: "GET" | "POST",
  path_template: string,
  more: Partial<Row["endpoint_pricing_rules"][number]> = {}
) => ({
  method,
  path_template,
  operation_id: null,
  cost_mode: "fixed" as const,
  estimated_cost_usd: 1,
  ...more
})

const json = ServicePricing.selectJson
const nothing = ServicePricing.selectNothing
const answered = (costUsd?: number): ExchangeOutcome => ({
  _tag: "Answered",
  isComplete: true,
  observed: { reported: costUsd === undefined ? undefined : { usage: {}, costUsd }, estimatedOutput: 0 }
})

describe("the price of a request to a service", () => {
  it.each<[string, Partial<Row>, unknown, object]>([
    ["the service's", {}, {}, { cost_mode: "fixed", estimated_cost_usd: 0.5, by: "default", ruleName: undefined }],
    [
      "the first rule's that its body fits",
      { pricing_rules: [rule("/size", "s", 1), rule("/size", "l", 2, { name: "large" }), rule("/size", "l", 3)] },
      { size: "l" },
      { estimated_cost_usd: 2, by: "rule", ruleName: "large" }
    ],
    [
      "a rule's without a name",
      { pricing_rules: [rule("/size", "l", 2)] },
      { size: "l" },
      { estimated_cost_usd: 2, by: "rule", ruleName: undefined }
    ],
    [
      "the service's when no rule fits",
      { pricing_rules: [rule("/size", "l", 2)] },
      { size: "m" },
      { estimated_cost_usd: 0.5, by: "default" }
    ],
    [
      "its endpoint's",
      { endpoint_pricing_rules: [endpoint("POST", "/jobs/{id}", { operation_id: "run" })] },
      {},
      { estimated_cost_usd: 1, by: "rule", ruleName: "run" }
    ],
    [
      "its endpoint's, called by method and path",
      { endpoint_pricing_rules: [endpoint("POST", "/jobs/{id}")] },
      {},
      { ruleName: "POST /jobs/{id}" }
    ],
    [
      "the endpoint's with the most plain segments",
      {
        endpoint_pricing_rules: [
          endpoint("POST", "/{a}/{b}"),
          endpoint("POST", "/jobs/7"),
          endpoint("POST", "/jobs/{b}")
        ]
      },
      {},
      { ruleName: "POST /jobs/7" }
    ],
    [
      "the body's before the endpoint's",
      { endpoint_pricing_rules: [endpoint("POST", "/jobs/{id}")], pricing_rules: [rule("/size", "l", 2)] },
      { size: "l" },
      { estimated_cost_usd: 2 }
    ],
    [
      "nothing on a free endpoint, whatever the body says",
      {
        endpoint_pricing_rules: [endpoint("POST", "/jobs/{id}", { cost_mode: "none" })],
        pricing_rules: [rule("/size", "l", 2)]
      },
      { size: "l" },
      { cost_mode: "none", by: "rule", ruleName: "POST /jobs/{id}" }
    ],
    [
      "a rule's of a service that is free otherwise",
      { cost_mode: "none", estimated_cost_usd: null, pricing_rules: [rule("/size", "l", 2)] },
      { size: "l" },
      { cost_mode: "fixed", estimated_cost_usd: 2 }
    ]
  ])("is %s", (_, row, body, expected) => {
    assert.deepInclude(ServicePricing.resolve(pricing(row), "POST", "/jobs/7", json(body)), expected)
  })

  it.each([
    ["/a", { a: "x" }, "x"],
    ["/a", { a: 7 }, "7"],
    ["/a", { a: 0.1 }, "0.1"],
    ["/a", { a: true }, "true"],
    ["/a", { a: null }, undefined],
    ["/a", { a: {} }, undefined],
    ["/a/b/1", { a: { b: ["x", "y"] } }, "y"],
    ["/a~1b/c~0d", { "a/b": { "c~d": "x" } }, "x"],
    ["/~01", { "~1": "x" }, "x"],
    ["/toString", {}, undefined],
    ["/__proto__/x", {}, undefined],
    ["/a", [], undefined],
    ["/0", ["x"], "x"],
    ["/length", ["x"], undefined]
  ])("%s of %j is %s", (pointer, body, text) => {
    assert.strictEqual(json(body)(pointer), text)
  })

  it("of a form is of its fields, as members of the top level", () => {
    const select = ServicePricing.selectFields(new Map([["a/b", "x"]]))
    assert.deepStrictEqual([select("/a~1b"), select("/a/b"), select("/c")], ["x", undefined, undefined])
  })

  it.each<[string, Partial<Row>, unknown, number, boolean]>([
    ["the fixed price", {}, {}, 0.5, false],
    ["nothing for what is free", { cost_mode: "none" }, {}, 0, false],
    ["a rule's price", { pricing_rules: [rule("/size", "l", 2)] }, { size: "l" }, 2, false],
    ["what is set for an answer that says its price", { cost_mode: "passthrough" }, {}, 0.5, true],
    [
      "else the dearest that is written down",
      { cost_mode: "passthrough", estimated_cost_usd: null, pricing_rules: [rule("/a", "1", 2), rule("/a", "2", 3)] },
      {},
      3,
      true
    ],
    ["or nothing", { cost_mode: "passthrough", estimated_cost_usd: null }, {}, 0, true]
  ])("reserves %s", (_, row, body, usd, nanosEstimated) => {
    const of = pricing(row)
    const price = ServicePricing.resolve(of, "POST", "/x", json(body))
    assert.deepStrictEqual(ServicePricing.reservation(of, "POST", "/x", price), {
      nanos: usd * nanosPerDollar,
      nanosEstimated
    })
  })

  it("reserves for a body that is not known the dearest that it could be", () => {
    const prices = fc.array(fc.nat(1000), { maxLength: 5 })
    fc.assert(
      fc.property(fc.nat(1000), prices, (base, rules) => {
        const of = pricing({
          estimated_cost_usd: base,
          pricing_rules: rules.map((usd, index) => rule("/size", String(index), usd))
        })
        const { nanos } = ServicePricing.reservation(of, "POST", "/x", undefined)
        assert.strictEqual(nanos, Math.max(base, ...rules) * nanosPerDollar)
        for (const size of [...rules.keys(), "none"]) {
          const price = ServicePricing.resolve(of, "POST", "/x", json({ size: String(size) }))
          assert.isAtMost(ServicePricing.reservation(of, "POST", "/x", price).nanos, nanos)
        }
      })
    )
  })

  it("on a free endpoint is known without the body", () => {
    const rules = [rule("/a", "1", 2)]
    const free = pricing({
      endpoint_pricing_rules: [endpoint("GET", "/health", { cost_mode: "none" })],
      pricing_rules: rules
    })
    assert.deepStrictEqual(
      [
        ServicePricing.dependsOnBody(free, "GET", "/health"),
        ServicePricing.dependsOnBody(free, "POST", "/health"),
        ServicePricing.dependsOnBody(pricing(), "POST", "/x"),
        ServicePricing.reservation(free, "GET", "/health", undefined).nanos
      ],
      [false, true, false, 0]
    )
  })
})

describe("what a request to a service is charged", () => {
  const byRule = { pricing_rules: [rule("/size", "l", 2)] }
  const passing = { cost_mode: "passthrough" as const, estimated_cost_usd: null }
  const passingByRule = { pricing_rules: [rule("/size", "l", null, { cost_mode: "passthrough" })] }

  it.each<[Partial<Row>, ExchangeOutcome, number | null, string]>([
    [{}, answered(), 0.5, "service_default_fixed"],
    [{}, answered(9), 0.5, "service_default_fixed"],
    [byRule, answered(), 2, "service_pricing_rule_fixed"],
    [passing, answered(0.25), 0.25, "service_default_passthrough"],
    [passingByRule, answered(0.25), 0.25, "service_pricing_rule_passthrough"],
    [passing, answered(), null, "missing_upstream_cost"],
    [{ cost_mode: "none" }, answered(9), null, "none"],
    [{}, { _tag: "Nothing" }, null, "none"],
    [{}, { _tag: "Abandoned" }, 0.5, "service_default_fixed"],
    [passing, { _tag: "Abandoned" }, null, "missing_upstream_cost"]
  ])("%j, %j: $%s from %s", (row, outcome, usd, costSource) => {
    const price = ServicePricing.resolve(pricing(row), "POST", "/x", json({ size: "l" }))
    assert.deepStrictEqual(costOf(price, outcome), {
      costNanos: usd === null ? null : usd * nanosPerDollar,
      costSource
    })
  })

  it("is nothing that a body could say when nobody reads it", () => {
    assert.strictEqual(ServicePricing.resolve(pricing(byRule), "POST", "/x", nothing).by, "default")
  })
})

describe("an endpoint's template", () => {
  it.each([
    ["/jobs/{id}", "/jobs/7", true],
    ["/jobs/{id}", "/jobs/", false],
    ["/jobs/{id}", "/jobs/7/8", false],
    ["/jobs/{id}", "/jobs", false],
    ["/", "/", true],
    ["/jobs/{id}/log", "/jobs/7/log", true],
    ["/Jobs", "/jobs", false]
  ])("%s of %s: %s", (template, path, fits) => {
    const { endpointRules } = pricing({ endpoint_pricing_rules: [endpoint("GET", template)] })
    assert.strictEqual(ServicePricing.closestTemplate(endpointRules, "GET", path) !== undefined, fits)
    assert.isUndefined(ServicePricing.closestTemplate(endpointRules, "POST", path))
  })
})
