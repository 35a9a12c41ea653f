import { MultiSelect, NumberInput, Switch, TagsInput } from "@mantine/core"
import { FieldName } from "../fields/FieldName.tsx"
import { LazySelect } from "../fields/LazySelect.tsx"
import type { PolicyField } from "./fields.ts"

interface Props {
  readonly field: PolicyField
  readonly value: unknown
  readonly onChange: (value: unknown) => void
  /** What the server said of the value. */
  readonly error?: string | undefined
  /** The value before, where the form changes something. */
  readonly isChanged?: boolean
}

const textsOf = (value: unknown): Array<string> => (Array.isArray(value) ? value.map(String) : [])

const upTo = (minimum: number | null, maximum: number | null): Array<string> =>
  minimum === null || maximum === null
    ? []
    : Array.from({ length: maximum - minimum + 1 }, (_, place) => String(minimum + place))

/** One field of a policy. An empty input restricts nothing. */
export const PolicyFieldInput = ({ error, field, isChanged = false, onChange, value }: Props) => {
  const { choices, field: name, help, kind, maximum, minimum } = field
  const label = (
    <>
      <FieldName name={name} />
      {isChanged && <span title="changed"> •</span>}
    </>
  )
  const shared = { label, description: help, error, "data-field": name } as const
  switch (kind) {
    case "boolean":
      return (
        <Switch
          {...shared}
          checked={value === true}
          onChange={({ currentTarget }) => onChange(currentTarget.checked)}
        />
      )
    case "choice":
      return (
        <LazySelect
          {...shared}
          data={choices === null ? [] : [...choices]}
          value={typeof value === "string" ? value : null}
          onChange={(next) => next !== null && onChange(next)}
          allowDeselect={false}
        />
      )
    case "names":
    case "numbers": {
      const change = (texts: ReadonlyArray<string>) =>
        onChange(texts.length === 0 ? null : kind === "numbers" ? texts.map(Number) : texts)
      const list = { ...shared, value: textsOf(value), onChange: change, clearable: true }
      const placeholder =
        value === null || value === undefined ? "all" : Array.isArray(value) && value.length === 0 ? "none" : ""
      return choices === null && kind === "names" ? (
        <TagsInput {...list} placeholder={placeholder} acceptValueOnBlur />
      ) : (
        <MultiSelect
          {...list}
          placeholder={placeholder}
          data={choices === null ? upTo(minimum, maximum) : [...choices]}
          searchable
        />
      )
    }
    default:
      return (
        <NumberInput
          {...shared}
          placeholder="no limit"
          value={typeof value === "number" ? value : ""}
          onChange={(next) => onChange(next === "" ? null : Number(next))}
          allowDecimal={kind === "dollars"}
          thousandSeparator=","
          decimalScale={6}
          hideControls
          {...(minimum !== null && { min: minimum })}
          {...(maximum !== null && { max: maximum })}
          {...(kind === "dollars" && { prefix: "$" })}
          allowNegative={false}
          clampBehavior="none"
        />
      )
  }
}
