import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import fc from "fast-check"
import * as Facts from "../../../src/policy/facts/Facts.ts"
import type { RouteId } from "../../../src/policy/routes/CanonicalRoute.ts"

describe("Facts refuses a body that two readers could understand differently", () => {
  it.each([
    ["", "The body is empty; this route takes a JSON object."],
    ["not json", "The body is not valid JSON."],
    ['{"a":1', "The body is not valid JSON."],
    ['{"a":1}{"a":2}', "The body is not valid JSON."],
    ['{"a":NaN}', "The body is not valid JSON."],
    ["{'a':1}", "The body is not valid JSON."],
    ['{"a":1,}', "The body is not valid JSON."],
    ['\ufeff{"a":1}', "The body is not valid JSON."],
    ["[]", "The body must be a JSON object."],
    ["null", "The body must be a JSON object."],
    ['"text"', "The body must be a JSON object."],
    ["12", "The body must be a JSON object."]
  ])("%j: %s", (text, message) => {
    assert.deepStrictEqual(refusal("chat-completions", text), { code: "invalid_request_body", message })
  })

  it.each([
    [[0xff, 0xfe, 0x7b, 0x7d]],
    [[0x7b, 0x22, 0xc0, 0xae, 0x22, 0x3a, 0x31, 0x7d]],
    [[0x22, 0xed, 0xa0, 0x80, 0x22]]
  ])("bytes %j are no UTF-8", (bytes) => {
    assert.deepStrictEqual(Facts.parse("chat-completions", Uint8Array.from(bytes)), Result.fail(notUtf8))
  })

  describe("members that appear more than once", () => {
    it.each([
      ['{"model":"cheap","model":"dear"}', "model"],
      ['{"model":"cheap","m\\u006fdel":"dear"}', "model"],
      ['{"a":{"a":1},"b":[],"a":2}', "a"],
      ['{"na\u00efve":1,"na\\u00efve":2}', "na?ve"],
      [`{"${"x".repeat(100)}":1,"${"x".repeat(100)}":2}`, "x".repeat(64)]
    ])("%s", (text, name) => {
      assert.deepStrictEqual(refusal("chat-completions", text), twice(name))
    })

    it.each([
      '{"metadata":{"a":1,"a":2}}',
      '{"messages":[{"content":[{"type":"file","file":{"file_id":"theirs","file_id":"mine"}}]}]}',
      '{"messages":[{"content":[{"type":"file","file":{"file\\u005fid":"theirs","file_id":"mine"}}]}]}',
      '{"tools":[{"type":"x","model":"dear","model":"cheap"}]}'
    ])("deep down: %s", (text) => {
      assert.deepStrictEqual(refusal("chat-completions", text), {
        code: "invalid_request_body",
        message: "The body contains an object with a duplicate member. Name each member of an object once."
      })
    })

    it("at a registered service they are the service's matter", () => {
      assert.isTrue(Result.isSuccess(parse("service", '{"metadata":{"a":1,"a":2}}')))
    })

    it("are in no JSON that a program writes", () => {
      fc.assert(
        fc.property(fc.jsonValue({ noUnicodeString: false }), (metadata) => {
          assert.isTrue(Result.isSuccess(parse("chat-completions", JSON.stringify({ model: "m", metadata }))))
        })
      )
    })

    it.each([
      ['{"requests":[{"custom_id":"1","params":{"model":"cheap","model":"dear"}}]}', "model"],
      ['{"requests":[{"params":{}},{"params":{"model":"cheap"},"p\\u0061rams":{"model":"dear"}}]}', "params"],
      ['{"requests":[ {"params":{}} , {"params": {"stream":false,"stream":true} } ]}', "stream"]
    ])("in a batch they decide wherever they stand: %s", (text, name) => {
      assert.deepStrictEqual(refusal("message-batches", text), twice(name))
    })
  })

  it.each<[RouteId | "compat", string, string]>([
    ["chat-completions", '{"model":"m","input_cost_per_token":0}', "input_cost_per_token"],
    ["chat-completions", '{"model":"m","extra_body":{"Output_Cost_Per_Token":0}}', "Output_Cost_Per_Token"],
    ["message-batches", '{"requests":[{"params":{"input_cost_per_second":0}}]}', "input_cost_per_second"],
    ["compat", '{"output_cost_per_pixel":0}', "output_cost_per_pixel"]
  ])("a request that sets a price: %s %s", (route, text, name) => {
    const message = `"${name}" must be removed: a request cannot set a price.`
    assert.deepStrictEqual(refusal(route, text), { code: "invalid_request_body", message, param: name })
    assert.isTrue(Result.isSuccess(Facts.parse("service", Buffer.from(text))))
  })

  it.each<[RouteId | "compat" | "service", object, string]>([
    ["chat-completions", { model: "a,b" }, "model"],
    ["responses", { model: "a," }, "model"],
    ["service", { model: "a,b" }, "model"],
    ["compat", { models: ["a", "b,c"] }, "models"],
    ["chat-completions", { model: "a", fallbacks: [{ a: ["b", "c,d"] }] }, "fallbacks"],
    ["chat-completions", { model: "a", context_window_fallbacks: "b,c" }, "context_window_fallbacks"],
    ["chat-completions", { model: "a", extra_body: { model: "b,c" } }, "extra_body.model"],
    ["chat-completions", { model: "a", extra_body: { models: ["b,c"] } }, "extra_body.models"],
    ["responses", { model: "a", tools: [{ model: "b,c" }] }, "tools"],
    [
      "message-batches",
      { requests: [{ params: { model: "a" } }, { params: { model: "b,c" } }] },
      "requests.1.params.model"
    ],
    [
      "message-batches",
      { requests: [{ params: { extra_body: { model: "b,c" } } }] },
      "requests.0.params.extra_body.model"
    ]
  ])("a model name with a comma, which LiteLLM reads as several models: %s %j", (route, body, param) => {
    const message = `A model name in "${param}" must not contain a comma, because some upstreams would use several models. Send one request per model.`
    const refused = Result.getOrThrow(Result.flip(parse(route, JSON.stringify(body))))
    assert.deepStrictEqual(refused, { code: "invalid_request_body", message, param })
  })

  it.each(["compat", "service"] as const)("a form with a comma in its model name: %s", (route) => {
    const form = (model: string) => Facts.ofForm(route, { fields: new Map([["model", model]]), files: 0, textBytes: 4 })
    assert.strictEqual(Result.getOrThrow(Result.flip(form("a,b"))).param, "model")
    assert.deepStrictEqual(Result.getOrThrow(form("a")).models, ["a"])
  })

  describe("plain members in disguise", () => {
    it.each(["model", "stream", "tools", "max_tokens", "n", "guardrails", "stream_options"])(
      "%s is seen wherever an escape stands, also behind a body that misleads V8",
      (name) => {
        for (const [at, character] of [...name].entries()) {
          const escape = `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`
          const disguised = name.slice(0, at) + escape + name.slice(at + 1)
          Facts.parse(
            "chat-completions",
            Buffer.from(JSON.stringify({ user: "", [disguised.slice(0, name.length)]: 1 }))
          )
          assert.deepStrictEqual(refusal("chat-completions", `{"user":"","${disguised}":1}`), {
            code: "invalid_request_body",
            message: `The member name "${name}" must be written without escapes.`,
            param: name
          })
        }
      }
    )

    it.each(["Model", "Stream", "TOOLS", "Max_Tokens", "N", "Background", "Previous_Response_Id", "\uff4dodel"])(
      "%s is refused, because some upstreams match names without regard to case",
      (name) => {
        const body = JSON.stringify({ model: "m", [name]: null })
        assert.strictEqual(refusal("chat-completions", body).code, "invalid_request_body")
        assert.isTrue(Result.isSuccess(Facts.parse("service", Buffer.from(body))))
      }
    )

    const selecting = [
      ...["fallbacks", "models", "context_window_fallbacks", "content_policy_fallbacks", "default_fallbacks"],
      ...["agent", "agent_id", "api_base", "api_key", "base_url", "custom_llm_provider", "deployment_id", "prompt"],
      ...["extra_headers", "extra_query", "litellm_params", "model_id", "model_list", "preset", "prompt_id"],
      ...["provider", "route", "router_settings_override", "user_config"]
    ]
    const titled = (name: string) => name.replace(/(?:^|_)[a-z]/g, (start) => start.toUpperCase())
    const misspelled = (name: string): Facts.BodyProblem => ({
      code: "invalid_request_body",
      message: `"${titled(name)}" must be written "${name}".`,
      param: titled(name)
    })

    it.each(selecting)(
      "%s, which selects models, is refused with capitals on every route that policy reads",
      (name) => {
        const request = { model: "m", [titled(name)]: null }
        const problem = misspelled(name)
        for (const route of ["chat-completions", "responses", "messages", "embeddings", "compat"] as const) {
          assert.deepStrictEqual(refusal(route, JSON.stringify(request)), problem)
        }
        assert.deepStrictEqual(refusal("compat", JSON.stringify({ extra_body: request })), problem)
        assert.deepStrictEqual(refusal("message-batches", JSON.stringify({ requests: [{ params: request }] })), problem)
        assert.isTrue(Result.isSuccess(parse("service", JSON.stringify(request))))
        assert.isFalse(Facts.bodyMembers.has(name))
      }
    )

    it.each([
      ["requests", { requests: [], Requests: [{ params: { model: "dear" } }] }],
      ["requests", { Requests: [] }],
      ["params", { requests: [{ params: {}, Params: { model: "dear" } }] }]
    ])("a batch has no other spelling of %s: %j", (name, batch) => {
      assert.deepStrictEqual(refusal("message-batches", JSON.stringify(batch)), misspelled(name))
    })

    it("names of a batch are free elsewhere", () => {
      assert.isTrue(Result.isSuccess(parse("compat", '{"Params":{},"Requests":[]}')))
    })

    it("in a batch as well", () => {
      const hidden = '{"requests":[{"params":{"mo\\u0064el":"dear"}}]}'
      assert.strictEqual(refusal("message-batches", hidden).param, "model")
    })

    it("names that need their escapes pass, and so do values", () => {
      const text = '{"model":"m\\u006fdel","caf\\u00e9":1,"a\\"b":2,"metadata":{"m\\u006fdel":1}}'
      assert.deepStrictEqual(Result.getOrThrow(parse("chat-completions", text)).facts.models, ["model"])
    })
  })

  describe("members of the wrong type", () => {
    it.each([
      [{ model: 1 }, "model", "must be a string"],
      [{ model: null }, "model", "must be a string"],
      [{ model: ["large"] }, "model", "must be a string"],
      [{ stream: "true" }, "stream", "must be true or false"],
      [{ stream: 1 }, "stream", "must be true or false"],
      [{ tools: {} }, "tools", "must be an array"],
      [{ tools: "all" }, "tools", "must be an array"],
      [{ functions: { a: {} } }, "functions", "must be an array"],
      [{ max_tokens: "5000" }, "max_tokens", "must be a number"],
      [{ max_completion_tokens: 1, max_output_tokens: ["5000"] }, "max_output_tokens", "must be a number"],
      [{ max_tokens: 1, n: "50" }, "n", "must be a number"]
    ])("%j", (body, param, what) => {
      assert.deepStrictEqual(refusal("chat-completions", JSON.stringify(body)), {
        code: "invalid_request_body",
        message: `"${param}" ${what}.`,
        param
      })
    })

    it("a registered service may call its own members so", () => {
      const body = JSON.stringify({ n: "a", functions: {}, max_tokens: "few" })
      assert.isTrue(Result.isSuccess(Facts.parse("service", Buffer.from(body))))
    })

    it("a batch without a list of requests", () => {
      const body = '{"requests":{"0":{"params":{"model":"dear"}}}}'
      assert.strictEqual(refusal("message-batches", body).message, '"requests" must be an array.')
    })

    it.each([
      [{ params: { stream: "true" } }, '"requests.1.params.stream" must be true or false.', "requests.1.params.stream"],
      [{ params: [] }, '"requests.1.params" must be an object.', "requests.1.params"],
      [{}, '"requests.1.params" must be an object.', "requests.1.params"],
      [null, '"requests.1.params" must be an object.', "requests.1.params"]
    ])("in a batch, by their path: %j", (second, message, param) => {
      const body = JSON.stringify({ requests: [{ params: {} }, second] })
      assert.deepStrictEqual(refusal("message-batches", body), { code: "invalid_request_body", message, param })
    })
  })

  it.each([["pii-redact"], [[1]], [{}], [[null]], [true]])("guardrails %j are no list of names", (guardrails) => {
    assert.deepStrictEqual(refusal("chat-completions", JSON.stringify({ guardrails })), {
      code: "invalid_guardrail_request",
      message: '"guardrails" must be an array of guardrail names.',
      param: "guardrails"
    })
  })

  it("says something of any bytes at all, and never throws", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 40 }),
        fc.constantFrom<RouteId>("responses", "message-batches"),
        (bytes, routeId) => {
          const parsed = Facts.parse(routeId, bytes)
          if (Result.isFailure(parsed)) assert.isAbove(parsed.failure.message.length, 0)
          else assert.strictEqual(parsed.success.text, Buffer.from(bytes).toString("utf8"))
        }
      ),
      { numRuns: 200 }
    )
  })
})

const parse = (routeId: RouteId | "compat" | "service", text: string) => Facts.parse(routeId, Buffer.from(text))
const refusal = (routeId: RouteId | "compat", text: string) => Result.getOrThrow(Result.flip(parse(routeId, text)))

const notUtf8: Facts.BodyProblem = { code: "invalid_request_body", message: "The body is not valid UTF-8." }

const twice = (name: string): Facts.BodyProblem => ({
  code: "invalid_request_body",
  message: `"${name}" appears more than once in the body.`,
  param: name
})
