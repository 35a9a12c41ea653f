import { Autocomplete, Button, TextInput } from "@mantine/core"
import { useDebouncedValue } from "@mantine/hooks"
import { useState } from "react"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { LazySelect } from "../fields/LazySelect.tsx"
import { KeyPicker } from "../keys/KeyPicker.tsx"
import { ProjectPicker } from "../keys/ProjectPicker.tsx"
import { type FilterField, type FilterName, filterFields } from "./fields.ts"
import styles from "./UsageFilterBar.module.css"
import { mostUsed, useUsedKeys } from "./useNames.ts"

interface Props {
  readonly onAdd: (name: FilterName, value: string) => void
}

/** Chooses one filter and its value. */
export const FilterForm = ({ onAdd }: Props) => {
  const [name, setName] = useState<FilterName>("key_id")
  const [value, setValue] = useState("")
  const field = filterFields.find((one) => one.name === name)
  const add = (chosen: string) => {
    if (chosen.trim() !== "") onAdd(name, chosen.trim())
  }
  return (
    <form
      className={styles.form}
      onSubmit={(event) => {
        event.preventDefault()
        add(value)
      }}
    >
      <LazySelect
        label="Field"
        data={filterFields.map((one) => ({ value: one.name, label: one.label }))}
        value={name}
        allowDeselect={false}
        searchable
        comboboxProps={{ withinPortal: false }}
        onChange={(chosen) => {
          const found = filterFields.find((one) => one.name === chosen)
          if (found === undefined) return
          setName(found.name)
          setValue("")
        }}
      />
      {field !== undefined && <ValueField key={name} field={field} value={value} onChange={setValue} onChoose={add} />}
      <Button type="submit" disabled={value.trim() === ""}>
        Add the filter
      </Button>
    </form>
  )
}

interface ValueProps {
  readonly field: FilterField
  readonly value: string
  readonly onChange: (value: string) => void
  readonly onChoose: (value: string) => void
}

const ValueField = (props: ValueProps) => {
  const { field, onChange, onChoose, value } = props
  if (field.values === "named") return <NamedField {...props} />
  if (field.values === "listed") return <ListedField {...props} />
  if (field.values === "free")
    return (
      <TextInput
        label={field.label}
        description={<code>{field.name}</code>}
        value={value}
        onChange={({ currentTarget }) => onChange(currentTarget.value)}
        data-autofocus
      />
    )
  return (
    <LazySelect
      label={field.label}
      data={field.values}
      value={value === "" ? null : value}
      comboboxProps={{ withinPortal: false }}
      onChange={(chosen) => chosen !== null && onChoose(chosen)}
    />
  )
}

const insidePopover = { withinPortal: false }

/** Keys and projects are chosen by their names, which the server searches. */
const NamedField = (props: ValueProps) => {
  const { field, onChoose } = props
  const mayList = useAllowed("operators:manage")
  if (field.name === "project_id")
    return (
      <ProjectPicker
        label={field.label}
        value={null}
        onChange={(id) => id !== null && onChoose(id)}
        comboboxProps={insidePopover}
      />
    )
  return mayList ? (
    <KeyPicker
      label={field.label}
      value={undefined}
      onChange={(id) => id !== undefined && onChoose(id)}
      comboboxProps={insidePopover}
    />
  ) : (
    <UsedKeyField {...props} />
  )
}

const UsedKeyField = ({ field, onChoose }: ValueProps) => {
  const keys = useUsedKeys()
  return (
    <LazySelect
      label={field.label}
      description={keys.length < mostUsed ? "Those that were used in the range" : `The ${mostUsed} that were used most`}
      data={[...keys]}
      value={null}
      searchable
      nothingFoundMessage="None"
      comboboxProps={insidePopover}
      onChange={(chosen) => chosen !== null && onChoose(chosen)}
    />
  )
}

/** The server lists the values that begin with what is typed. */
const ListedField = ({ field, onChange, onChoose, value }: ValueProps) => {
  const [typed] = useDebouncedValue(value, 200)
  const found = useApi("/admin-ui/admin/usage/filter-values", { query: { field: field.name, q: typed, limit: 20 } })
  return (
    <Autocomplete
      label={field.label}
      description={<code>{field.name}</code>}
      data={[...(found.data?.values ?? [])]}
      value={value}
      onChange={onChange}
      onOptionSubmit={onChoose}
      filter={({ options }) => options}
      comboboxProps={{ withinPortal: false }}
      data-autofocus
    />
  )
}
