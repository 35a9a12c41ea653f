import type { FieldError } from "../../../api/ApiError.ts"
import { GuardrailForm, type GuardrailValues } from "../../../shared/policy/GuardrailForm.tsx"
import type { Draft } from "./draft.ts"
import styles from "./NewKeyPage.module.css"

interface Props {
  readonly draft: Draft
  readonly onChange: (change: Partial<Draft>) => void
  readonly errors: ReadonlyArray<FieldError>
  readonly mayChange: boolean
}

const isEmpty = (value: unknown): boolean =>
  Array.isArray(value)
    ? value.length === 0
    : typeof value === "object" && value !== null && Object.keys(value).length === 0

const given = (values: GuardrailValues): GuardrailValues =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => !isEmpty(value)))

/** Which guardrails check the requests of the key. */
export const GuardrailStep = ({ draft, errors, mayChange, onChange }: Props) => {
  return (
    <>
      <GuardrailForm
        values={draft.guardrails}
        onChange={(guardrails) => onChange({ guardrails: given(guardrails) })}
        errors={errors}
      />
      {!mayChange && (
        <p className={styles.none}>
          Forbidding and configuring guardrails also needs <code>policies:update</code>.
        </p>
      )}
    </>
  )
}
