import { CloseButton, Group, Stack } from "@mantine/core"
import { fieldLabel } from "../fields/fieldWords.ts"
import { LazySelect } from "../fields/LazySelect.tsx"
import styles from "./ChosenFields.module.css"
import { fieldText, groupsOf, type PolicyField, type PolicyValues } from "./fields.ts"
import { PolicyFieldInput } from "./PolicyFieldInput.tsx"
import { usePolicyFields } from "./usePolicyFields.ts"

interface Props {
  /** What is in force. */
  readonly before: PolicyValues
  readonly changes: PolicyValues
  readonly onChange: (changes: PolicyValues) => void
  /** Without it, all fields can be chosen. */
  readonly only?: (field: PolicyField) => boolean
  /** Of the choice, where a form has several. */
  readonly label?: string
}

/** A few fields of a policy: one is chosen, and then its value is given. */
export const ChosenFields = ({
  before,
  changes,
  label: choiceLabel = "Change a field",
  onChange,
  only = () => true
}: Props) => {
  const fields = usePolicyFields().data?.fields.filter(only) ?? []
  const chosen = fields.filter(({ field }) => field in changes)
  const valueNow = (name: string) => before[name] ?? fields.find(({ field }) => field === name)?.unrestricted ?? null
  return (
    <Stack gap="sm">
      {chosen.map((field) => (
        <div key={field.field} className={styles.field}>
          <div className={styles.input}>
            <PolicyFieldInput
              field={field}
              value={changes[field.field]}
              onChange={(value) => onChange({ ...changes, [field.field]: value })}
            />
            <span className={styles.now}>now: {fieldText(field, valueNow(field.field))}</span>
          </div>
          <CloseButton
            aria-label={`Leave ${field.field} as it is`}
            onClick={() => {
              const { [field.field]: _, ...others } = changes
              onChange(others)
            }}
          />
        </div>
      ))}
      <Group>
        <LazySelect
          aria-label={choiceLabel}
          placeholder={`${choiceLabel}…`}
          data={groupsOf(fields).map(({ fields: some, label }) => ({
            group: label,
            items: some.flatMap(({ field }) => (field in changes ? [] : [{ value: field, label: fieldLabel(field) }]))
          }))}
          value={null}
          onChange={(name) => name !== null && onChange({ ...changes, [name]: valueNow(name) })}
          searchable
          w={280}
        />
      </Group>
    </Stack>
  )
}
