import { Button, Group, Popover, TextInput } from "@mantine/core"
import { useState } from "react"
import { absoluteRange, type Range } from "../../../address/range.ts"
import { useTextSearch } from "../../../address/search.ts"
import { useUtc } from "../../../address/useUtc.ts"
import { LazySelect } from "../../../shared/fields/LazySelect.tsx"
import { intervals } from "../../../shared/usage/buckets.ts"
import { UsageFilterBar } from "../../../shared/usage/UsageFilterBar.tsx"
import { clockText } from "../../../shared/words/format.ts"
import { fieldText, fieldTime } from "../../../shared/words/timeField.ts"
import styles from "./Breakdown.module.css"
import { comparisons } from "./compared.ts"
import { groups } from "./groups.ts"
import { measures } from "./measures.ts"
import { splits } from "./parts.ts"
import type { BreakdownData } from "./useBreakdown.ts"
import { chosenInterval } from "./useSeries.ts"

/** What is shown: by which group, which measure, and compared with what. */
export const UsageControls = ({ data: { group, measure, other, split } }: { readonly data: BreakdownData }) => {
  const { change, text } = useTextSearch()
  const [isOpen, setOpen] = useState(false)
  const utc = useUtc()
  const compare = text("compare")
  return (
    <div className={styles.controls}>
      <LazySelect
        label="Group by"
        data={groups.map(({ label, name }) => ({ value: name, label }))}
        value={group.name}
        allowDeselect={false}
        onChange={(value) => change({ group: value ?? undefined })}
        w={160}
      />
      <LazySelect
        label="Split the chart by"
        placeholder={group.split === undefined ? "nothing" : group.label}
        data={splits.filter(({ name }) => name !== group.split).map(({ label, name }) => ({ value: name, label }))}
        value={split?.name ?? null}
        clearable
        onChange={(value) => change({ split: value ?? undefined })}
        w={180}
      />
      <LazySelect
        label="Measure"
        data={measures.map(({ label, name }) => ({ value: name, label }))}
        value={measure.name}
        allowDeselect={false}
        onChange={(value) => change({ measure: value ?? undefined })}
        w={200}
      />
      <LazySelect
        label="Interval"
        placeholder="automatic"
        data={[...intervals]}
        value={chosenInterval(text("interval")) ?? null}
        clearable
        onChange={(value) => change({ interval: value ?? undefined })}
        w={130}
      />
      <Popover opened={isOpen} onChange={setOpen} position="bottom-start" trapFocus withinPortal withRoles={false}>
        <Popover.Target>
          <div>
            <LazySelect
              label="Compare with"
              placeholder="the period before, in the table"
              data={[...comparisons]}
              value={compare === undefined ? null : compare.includes("..") ? "custom" : compare}
              clearable
              onChange={(value) => {
                if (value === "custom") setOpen(true)
                else change({ compare: value ?? undefined })
              }}
              w={210}
            />
          </div>
        </Popover.Target>
        <Popover.Dropdown>
          <OtherRange
            key={String(utc)}
            range={other}
            utc={utc}
            onChosen={(range) => {
              change({ compare: range })
              setOpen(false)
            }}
          />
        </Popover.Dropdown>
      </Popover>
      {compare !== undefined && (
        <span className={styles.muted}>
          {clockText(other.from, utc)} – {clockText(other.to, utc)}
        </span>
      )}
      <UsageFilterBar />
    </div>
  )
}

interface OtherProps {
  readonly range: Range
  readonly utc: boolean
  readonly onChosen: (range: string) => void
}

const OtherRange = ({ onChosen, range, utc }: OtherProps) => {
  const [from, setFrom] = useState(fieldText(range.from, utc))
  const [to, setTo] = useState(fieldText(range.to, utc))
  const [start, end] = [fieldTime(from, utc), fieldTime(to, utc)]
  return (
    <Group align="end" gap="xs">
      <TextInput
        type="datetime-local"
        label="From"
        value={from}
        onChange={(event) => setFrom(event.currentTarget.value)}
      />
      <TextInput
        type="datetime-local"
        label="To"
        value={to}
        onChange={(event) => setTo(event.currentTarget.value)}
        error={start < end ? undefined : "must be after From"}
      />
      <Button disabled={!(start < end)} onClick={() => onChosen(absoluteRange(start, end))}>
        Compare
      </Button>
    </Group>
  )
}
