import { ActionIcon, Button, Group, Popover, Stack, TextInput } from "@mantine/core"
import { useMediaQuery } from "@mantine/hooks"
import { IconCalendar } from "@tabler/icons-react"
import { useNavigate } from "@tanstack/react-router"
import { useState } from "react"
import { absoluteRange, type Range, ranges, useRangeOfFrame } from "../address/range.ts"
import { useUtc } from "../address/useUtc.ts"
import { LazySelect } from "../shared/fields/LazySelect.tsx"
import { Segments } from "../shared/page/Segments.tsx"
import { clockText } from "../shared/words/format.ts"
import { fieldText, fieldTime } from "../shared/words/timeField.ts"
import styles from "./TopBar.module.css"

/** The one range of all pages. It is in the address. */
export const RangeControl = () => {
  const { range, setRange } = useRangeOfFrame()
  const isNarrow = useMediaQuery("(max-width: 1023px)", undefined, { getInitialValueInEffect: false })
  const names = Object.keys(ranges)
  return (
    <div className={styles.range} title="Range before and after: [ and ]">
      {isNarrow === true ? (
        <LazySelect
          aria-label="Range"
          w={92}
          data={range.isRelative ? names : [...names, { value: range.text, label: "custom" }]}
          value={range.text}
          allowDeselect={false}
          onChange={(value) => value !== null && setRange(value)}
        />
      ) : (
        <Segments aria-label="Range" data={names} value={range.text} onChange={setRange} />
      )}
      <CustomRange range={range} setRange={setRange} isNarrow={isNarrow === true} />
    </div>
  )
}

interface CustomProps {
  readonly range: Range
  readonly setRange: (text: string) => void
  readonly isNarrow: boolean
}

const CustomRange = ({ isNarrow, range, setRange }: CustomProps) => {
  const [isOpen, setOpen] = useState(false)
  const utc = useUtc()
  const navigate = useNavigate()
  const variant = range.isRelative ? "default" : "light"
  const name = range.isRelative ? "Custom" : `${clockText(range.from, utc)} – ${clockText(range.to, utc)}`
  return (
    <Popover opened={isOpen} onChange={setOpen} position="bottom-start" trapFocus returnFocus withinPortal>
      <Popover.Target>
        {isNarrow ? (
          <ActionIcon variant={variant} size={30} onClick={() => setOpen(!isOpen)} aria-label={`Range: ${name}`}>
            <IconCalendar size={15} />
          </ActionIcon>
        ) : (
          <Button variant={variant} leftSection={<IconCalendar size={14} />} onClick={() => setOpen(!isOpen)}>
            {name}
          </Button>
        )}
      </Popover.Target>
      <Popover.Dropdown>
        <Stack gap="xs">
          <RangeForm
            key={`${range.from.getTime()} ${utc}`}
            range={range}
            utc={utc}
            onChosen={(text) => {
              setRange(text)
              setOpen(false)
            }}
          />
          <Segments
            aria-label="Time zone"
            data={[
              { value: "local", label: "Local time" },
              { value: "utc", label: "UTC" }
            ]}
            value={utc ? "utc" : "local"}
            onChange={(zone) =>
              void navigate({
                to: ".",
                search: ({ utc: _, ...before }) => ({ ...before, ...(zone === "utc" && { utc: true }) }),
                replace: true
              })
            }
          />
        </Stack>
      </Popover.Dropdown>
    </Popover>
  )
}

interface FormProps {
  readonly range: Range
  readonly utc: boolean
  readonly onChosen: (text: string) => void
}

const RangeForm = ({ onChosen, range, utc }: FormProps) => {
  const [from, setFrom] = useState(fieldText(range.from, utc))
  const [to, setTo] = useState(fieldText(range.to, utc))
  const start = fieldTime(from, utc)
  const end = fieldTime(to, utc)
  const isOrdered = start < end
  return (
    <Group align="end" gap="xs" wrap="wrap">
      <TextInput type="datetime-local" label="From" value={from} onChange={(e) => setFrom(e.currentTarget.value)} />
      <TextInput
        type="datetime-local"
        label="To"
        value={to}
        onChange={(e) => setTo(e.currentTarget.value)}
        error={isOrdered ? undefined : "must be after From"}
      />
      <Button disabled={!isOrdered} onClick={() => onChosen(absoluteRange(start, end))}>
        Show
      </Button>
    </Group>
  )
}
