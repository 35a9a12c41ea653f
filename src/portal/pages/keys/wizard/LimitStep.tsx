import type { FieldError } from "../../../api/ApiError.ts"
import { useApi } from "../../../api/queries.ts"
import type { PolicyValues } from "../../../shared/policy/fields.ts"
import { PolicyForm } from "../../../shared/policy/PolicyForm.tsx"
import type { Draft } from "./draft.ts"

const budgets: ReadonlySet<string> = new Set(["daily_budget_usd", "monthly_budget_usd"])

interface Props {
  readonly draft: Draft
  readonly onChange: (change: Partial<Draft>) => void
  readonly errors: ReadonlyArray<FieldError>
}

/** Changes single fields of the preset. */
export const LimitStep = ({ draft, errors, onChange }: Props) => {
  const presets = useApi("/admin-ui/admin/policy/presets", {})
  const base: PolicyValues = presets.data?.find(({ name }) => name === draft.preset)?.policy ?? {}
  const change = (name: string, value: unknown) => {
    const { [name]: _, ...others } = draft.policy
    const isPreset = JSON.stringify(base[name] ?? null) === JSON.stringify(value)
    // the server does so for a new key with a budget; here it is seen, and can be changed
    const isFirstBudget = budgets.has(name) && value !== null && !("unpriced_models" in { ...base, ...draft.policy })
    const changed = isPreset ? others : { ...others, [name]: value }
    onChange({ policy: isFirstBudget ? { ...changed, unpriced_models: "refuse" } : changed })
  }
  return <PolicyForm values={{ ...base, ...draft.policy }} before={base} onChange={change} errors={errors} />
}
