import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import fc from "fast-check"
import * as Exposure from "../../../src/policy/routes/Exposure.ts"
import { AdminApiExposure, defaults, type Passthrough, UiExposure } from "../../../src/policy/routes/Passthrough.ts"
import * as Path from "../../../src/policy/routes/Path.ts"
import * as UpstreamPaths from "../../../src/policy/routes/UpstreamPaths.ts"
import * as Expected from "../../gateway/ExposureTable.ts"

describe("Exposure", () => {
  for (const ui_exposure of UiExposure.literals) {
    for (const admin_api_exposure of AdminApiExposure.literals) {
      it(`ui ${ui_exposure}, admin ${admin_api_exposure}: each group of paths, for each caller`, () => {
        for (const { group, method, path } of Expected.requests) {
          const settings = { ...wide, allowed_paths: ["/*", path], ui_exposure, admin_api_exposure }
          for (const caller of ["nobody", "key", "identified"] as const) {
            assert.strictEqual(
              Exposure.decide(accessOf(settings, method, path), caller),
              Expected.decision(ui_exposure, admin_api_exposure, group, caller),
              `${method} ${path} by ${caller}`
            )
          }
        }
      })
    }
  }

  it("lets nothing through while it is off, by another method, or beside the allowed paths", () => {
    fc.assert(
      fc.property(settings, request, (settings, { method, path }) => {
        const listed =
          settings.allowed_methods.includes(method) &&
          settings.allowed_paths.some((one) => (one.endsWith("*") ? path.startsWith(one.slice(0, -1)) : path === one))
        const access = accessOf(settings, method, path)
        if (!settings.enabled || !listed) assert.strictEqual(access, "closed")
      }),
      { numRuns: 1000 }
    )
  })

  it("opens nothing without a key unless the ingress is trusted", () => {
    fc.assert(
      fc.property(settings, request, (settings, { method, path }) => {
        if (accessOf(settings, method, path) === "open") assert.strictEqual(settings.ui_exposure, "trusted_ingress")
      }),
      { numRuns: 1000 }
    )
  })

  it("asks as much of whatever lies below a group's path as of the path itself", () => {
    fc.assert(
      fc.property(
        settings,
        fc.constantFrom(...Expected.sensitive),
        fc.array(fc.stringMatching(/^[\w-]{1,6}$/), { minLength: 1, maxLength: 3 }),
        (settings, path, more) => {
          const open = { ...settings, enabled: true, allowed_paths: ["/*"], allowed_methods: ["PUT"] }
          assert.strictEqual(accessOf(open, "PUT", [path, ...more].join("/")), accessOf(open, "PUT", path))
        }
      ),
      { numRuns: 500 }
    )
  })

  it.each(["/keyring", "/uix", "/configuration", "/api2", "/v20", "/healthz", "/audit-log", "/v1/agentsmith"])(
    "takes %s for what it is: another path, not one below a group",
    (path) => assert.strictEqual(accessOf({ ...wide, allowed_paths: [path] }, "GET", path), "key")
  )

  it.each([
    [["/*"], "/rerank", "closed"],
    [["/r*"], "/rerank", "closed"],
    [["/*", "/v1*"], "/model/whatever/comes/next", "closed"],
    [["/v1*"], "/v1beta/models/m:generateContent", "closed"],
    [["/*"], "/v1/audio/speech", "key"],
    [["/rerank*"], "/rerank", "closed"],
    [["/rerank"], "/rerank", "key"],
    [["/rerank/*"], "/rerank/x", "key"],
    [["/v1beta/*"], "/v1beta/models/m:generateContent", "key"]
  ] as const)(
    "outside the public API opens what the list names and nothing else: %j, %s is %s",
    (allowed_paths, path, access) => {
      assert.strictEqual(accessOf({ ...wide, allowed_paths }, "POST", path), access)
    }
  )

  it.each([
    ["POST", "/chat/completions"],
    ["POST", "/engines/m/chat/completions"],
    ["POST", "/openai/deployments/m/chat/completions"],
    ["POST", "/openai/deployments/m/embeddings/"],
    ["POST", "/v1/engines/m/embeddings"],
    ["POST", "/OpenAI/Responses"],
    ["POST", "/anthropic/v1/messages"],
    ["POST", "/messages"],
    ["POST", "/anthropic/v1/messages/count_tokens"],
    ["GET", "/anthropic/v1/messages/batches"],
    ["GET", "/anthropic/v1/messages/batches/b/results"]
  ])("closes another name of a governed route, though an operator lists it: %s %s", (method, path) => {
    assert.strictEqual(accessOf({ ...wide, allowed_paths: [path] }, method, path), "closed")
  })

  it.each([
    ["POST", "/v1/threads/t/messages"],
    ["GET", "/v1/responses/r"],
    ["GET", "/v1/chat/completions"]
  ])("takes %s %s for no other name of a governed route", (method, path) => {
    assert.strictEqual(accessOf({ ...wide, allowed_paths: [path] }, method, path), "key")
  })

  it("takes no path for an ordinary one that a lax upstream could take for a sensitive one", () => {
    for (const path of Expected.sensitive) {
      for (const form of Expected.disguises(path)) {
        const canonical = Path.canonicalise(form)
        if (Result.isSuccess(canonical)) {
          const settings = { ...wide, allowed_paths: ["/*", canonical.success.path] }
          assert.strictEqual(
            Exposure.accessOf(settings, UpstreamPaths.defaultUiSupport, "GET", canonical.success),
            "closed",
            form
          )
        }
      }
    }
  })

  it("opens nothing to a trusted ingress but what is written as it is listed", () => {
    const trusted: Passthrough = { ...wide, ui_exposure: "trusted_ingress", admin_api_exposure: "explicitly_exposed" }
    for (const path of [...Expected.sensitive, "/login", "/get_image", "/models", "/model/info"]) {
      assert.strictEqual(accessOf(trusted, "GET", path), "open", path)
      for (const form of Expected.disguises(path)) {
        const canonical = Path.canonicalise(form)
        if (Result.isFailure(canonical)) continue
        const written = canonical.success.path
        if (written === path || written.startsWith(`${path}/`)) continue
        assert.notStrictEqual(
          Exposure.accessOf(trusted, UpstreamPaths.defaultUiSupport, "GET", canonical.success),
          "open",
          form
        )
      }
    }
  })

  it.each([
    ["POST", "/V1/Chat/Completions"],
    ["POST", "/v1/messages./"],
    ["GET", "/v1/MODELS"],
    ["GET", "/Services/ocr"],
    ["GET", "/Admin-UI/admin/keys"],
    ["POST", "/Providers/Compat/v1/messages"]
  ])("is no way around a route of the gateway's own: %s %s", (method, path) => {
    assert.strictEqual(accessOf(wide, method, path), "closed")
  })
})

/** Everything is allowed, and nothing exposed. */
const wide: Passthrough = {
  ...defaults,
  enabled: true,
  allowed_paths: ["/*"],
  allowed_methods: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
}

const accessOf = (settings: Passthrough, method: string, path: string): Exposure.WildcardAccess =>
  Exposure.accessOf(settings, UpstreamPaths.defaultUiSupport, method, Result.getOrThrow(Path.canonicalise(path)))

const settings: fc.Arbitrary<Passthrough> = fc.record({
  enabled: fc.boolean(),
  allowed_paths: fc.uniqueArray(fc.constantFrom("/*", "/v1/*", "/v1*", "/ui/*", "/ui", "/key/*", "/user/info"), {
    minLength: 1
  }),
  allowed_methods: fc.uniqueArray(fc.constantFrom("GET", "POST", "DELETE"), { minLength: 1 }),
  ui_exposure: fc.constantFrom(...UiExposure.literals),
  admin_api_exposure: fc.constantFrom(...AdminApiExposure.literals),
  guardrails: fc.constant("refuse"),
  body_policies: fc.constant("refuse"),
  ownership: fc.constant("project"),
  timeout_ms: fc.constant(1000),
  max_request_body_bytes: fc.constant(1000),
  max_response_body_bytes: fc.constant(1000),
  limits_streams: fc.constant(false)
})

const request = fc.record({
  method: fc.constantFrom("GET", "POST", "DELETE", "PUT"),
  path: fc.constantFrom(...Expected.requests.map(({ path }) => path), "/v1", "/v1/x", "/v1x", "/ui/x", "/")
})
