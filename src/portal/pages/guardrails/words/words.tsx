import type { ResponseOf } from "../../../api/Endpoints.ts"
import type { ConfigurationSections } from "../../../shared/words/CopyAs.tsx"
import { type Meaning, StatusWord } from "../../../shared/words/StatusWord.tsx"

export type Guardrail = ResponseOf<"GET", "/admin-ui/admin/guardrails/:name">
export type Execution = ResponseOf<"GET", "/admin-ui/admin/guardrails/executions">["executions"][number]
export type Action = Execution["action"]

export const actions: ReadonlyArray<Action> = ["allow", "modify", "warn", "block"]

export const meaningOfAction: Readonly<Record<Action, Meaning>> = {
  allow: "good",
  modify: "working",
  warn: "warning",
  block: "bad"
}

export const ActionWord = ({ action }: { readonly action: Action }) => (
  <StatusWord meaning={meaningOfAction[action]}>{action}</StatusWord>
)

export const EnabledWord = ({ enabled }: { readonly enabled: boolean }) =>
  enabled ? <StatusWord meaning="good">enabled</StatusWord> : <StatusWord meaning="idle">disabled</StatusWord>

/** Returns the guardrail as an entry of the configuration document. */
export const configurationOf = ({
  endpoint_configured: _,
  token_configured: _1,
  updated_at: _2,
  ...entry
}: Guardrail): ConfigurationSections => ({ guardrails: [entry] })

/** What happens to a text that the guardrail could not judge. */
export const failureSentences: Readonly<Record<Guardrail["failure_policy"], string>> = {
  fail_closed: "If it fails, the request is refused.",
  fail_open: "If it fails, the text passes.",
  dry_run: "It only records what it would do. Every text passes."
}
