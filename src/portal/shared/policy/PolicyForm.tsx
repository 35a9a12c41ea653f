import { Skeleton } from "@mantine/core"
import type { FieldError } from "../../api/ApiError.ts"
import { ErrorNote } from "../page/ErrorNote.tsx"
import { groupsOf, type PolicyField, type PolicyValues } from "./fields.ts"
import { PolicyFieldInput } from "./PolicyFieldInput.tsx"
import styles from "./PolicyForm.module.css"
import { usePolicyFields } from "./usePolicyFields.ts"

interface Props {
  readonly values: PolicyValues
  /** What the form began with. Fields that differ are marked. */
  readonly before?: PolicyValues
  readonly onChange: (name: string, value: unknown) => void
  readonly errors?: ReadonlyArray<FieldError>
  /** Without it, all fields are shown. */
  readonly only?: (field: PolicyField) => boolean
  /** In the names of the server's errors, such as `policy.rpm_limit`. */
  readonly prefix?: string
}

/** In pixels. A dialog stands in the middle, so that all of it would move with its height. */
const loadingHeight = 320

/** The fields of a policy, in groups. */
export const PolicyForm = ({ before, errors = [], onChange, only = () => true, prefix = "policy", values }: Props) => {
  const described = usePolicyFields()
  if (described.data === undefined)
    return (
      <div style={{ minHeight: loadingHeight }}>
        {described.error === null ? (
          <Skeleton height={loadingHeight} />
        ) : (
          <ErrorNote error={described.error} onRetry={() => described.refetch()} />
        )}
      </div>
    )
  return (
    <div className={styles.form}>
      {groupsOf(described.data.fields.filter(only)).map(({ fields, label }) => (
        <fieldset key={label} className={styles.group}>
          <legend>{label}</legend>
          <div className={styles.fields}>
            {fields.map((field) => {
              const value = values[field.field] === undefined ? field.unrestricted : values[field.field]
              const was = before?.[field.field]
              return (
                <PolicyFieldInput
                  key={field.field}
                  field={field}
                  value={value}
                  onChange={(next) => onChange(field.field, next)}
                  isChanged={was !== undefined && JSON.stringify(was) !== JSON.stringify(value)}
                  error={errors.find((one) => one.field === `${prefix}.${field.field}`)?.message}
                />
              )
            })}
          </div>
        </fieldset>
      ))}
    </div>
  )
}
