import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import * as HttpGuardrail from "../../src/guardrails/HttpGuardrail.ts"
import type { Mode } from "../../src/policy/Guardrail.ts"

/** The verdict that the gateway reads from a reply of a guardrail. */
const verdictOf = (reply: string, mode: Mode = "pre_call", text = '{"model":"m"}') =>
  Effect.map(
    HttpGuardrail.call(
      { fetch: () => Effect.succeed({ status: 200, headers: {}, body: Buffer.from(reply) }) },
      {
        _tag: "Http",
        url: "http://guardrail.example",
        timeoutMs: 1000,
        streamMode: "buffer",
        windowChars: 512,
        token: { _tag: "Missing" }
      },
      {
        requestId: "r",
        guardrail: "g",
        mode,
        context: {
          key_id: "k",
          team_id: null,
          user_id: null,
          project_id: null,
          model: null,
          route: "/v1/chat/completions",
          provider: "upstream"
        },
        config: {},
        text
      }
    ),
    (verdict) => (Result.isSuccess(verdict) ? verdict.success : verdict.failure.code)
  )

describe("the reply of an HTTP guardrail", () => {
  it.effect.each([
    ["that changes nothing", '{"action":"modify"}', undefined],
    ["whose members are null", '{"action":"modify","request":null,"response":null}', undefined],
    [
      "with large numbers",
      '{"action":"modify","request":{"n":12345678901234567890, "x":1.50}}',
      '{"n":12345678901234567890, "x":1.50}'
    ]
  ] as const)("a modification %s is taken as it is written", ([, reply, text]) =>
    Effect.map(verdictOf(reply), (verdict) =>
      assert.deepStrictEqual(verdict, {
        action: "modify",
        reason: null,
        metadata: {},
        ...(text !== undefined && { text })
      })
    )
  )

  it.effect.each([
    ["the response instead of the request", '{"action":"modify","response":{}}', "pre_call"],
    ["the request instead of the response", '{"action":"modify","request":{}}', "post_call"],
    ["a text instead of a response", '{"action":"modify","response":"text"}', "post_call"],
    ["a list instead of a response", '{"action":"modify","response":[]}', "post_call"]
  ] as const)("is invalid with %s, because the unchanged text would pass", ([, reply, mode]) =>
    Effect.map(verdictOf(reply, mode), (verdict) => assert.strictEqual(verdict, "invalid_guardrail_request"))
  )
})
