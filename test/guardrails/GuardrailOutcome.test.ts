import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import fc from "fast-check"
import * as GuardrailOutcome from "../../src/guardrails/GuardrailOutcome.ts"
import type { Action, FailurePolicy } from "../../src/policy/Guardrail.ts"

const said = (action: Action, text?: string) =>
  Result.succeed<GuardrailOutcome.Verdict>({
    action,
    reason: "why",
    metadata: { n: 1 },
    ...(text !== undefined && { text })
  })
const silent = Result.fail<GuardrailOutcome.GuardrailFailure>({ code: "guardrail_unavailable" })

const of = (
  policy: FailurePolicy,
  verdict: Result.Result<GuardrailOutcome.Verdict, GuardrailOutcome.GuardrailFailure>
) => {
  const { action, consequence } = GuardrailOutcome.of(policy, verdict)
  return `${action} ${consequence._tag}`
}

describe("Outcome", () => {
  it.each<[string, Result.Result<GuardrailOutcome.Verdict, GuardrailOutcome.GuardrailFailure>, string, string, string]>(
    [
      ["allow", said("allow"), "allow Goes", "allow Goes", "allow Goes"],
      ["warn", said("warn"), "warn Goes", "warn Goes", "warn Goes"],
      ["block", said("block"), "block Stops", "block Stops", "warn Goes"],
      ["modify", said("modify", "{}"), "modify GoesAs", "modify GoesAs", "warn Goes"],
      ["modify without a body", said("modify"), "modify Goes", "modify Goes", "warn Goes"],
      ["a text that only a modification may bring", said("allow", "{}"), "allow Goes", "allow Goes", "allow Goes"],
      ["a failure", silent, "block Stops", "warn Goes", "warn Goes"]
    ]
  )("%s: closed, open, dry", (_, verdict, closed, open, dry) => {
    assert.deepStrictEqual(
      [of("fail_closed", verdict), of("fail_open", verdict), of("dry_run", verdict)],
      [closed, open, dry]
    )
  })

  it("notes the failure's code, and what a dry run would have done", () => {
    assert.deepStrictEqual(GuardrailOutcome.of("fail_open", silent), {
      action: "warn",
      failed: true,
      reason: "guardrail_unavailable",
      metadata: {},
      consequence: { _tag: "Goes" }
    })
    assert.deepStrictEqual(GuardrailOutcome.of("dry_run", said("block")), {
      action: "warn",
      failed: false,
      reason: "why",
      metadata: { n: 1, dry_run_action: "block" },
      consequence: { _tag: "Goes" }
    })
  })

  it("keeps no secret of the metadata, at any depth, and nothing without end", () => {
    const metadata = {
      ok: 1,
      API_Token: "x",
      nested: [{ Authorization: "x", my_password: "x", client_secret_id: 1, fine: 2 }]
    }
    assert.deepStrictEqual(GuardrailOutcome.sanitizeMetadata(metadata), { ok: 1, nested: [{ fine: 2 }] })
    assert.deepStrictEqual(GuardrailOutcome.sanitizeMetadata({ long: "x".repeat(9000) }), { truncated: true })
    assert.deepStrictEqual(GuardrailOutcome.sanitizeMetadata({ "a\u0000": "b\ud800" }), { "a\ufffd": "b\ufffd" })
  })

  it("is always small and without control characters, whatever a guardrail says", () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.string({ unit: "binary", maxLength: 2000 }),
        (values, reason) => {
          const metadata = JSON.parse(JSON.stringify(values))
          const outcome = GuardrailOutcome.of("fail_closed", Result.succeed({ action: "allow", reason, metadata }))
          const text = JSON.stringify([outcome.reason, outcome.metadata])
          assert.isAtMost(text.length, 16_384)
          assert.notMatch(text, /\\u00[01]|\\ud[89a-f]/)
        }
      )
    )
  })
})
