import { Button, CloseButton, Popover } from "@mantine/core"
import { IconFilterPlus } from "@tabler/icons-react"
import { useState } from "react"
import { useTextSearch } from "../../address/search.ts"
import { ForeignText } from "../foreign/ForeignText.tsx"
import { FilterForm } from "./FilterForm.tsx"
import { type FilterName, filterFields, filterNames } from "./fields.ts"
import styles from "./UsageFilterBar.module.css"
import { useName } from "./useNames.ts"

/** The filters of a page about usage, as chips. They are in the address. */
export const UsageFilterBar = () => {
  const { change, text } = useTextSearch()
  const [isOpen, setOpen] = useState(false)
  const set = filterFields.filter(({ name }) => text(name) !== undefined)
  return (
    // biome-ignore lint/a11y/useSemanticElements: `search` holds more than one form
    <div role="search" aria-label="Filters" className={styles.bar}>
      {set.map(({ label, name }) => {
        const value = text(name) ?? ""
        return (
          <span key={name} className={styles.chip}>
            <span>
              <span className={styles.name}>{label}</span> <ChosenValue filter={name} value={value} />
            </span>
            <CloseButton
              size="sm"
              aria-label={`Remove the filter ${label}`}
              onClick={() => change({ [name]: undefined })}
            />
          </span>
        )
      })}
      <Popover opened={isOpen} onChange={setOpen} position="bottom-start" trapFocus withinPortal>
        <Popover.Target>
          <Button
            variant="default"
            leftSection={<IconFilterPlus size={14} />}
            onClick={() => setOpen(!isOpen)}
            data-filter="true"
            aria-expanded={isOpen}
          >
            Filter
          </Button>
        </Popover.Target>
        <Popover.Dropdown>
          <FilterForm
            onAdd={(name, value) => {
              change({ [name]: value })
              setOpen(false)
            }}
          />
        </Popover.Dropdown>
      </Popover>
      {set.length > 1 && (
        <Button
          variant="subtle"
          onClick={() => change(Object.fromEntries(filterNames.map((name) => [name, undefined])))}
        >
          Remove all
        </Button>
      )}
    </div>
  )
}

const ChosenValue = ({ filter, value }: { readonly filter: FilterName; readonly value: string }) => (
  <ForeignText title={value}>{useName(filter, value)}</ForeignText>
)
