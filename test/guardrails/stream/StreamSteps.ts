import type { SelectedGuardrail } from "../../../src/guardrails/Selection.ts"
import type { FailurePolicy } from "../../../src/policy/Guardrail.ts"

/** An HTTP guardrail on streams. */
export const streamStep = (
  streamMode: "buffer" | "window",
  windowChars = 64,
  failurePolicy: FailurePolicy = "fail_closed"
): SelectedGuardrail => ({
  definition: {
    name: "guard",
    description: "",
    provider: {
      _tag: "Http",
      url: "https://guard.test/",
      timeoutMs: 100,
      token: { _tag: "Missing" },
      streamMode,
      windowChars
    },
    modes: ["during_call"],
    defaultOn: false,
    failurePolicy,
    configSchema: {},
    runtimeConfig: {},
    enabled: true
  },
  config: {}
})

/** `pii-redact` on streams. */
export const piiStep = (failurePolicy: FailurePolicy, config: SelectedGuardrail["config"] = {}): SelectedGuardrail => ({
  definition: {
    name: "pii-redact",
    description: "",
    provider: { _tag: "BuiltIn" },
    modes: ["pre_call", "post_call"],
    defaultOn: false,
    failurePolicy,
    configSchema: {},
    runtimeConfig: {},
    enabled: true
  },
  config
})
