import { assert, describe, it } from "@effect/vitest"
import { Redacted, Result } from "effect"
import fc from "fast-check"
import { statusOf } from "../../src/gateway/GatewayError.ts"
import * as Routing from "../../src/policy/Routing.ts"
import * as Path from "../../src/policy/routes/Path.ts"
import { defaultRoutePattern, refusedRoutePattern } from "../../src/policy/routes/Service.ts"
import { missing } from "../../src/policy/routes/StoredCredential.ts"
import * as ServicePricing from "../../src/policy/ServicePricing.ts"
import * as ServiceTable from "../../src/policy/ServiceTable.ts"
import { sensitive } from "./ExposureTable.ts"
import { policed, seededWith } from "./Snapshots.ts"

describe("ServiceTable", () => {
  const table = ServiceTable.of([
    service("payments", "/services/payments/*"),
    service("charges", "/services/payments/charges/*"),
    service("exact", "/internal/exact"),
    service("custom", "/internal/custom/*", { methods: ["GET"] }),
    service("custom-post", "/internal/custom/*", { methods: ["POST"] }),
    service("ocr", "/ocr")
  ])

  it.each([
    ["POST", "/services/payments", "payments"],
    ["POST", "/services/payments/", "payments"],
    ["POST", "/services/payments/a/b", "payments"],
    ["POST", "/services/paymentsx", undefined],
    ["POST", "/services/payments/charges", "charges"],
    ["POST", "/services/payments/charges/1", "charges"],
    ["POST", "/services/payments/chargesx", "payments"],
    ["POST", "/Services/payments", undefined],
    ["POST", "/internal/exact", "exact"],
    ["POST", "/internal/exact/", undefined],
    ["POST", "/internal/exact/below", undefined],
    ["GET", "/internal/exact", undefined],
    ["GET", "/internal/custom/x", "custom"],
    ["POST", "/internal/custom/x", "custom-post"],
    ["DELETE", "/internal/custom/x", undefined],
    ["post", "/ocr", undefined],
    ["POST", "/", undefined]
  ])("%s %s is %s's", (method, path, name) => {
    assert.strictEqual(ServiceTable.match(table, method, path)?.name, name)
  })

  it("finds what a search through all of them, the longest pattern first, would find", () => {
    fc.assert(
      fc.property(fc.array(services, { maxLength: 8 }), path, fc.constantFrom("GET", "POST"), (rows, path, method) => {
        const byName = new Map(rows.map((row) => [row.name, row]))
        const below = ({ pattern }: ServiceTable.RegisteredService) => Number(pattern.endsWith("/*"))
        const all = [...byName.values()].sort(
          (a, b) => b.pattern.length - a.pattern.length || below(a) - below(b) || (a.name < b.name ? -1 : 1)
        )
        const fits = ({ methods, pattern }: ServiceTable.RegisteredService) =>
          methods.includes(method) &&
          (pattern.endsWith("/*")
            ? path === pattern.slice(0, -2) || path.startsWith(pattern.slice(0, -1))
            : path === pattern)
        assert.strictEqual(ServiceTable.match(ServiceTable.of([...byName.values()]), method, path), all.find(fits))
      }),
      { numRuns: 1000 }
    )
  })
})

describe("a service's target", () => {
  const table = ServiceTable.of([
    service("payments", "/services/payments/*"),
    service("nested", "/internal/a/b/*"),
    service("summary", "/summary"),
    service("moved", "/elsewhere"),
    service("v1", "/v1/models"),
    service("off", "/services/off/*", { enabled: false }),
    service("half", "/services/half/*", { origin: undefined, credential: missing }),
    service("keyless", "/services/keyless/*", { credential: missing })
  ])
  const find = (method: string, target: string) => policed(method, target, { ...seededWith(), services: table })

  it.each([
    ["/services/payments/charges?trace=1", "/charges?trace=1", "/charges", "/services/*"],
    ["/services/payments", "/", "/", "/services/*"],
    ["/services/payments?a=/x", "/?a=/x", "/", "/services/*"],
    ["/services/payments/", "/", "/", "/services/*"],
    ["/%73ervices/payments/%63harges/n%c3%a4?x=%2F..", "/%63harges/n%c3%a4?x=%2F..", "/charges/n%C3%A4", "/services/*"],
    ["/internal/a/b/c", "/c", "/c", "/services/*"],
    ["/summary?x", "/summary?x", "/summary", "/summary"],
    ["/elsewhere?x", "/elsewhere?x", "/elsewhere", "/services/*"],
    ["/services/moved/a?x", "/a?x", "/a", "/services/*"],
    ["/services/summary/a", "/a", "/a", "/services/*"]
  ])("%s goes as %s, and is %s for prices and records, %s for policies", (target, forwarded, path, route) => {
    const found = find("POST", target)
    assert.isUndefined(found.closed)
    assert.deepStrictEqual(
      [found.target, found.service?.path, found.route, found.provider],
      [forwarded, path, route, "internal-service"]
    )
  })

  it.each([
    ["POST", "/services/nothing/a", 404, "missing_service"],
    ["POST", "/ocr", 404, "missing_service"],
    ["POST", "/services", 400, "invalid_service_payload"],
    ["POST", "/services/No_Name", 400, "invalid_service_payload"],
    ["GET", "/services/payments/a", 404, "unsupported_route"],
    ["POST", "/services/off/a", 403, "disabled_service"],
    ["POST", "/services/half/a", 409, "incomplete_service"]
  ])("%s %s is closed with %s %s", (method, target, status, code) => {
    const { closed } = find(method, target)
    assert.deepStrictEqual([closed && statusOf[closed.code], closed?.code], [status, code])
  })

  it("says what a half-configured service lacks", () => {
    assert.include(find("POST", "/services/half").closed?.message, "it lacks upstream_base_url and credential")
    assert.include(find("POST", "/services/keyless").closed?.message, "it lacks credential")
  })

  it("is never looked for where the gateway's own routes are, nor under another name of them", () => {
    const codeOf = (method: string, target: string) =>
      Result.match(Routing.find(method, target, { ...seededWith(), services: table }), {
        onFailure: ({ code }) => code,
        onSuccess: ({ routeId }) => routeId
      })
    assert.strictEqual(codeOf("POST", "/v1/models"), "unsupported_route")
    assert.strictEqual(codeOf("GET", "/v1/models"), "models")
    assert.strictEqual(codeOf("GET", "/summary"), "unsupported_route")
    assert.strictEqual(codeOf("POST", "/services/payments/../x"), "unsupported_route")
    assert.strictEqual(codeOf("POST", "/services//payments"), "unsupported_route")
    assert.strictEqual(codeOf("POST", "/services/payments%2fx"), "unsupported_route")
  })

  it("cuts the raw target where the canonical path is cut", () => {
    fc.assert(
      fc.property(fc.array(segment, { minLength: 1, maxLength: 5 }), fc.nat(4), query, (raw, cut, query) => {
        const target = `/${raw.join("/")}${query}`
        const path = Path.canonicalise(target)
        if (Result.isFailure(path) || cut > raw.length) return
        const behind = Path.canonicalise(Routing.withoutLeadingSegments(target, cut))
        assert(Result.isSuccess(behind))
        assert.strictEqual(behind.success.path, `/${path.success.segments.slice(cut).join("/")}`)
        assert.isTrue(Routing.withoutLeadingSegments(target, cut).endsWith(query))
      }),
      { numRuns: 500 }
    )
  })
})

describe("a route pattern", () => {
  it("that is a default one can be registered, whatever the name", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?$/), (name) => {
        assert.isUndefined(refusedRoutePattern(defaultRoutePattern(name)))
      })
    )
  })

  it("that can be registered covers no path of the gateway's own", () => {
    const own = [
      "/v1",
      "/v1/models",
      "/v1/x/y",
      "/admin-ui",
      "/admin-ui/admin",
      "/providers/compat",
      "/providers/compat/v1"
    ]
    fc.assert(
      fc.property(patterns, fc.constantFrom(...own), (pattern, path) => {
        if (refusedRoutePattern(pattern) !== undefined) return
        assert.isUndefined(ServiceTable.match(ServiceTable.of([service("any", pattern)]), "POST", path))
      }),
      { numRuns: 1000 }
    )
  })

  it("that can be registered leads into no sensitive path, whatever its case or the dots at its end", () => {
    for (const path of sensitive) {
      for (const form of [path, `${path}/*`, `${path}/x`, `${path.toUpperCase()}/x/*`, `${path}./*`, `${path}.`]) {
        assert.match(
          refusedRoutePattern(form) ?? "",
          path.startsWith("/v1/") ? /not cover \/v1|not lie in \/v1/ : /not lie in/
        )
      }
    }
    for (const free of ["/keyring/*", "/uix", "/services/key/*", "/internal/ui/*", "/summary", "/login", "/models/x"]) {
      assert.isUndefined(refusedRoutePattern(free), free)
    }
  })
})

function service(
  name: string,
  pattern: string,
  more: Partial<ServiceTable.RegisteredService> = {}
): ServiceTable.RegisteredService {
  return {
    name,
    pattern,
    enabled: true,
    methods: ["POST"],
    origin: "https://service.test",
    credential: { _tag: "Present", credential: Redacted.make("svc-secret") },
    config: {
      enabled: true,
      mode: "managed_by_gateway",
      timeoutMs: 60_000,
      maxRequestBodyBytes: 2_097_152,
      maxResponseBodyBytes: Number.POSITIVE_INFINITY,
      limitsStreams: false,
      limitsSetBy: "the service",
      ownership: "shared"
    },
    pricing: ServicePricing.of({
      cost_mode: "none",
      estimated_cost_usd: null,
      pricing_rules: [],
      endpoint_pricing_rules: [],
      openapi_endpoints: []
    }),
    ...more
  }
}

const word = fc.constantFrom("a", "b", "ab", "services")
const path = fc.array(word, { minLength: 1, maxLength: 4 }).map((words) => `/${words.join("/")}`)
const services = fc
  .record({
    name: fc.constantFrom("p", "q", "r", "s", "t"),
    path,
    below: fc.boolean(),
    methods: fc.subarray(["GET", "POST"], { minLength: 1 })
  })
  .map(({ below, methods, name, path }) => service(name, below ? `${path}/*` : path, { methods }))

const segment = fc.constantFrom("a", "%61", "x-y", "%7E", "n%c3%a4", "z.")
const query = fc.constantFrom("", "?", "?a=/b/c", "?x=%2f")
const patterns = fc
  .tuple(
    fc.array(fc.constantFrom("v1", "admin-ui", "providers", "compat", "services", "a", "models"), {
      minLength: 0,
      maxLength: 3
    }),
    fc.constantFrom("", "/*", "/")
  )
  .map(([words, end]) => `${words.map((one) => `/${one}`).join("")}${end}`)
