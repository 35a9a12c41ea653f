import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import fc from "fast-check"
import * as Path from "../../../src/policy/routes/Path.ts"
import * as UpstreamBase from "../../../src/policy/routes/UpstreamBase.ts"

const chat = "/v1/chat/completions"
const messages = "/v1/messages?beta=true"

describe("A vendor's base URL, as it is published for SDKs", () => {
  it.each([
    ["https://api.openai.com/v1", chat, "/v1/chat/completions"],
    ["https://api.openai.com", chat, "/v1/chat/completions"],
    ["https://api.anthropic.com", messages, "/v1/messages?beta=true"],
    ["https://api.anthropic.com/v1/", messages, "/v1/messages?beta=true"],
    ["https://openrouter.ai/api/v1", chat, "/api/v1/chat/completions"],
    ["https://openrouter.ai/api", messages, "/api/v1/messages?beta=true"],
    ["https://api.groq.com/openai/v1", chat, "/openai/v1/chat/completions"],
    ["https://resource.openai.azure.com/openai/v1/", chat, "/openai/v1/chat/completions"],
    ["https://resource.services.ai.azure.com/anthropic", messages, "/anthropic/v1/messages?beta=true"],
    ["https://generativelanguage.googleapis.com/v1beta/openai/", chat, "/v1beta/openai/chat/completions"],
    [
      "https://us-aiplatform.googleapis.com/v1/projects/p/locations/us/endpoints/openapi",
      chat,
      "/v1/projects/p/locations/us/endpoints/openapi/chat/completions"
    ],
    ["https://gateway.ai.cloudflare.com/v1/account/gw/openai", chat, "/v1/account/gw/openai/chat/completions"],
    ["https://gateway.ai.cloudflare.com/v1/a/gw/anthropic/v1", messages, "/v1/a/gw/anthropic/v1/messages?beta=true"],
    ["https://api.mistral.ai/v1", chat, "/v1/chat/completions"],
    ["https://api.fireworks.ai/inference/v1", chat, "/inference/v1/chat/completions"],
    ["https://api.deepinfra.com/v1/openai", chat, "/v1/openai/chat/completions"],
    ["https://api.cohere.ai/compatibility/v1", chat, "/compatibility/v1/chat/completions"],
    ["https://open.bigmodel.cn/api/paas/v4", chat, "/api/paas/v4/chat/completions"],
    ["https://ark.cn-beijing.volces.com/api/v3", chat, "/api/v3/chat/completions"],
    ["https://api.deepseek.com/anthropic", messages, "/anthropic/v1/messages?beta=true"],
    ["http://127.0.0.1:11434/v1", chat, "/v1/chat/completions"],
    ["http://localhost:12434/engines/v1", chat, "/engines/v1/chat/completions"],
    ["http://litellm.internal:4000/proxy", chat, "/proxy/v1/chat/completions"]
  ])("%s serves %s at %s", (address, asked, expected) => {
    assert.isUndefined(UpstreamBase.refusedAddress(address))
    const base = UpstreamBase.of(address)
    assert.deepStrictEqual([base.origin, UpstreamBase.targetAt(base, asked)], [new URL(address).origin, expected])
  })

  it.each([
    ["https://models.example.com", "/rerank?x=1", "/rerank?x=1"],
    ["https://models.example.com/api/v1", "/rerank", "/api/rerank"],
    ["https://models.example.com/v1beta/openai", "/rerank", undefined],
    ["https://models.example.com/v1beta/openai", "/v1", "/v1beta/openai"],
    ["https://models.example.com/v1beta/openai", "/v1?x=1", "/v1beta/openai?x=1"],
    ["https://models.example.com/v1beta/openai", "/%761/files", "/v1beta/openai/files"],
    ["https://models.example.com/v1beta/openai", "/v11/files", undefined]
  ])("%s has for %s the path %s", (address, asked, expected) => {
    assert.strictEqual(UpstreamBase.targetAt(UpstreamBase.of(address), asked), expected)
  })

  it("is left by no path of a client: what follows the base is what the client sent", () => {
    const segment = fc.stringMatching(/^[A-Za-z0-9_~-]{1,8}$/)
    const below = fc.array(segment, { maxLength: 4 }).map((segments) => segments.map((one) => `/${one}`).join(""))
    const addresses = fc.constantFrom(
      "https://h",
      "https://h/a",
      "https://h/a/v1",
      "https://h/v1beta/b",
      "https://h/v4"
    )
    fc.assert(
      fc.property(addresses, below, fc.constantFrom("", "?a=/../b"), (address, path, query) => {
        const base = UpstreamBase.of(address)
        const there = UpstreamBase.targetAt(base, `/v1${path}${query}`)
        assert.isTrue(there?.startsWith(base.prefix) && there.endsWith(path + query))
        assert.isTrue(Result.isSuccess(Path.canonicalise(there ?? "")))
      })
    )
  })
})

describe("A base URL is refused", () => {
  it.each([
    ["", "must be an http or https URL"],
    ["models.example.com", "must be an http or https URL"],
    ["ftp://models.example.com/v1", "must be an http or https URL"],
    ["https://user:canary@models.example.com/v1", "must not carry a user or password"],
    ["https://models.example.com/v1?api-version=canary", "must not carry a query"],
    ["https://models.example.com/v1#canary", "must not carry a query"],
    ["https://models.example.com/api/../key/v1", "must have a plain path"],
    ["https://models.example.com/api/%2e%2e/v1", "must have a plain path"],
    ["https://models.example.com/api%2fv1", "must have a plain path"],
    ["https://models.example.com//v1", "must have a plain path"],
    ["https://models.example.com\\v1", "must have a plain path"],
    ["https://models.example.com/v1;x", "must have a plain path"],
    ["https://models.example.com/v1/chat/completions", "must end before the path of a route (/v1/chat/completions)"],
    ["https://models.example.com/api/v1/messages", "must end before the path of a route (/v1/messages)"],
    [`https://models.example.com/${"a".repeat(2048)}`, "must be an http or https URL"]
  ])("%s: %s", (address, why) => {
    const refusal = UpstreamBase.refusedAddress(address)
    assert.include(refusal, why)
    assert.notInclude(refusal, "canary")
  })
})

describe("A base that ends below its version", () => {
  it.each([
    ["https://h/v1/key", "/v1/generate", true],
    ["https://h/v1/fine_tuning", "/v1/checkpoints/c/permissions", true],
    ["https://h/v1beta/chat", "/v1/completions", true],
    ["https://h/v1beta/openai", "/v1/files?purpose=batch", false],
    ["https://h/api/v3", "/v1/generate", false],
    ["https://h", "/v1/generate", false]
  ])("%s is no way round with %s: %s", (address, path, expected) => {
    assert.strictEqual(UpstreamBase.reachesForbiddenPath(UpstreamBase.of(address), path), expected)
  })
})
